/*
 * http - the HTTP server: a listener, its connections, and a thread for each of them
 *
 * The page, the metrics and the webhook of sluice-kube have one each; struct sl_http_site says how
 * they differ. Requests run in their connection's thread, which may block and touches nothing that
 * the loop owns. Slow and idle connections are closed, earlier if others wait for a place.
 */
#ifndef SL_DAEMON_WEB_HTTP_H
#define SL_DAEMON_WEB_HTTP_H

#include <microhttpd.h>

#include "base/list.h"
#include "daemon/core/worker.h"
#include "daemon/web/http_socket.h"
#include "daemon/web/share.h"

struct sl_http;

struct sl_http_site {
	const char *name; /* the option with its address, for messages */
	unsigned int connections;
	size_t head_max_bytes; /* of method, target and headers */
	sl_ns reading_life;    /* how long a connection may be in SL_HTTP_READING */
	/* Seconds without any transfer until the library closes a connection; 0: it does not. */
	unsigned int still_s;
	/* Make and free the guest of a connection; may be NULL. */
	void *(*greet)(struct sl_http *http, int fd);
	void (*see_off)(void *guest);
	/* A gnutls_certificate_retrieve_function3, for TLS with another certificate at each
	 * handshake; may be NULL. */
	void *on_certificate;
	MHD_AccessHandlerCallback on_request;      /* gets the context of sl_http_start */
	MHD_RequestCompletedCallback on_completed; /* the same; may be NULL */
};

enum sl_http_phase {
	SL_HTTP_READING = 0, /* waiting for a request, or receiving it */
	SL_HTTP_IDLE,        /* waiting for a request, for as long as there are places */
	SL_HTTP_ANSWERING,
	SL_HTTP_WATCHING /* the answer takes as long as it takes */
};

struct sl_http {
	const struct sl_http_site *site;
	void *context;
	struct sl_http_socket listener;
	struct MHD_Daemon *server; /* NULL: not started */
	struct sl_worker doorman;  /* accepts connections and closes slow ones */
	pthread_mutex_t mutex;
	struct sl_link connections; /* struct sl_http_connection, under the mutex */
	unsigned int connection_count;
};

struct sl_http_connection {
	struct sl_link link;
	int fd;
	enum sl_http_phase phase; /* under the mutex */
	sl_ns since;
	uint64_t key;               /* of its address; 0: a Unix socket */
	struct sl_page_asker asker; /* of its latest request; under the mutex */
	void *guest;
};

/* Listens, at a path with these permissions. Connections wait until sl_http_start. On an error err
 * says what is wrong and the remedy. 0 or negative errno. */
SL_MUST_CHECK int sl_http_listen(struct sl_http *http, const struct sl_http_site *site,
	const struct sl_config_address *address, unsigned int mode, uint32_t group,
	struct sl_error *err);
/* Starts the threads. certificate and key: PEM, or both NULL; then only the site's on_certificate
 * makes it TLS. 0 or negative errno; -ENOTSUP: libmicrohttpd does not start. */
SL_MUST_CHECK int sl_http_start(
	struct sl_http *http, void *context, const char *certificate, const char *key);
/* Ends the threads, and so waits for all requests; also after a failed listen or start. */
void sl_http_close(struct sl_http *http);

/* NULL: there was no memory for it. */
struct sl_http_connection *sl_http_connection_of(struct MHD_Connection *mhd);
/* Sets the asker of the connection's present request. */
void sl_http_set_asker(
	struct sl_http *http, struct MHD_Connection *mhd, struct sl_page_asker asker);
void sl_http_set_phase(
	struct sl_http *http, struct MHD_Connection *mhd, enum sl_http_phase phase);

#endif
