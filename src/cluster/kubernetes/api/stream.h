/*
 * stream - calls that receive the newest state of something
 *
 * Each call gets the state at once and after each change, until its client goes away. One thread,
 * the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_STREAM_H
#define SL_CLUSTER_KUBERNETES_API_STREAM_H

#include "cluster/kubernetes/api/grpc.h"

#define SL_STREAM_CALLS SL_GRPC_CONNECTIONS_MAX

/* Zero-initialise. */
struct sl_stream {
	struct sl_grpc_call *calls[SL_STREAM_CALLS];
	size_t count;
	uint8_t *latest; /* NULL: no state yet */
	size_t size;
};

/* Takes the call; refuses it if there are too many. */
void sl_stream_add(struct sl_stream *stream, struct sl_grpc_call *call);
/* Sends a copy of the message to all calls. */
void sl_stream_tell(struct sl_stream *stream, const void *message, size_t size);
/* Ends all calls. */
void sl_stream_fini(struct sl_stream *stream);

#endif
