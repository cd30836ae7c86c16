/*
 * grpc_ask - one request by gRPC on a Unix socket, in the event loop
 *
 * Each request has its own connection: requests are rare, and the kubelet may have been restarted
 * since the last one. Nothing blocks. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_GRPC_ASK_H
#define SL_CLUSTER_KUBERNETES_API_GRPC_ASK_H

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"

#define SL_GRPC_ASK_TIMEOUT (10 * SL_S)

struct sl_grpc_ask;

/* The answer is valid until the function returns; without one err says why. */
typedef void (*sl_grpc_ask_fn)(
	void *context, const uint8_t *message, size_t size, const struct sl_error *err);

/* fn is called once, from the loop. *slot must stay valid until then, and is NULL again before fn
 * is called. 0 or negative errno (err); on an error fn is not called. */
SL_MUST_CHECK int sl_grpc_ask(sd_event *loop, const char *path, const char *method,
	const void *message, size_t size, sl_grpc_ask_fn fn, void *context,
	struct sl_grpc_ask **slot, struct sl_error *err);
/* Cancels: fn is not called. *slot becomes NULL, and may be NULL. */
void sl_grpc_ask_cancel(struct sl_grpc_ask **slot);

#endif
