/*
 * http - the HTTP server: a listener, its connections, and a thread for each of them
 *
 * The page and the metrics have one each; struct sl_http_site says how they differ. Requests run in
 * their connection's thread, which may block and touches nothing that the loop owns. Slow and idle
 * connections are closed, earlier if others wait for a place.
 */
#ifndef SL_DAEMON_WEB_HTTP_H
#define SL_DAEMON_WEB_HTTP_H

#include <microhttpd.h>

#include "base/list.h"
#include "daemon/core/user.h"
#include "daemon/core/worker.h"
#include "daemon/web/http_socket.h"
#include "daemon/web/share.h"

struct sl_http_site {
	const char *name; /* the option with its address, for messages */
	unsigned int connections;
	size_t head_max_bytes; /* of method, target and headers */
	sl_ns reading_life;    /* how long a connection may be in SL_HTTP_READING */
	bool identifies_users; /* at a Unix socket */
	MHD_AccessHandlerCallback on_request;      /* gets the context of sl_http_start */
	MHD_RequestCompletedCallback on_completed; /* the same; may be NULL */
};

enum sl_http_phase {
	SL_HTTP_READING = 0, /* waiting for a request, or receiving it */
	SL_HTTP_ANSWERING,
	SL_HTTP_WATCHING /* without an end */
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
	uint64_t key;               /* whose rate it uses: an address, or a user */
	struct sl_page_asker asker; /* of its latest request; under the mutex */
	struct sl_user *who;        /* if the site identifies users; else NULL */
};

/* Listens with the configured permissions; connections wait until sl_http_start. On an error err
 * says what is wrong and the remedy. 0 or negative errno. */
SL_MUST_CHECK int sl_http_listen(struct sl_http *http, const struct sl_http_site *site,
	const struct sl_config_address *address, const struct sl_config *config,
	struct sl_error *err);
/* Starts the threads. certificate and key: PEM, or both NULL for no TLS. 0 or negative errno;
 * -ENOTSUP: libmicrohttpd does not start. */
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
