/*
 * server - HTTPS for reviews, inside the event loop
 *
 * POST /review hands its body to a function, which answers at once or later; GET /healthz says that
 * it serves. Nothing is accepted before there are certificates; new ones count for new connections.
 *
 * Every client that reaches the port may connect, so what clients can have is bounded: 256
 * connections, one body of 10 MiB each and 64 MiB of all together, and 10 s to send a request. When
 * all places are taken a request has 1 s, and connections without one are cut. A body has room for
 * what etcd keeps, 1.5 MiB, with each byte written as six ("<" is \u003c); of more, and where there
 * is no room, the function gets the first 16 KiB. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_SERVER_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_SERVER_H

#include <systemd/sd-event.h>

#include "cluster/kubernetes/webhook/certs.h"

#define SL_WEBHOOK_CONNECTIONS      256
#define SL_WEBHOOK_BODY_MAX_BYTES   (10 * SL_MIB)
#define SL_WEBHOOK_BODIES_MAX_BYTES (64 * SL_MIB)
#define SL_WEBHOOK_LIFE             (10 * SL_S)
#define SL_WEBHOOK_GIVE_WAY         (1 * SL_S)

struct sl_webhook_server;
struct sl_webhook_call; /* a request that waits for its answer */

/* body[size] is NUL, and the text may be written to; valid until the answer. is_cut: it is the
 * beginning alone, as all of it was too large. The call must be answered, within the function or
 * later from the loop. */
typedef void (*sl_webhook_fn)(void *context, struct sl_webhook_call *call, char *body,
	size_t size, bool is_cut);

/* address: "PORT" or "ADDRESS:PORT" (IPv6 in brackets). Listens. 0 or negative errno (err). */
SL_MUST_CHECK int sl_webhook_server_new(struct sl_webhook_server **out, sd_event *loop,
	const char *address, sl_webhook_fn fn, void *context, struct sl_error *err);
/* 0 or negative errno (err): then the ones before stay. */
SL_MUST_CHECK int sl_webhook_server_set_certs(struct sl_webhook_server *server,
	const struct sl_webhook_certs *certs, struct sl_error *err);
/* The port that it listens at. */
uint16_t sl_webhook_server_port(const struct sl_webhook_server *server);
/* Calls must have been answered. Returns NULL. */
struct sl_webhook_server *sl_webhook_server_free(struct sl_webhook_server *server);

/* Takes text (malloc'ed), JSON where the status is 200. Frees the call. */
void sl_webhook_answer(struct sl_webhook_call *call, unsigned int status, char *text);

#endif
