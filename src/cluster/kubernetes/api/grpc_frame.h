/*
 * grpc_frame - what gRPC puts in front of a message: whether it is compressed, and its length
 */
#ifndef SL_CLUSTER_KUBERNETES_API_GRPC_FRAME_H
#define SL_CLUSTER_KUBERNETES_API_GRPC_FRAME_H

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "base/sl.h"

#define SL_GRPC_PREFIX_BYTES 5

static inline nghttp2_nv sl_grpc_header(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
		.value = (uint8_t *)(uintptr_t)value,
		.namelen = strlen(name),
		.valuelen = strlen(value)};
}

static inline size_t sl_grpc_length(const uint8_t *prefix)
{
	return (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 |
	       (size_t)prefix[3] << 8 | prefix[4];
}

/* The message with its prefix, to be freed; NULL: too large, or no memory. */
uint8_t *sl_grpc_frame(const void *message, size_t size);

#endif
