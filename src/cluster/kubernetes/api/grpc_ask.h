/*
 * grpc_ask - one question of gRPC on a Unix socket, in the event loop
 *
 * A connection for each question: the kubelet that is asked so is asked rarely, and may be another
 * one by the next time. Nothing blocks. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_GRPC_ASK_H
#define SL_CLUSTER_KUBERNETES_API_GRPC_ASK_H

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"

#define SL_GRPC_ASK_TIMEOUT (10 * SL_S)

struct sl_grpc_ask;

/* The answer, valid until it returns; or err says what came instead. */
typedef void (*sl_grpc_ask_fn)(
	void *context, const uint8_t *message, size_t size, const struct sl_error *err);

/* fn is called once, from the loop; *slot, which has to live as long, is NULL again before that. 0
 * or negative errno (err); fn is not called then. */
SL_MUST_CHECK int sl_grpc_ask(sd_event *loop, const char *path, const char *method,
	const void *message, size_t size, sl_grpc_ask_fn fn, void *context,
	struct sl_grpc_ask **slot, struct sl_error *err);
/* fn is not called any more. *slot becomes NULL, and may be NULL. */
void sl_grpc_ask_cancel(struct sl_grpc_ask **slot);

#endif
