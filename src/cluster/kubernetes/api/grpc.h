/*
 * grpc - a server of gRPC on a Unix socket, in the event loop
 *
 * nghttp2 speaks HTTP/2; what gRPC adds is little: a path per method, five bytes in front of a
 * message, a status in the trailers. Calls have one message in, and one message, or one now and
 * then, out. Deadlines of the client are the client's to keep. Compressed messages are refused, as
 * a server may that announces none.
 *
 * Whoever connects is trusted as far as the socket's mode goes (0600), and not to send sense: bytes
 * that are no HTTP/2 end their connection alone. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_GRPC_H
#define SL_CLUSTER_KUBERNETES_API_GRPC_H

#include <systemd/sd-event.h>

#include "base/error.h"

#define SL_GRPC_MESSAGE_MAX     (4u << 20)
#define SL_GRPC_CONNECTIONS_MAX 16
#define SL_GRPC_STREAMS_MAX     100 /* of a connection */

/* The codes of gRPC that are used here. */
enum sl_grpc_status {
	SL_GRPC_OK = 0,
	SL_GRPC_INVALID_ARGUMENT = 3,
	SL_GRPC_RESOURCE_EXHAUSTED = 8,
	SL_GRPC_UNIMPLEMENTED = 12,
	SL_GRPC_INTERNAL = 13,
	SL_GRPC_UNAVAILABLE = 14
};

struct sl_grpc;      /* the server */
struct sl_grpc_call; /* one call, until it is answered */

/* method: "/package.Service/Method". message: until it returns. A call that was taken is answered
 * (answer, refuse, end) exactly once, now or later, also after the server was freed; a method that
 * is not known answers UNIMPLEMENTED. */
typedef void (*sl_grpc_fn)(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size);

/* Makes the socket; one that nobody listens on any more is replaced. 0 or negative errno (err). */
SL_MUST_CHECK int sl_grpc_new(sd_event *loop, const char *path, sl_grpc_fn fn,
	void *context, struct sl_grpc **out, struct sl_error *err);
/* Closes all and removes the socket. Not from within fn. Returns NULL, takes it, too. */
struct sl_grpc *sl_grpc_free(struct sl_grpc *grpc);

/* The call is gone after either. The client may be gone before. */
void sl_grpc_answer(struct sl_grpc_call *call, const void *message, size_t size);
void sl_grpc_refuse(
	struct sl_grpc_call *call, enum sl_grpc_status status, const char *text);

/* A message of a call that has several: each tells the whole state of something, so one that is not
 * under way yet is replaced by the next one. False: the client is gone, or it is out of memory, or
 * too large; the call is to be ended. */
SL_MUST_CHECK bool sl_grpc_send(
	struct sl_grpc_call *call, const void *message, size_t size);
/* Ends a call that has several: the client sees that it was cancelled. The call is gone. */
void sl_grpc_end(struct sl_grpc_call *call);

#endif
