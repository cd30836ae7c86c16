/*
 * server - HTTPS for reviews, which the event loop answers (daemon/web/http.h)
 *
 * POST /review passes its body to a function, which answers at once or later; GET /healthz answers
 * while the server serves. Nothing is accepted before there are certificates; new certificates
 * apply to new connections.
 *
 * Any client that reaches the port may connect, so their resources are bounded: 256 connections, 10
 * MiB per body and 64 MiB for all together, and 10 s to send a request. When all connections are in
 * use, a request must arrive within 1 s, and connections without a request are cut. etcd stores at
 * most 1.5 MiB; 10 MiB is enough for that with each byte written as six ("<" is \u003c). Of a
 * larger body, or without memory for it, the function gets the first 16 KiB. All calls are the
 * loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_SERVER_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_SERVER_H

#include <systemd/sd-event.h>

#include "cluster/kubernetes/webhook/certs.h"

#define SL_WEBHOOK_CONNECTIONS      256
#define SL_WEBHOOK_BODY_MAX_BYTES   (10 * SL_MIB)
#define SL_WEBHOOK_BODIES_MAX_BYTES (64 * SL_MIB)
#define SL_WEBHOOK_LIFE             (10 * SL_S)

struct sl_webhook_server;
struct sl_webhook_call; /* a request whose answer is missing yet */

/* body[size] is NUL, and the text may be written to; it is valid until the answer. is_cut: body is
 * only the beginning, since all of it was too large. Answer the call, within the function or later
 * from the loop. */
typedef void (*sl_webhook_fn)(void *context, struct sl_webhook_call *call, char *body,
	size_t size, bool is_cut);

/* address: "PORT" or "ADDRESS:PORT" (IPv6 in brackets). Listens. 0 or negative errno (err). */
SL_MUST_CHECK int sl_webhook_server_new(struct sl_webhook_server **out, sd_event *loop,
	const char *address, sl_webhook_fn fn, void *context, struct sl_error *err);
/* 0 or negative errno (err); on an error the previous ones stay. */
SL_MUST_CHECK int sl_webhook_server_set_certs(struct sl_webhook_server *server,
	const struct sl_webhook_certs *certs, struct sl_error *err);
/* The port of the listening socket. */
uint16_t sl_webhook_server_port(const struct sl_webhook_server *server);
/* All calls must have been answered. Returns NULL. */
struct sl_webhook_server *sl_webhook_server_free(struct sl_webhook_server *server);

/* Takes text (malloc'ed), JSON if the status is 200. Frees the call. */
void sl_webhook_answer(struct sl_webhook_call *call, unsigned int status, char *text);

#endif
