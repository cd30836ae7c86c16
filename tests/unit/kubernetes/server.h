/*
 * server - an API server that answers as a test wants, even wrongly
 *
 * libmicrohttpd with TLS in a thread of its own, at a free port of 127.0.0.1. The test's function
 * answers each request; it runs in that thread with the server's lock held.
 */
#ifndef SL_TESTS_KUBERNETES_SERVER_H
#define SL_TESTS_KUBERNETES_SERVER_H

#include "../base/test.h"

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cluster/kubernetes/api/api.h"

struct exchange {
	const char *method, *path; /* the path without its query */
	const char *body;          /* "" without one */
	const char *authorization, *content_type;
	bool has_certificate;
	/* The answer. */
	unsigned int status; /* 200 */
	char *text;          /* freed by the server */
	unsigned int retry_after_s;
	enum {
		WHOLE = 0,
		STREAM, /* text, and then pushed data */
		BREAK,  /* text, and then the connection ends in the middle */
		HANG,   /* nothing */
	} how;
	void *connection; /* for query() */
};

typedef void (*serve_fn)(struct exchange *exchange);

/* Starts; one at a time. Makes certificates in a folder of its own. */
void server_start(serve_fn serve);
void server_stop(void);
/* What the requests' paths were, with their methods, one a line; the caller frees. */
char *server_log(void);
/* How often "METHOD path" was asked for. */
unsigned int server_count(const char *method, const char *path);
/* A parameter of the query, or NULL. Within serve_fn. */
const char *query(struct exchange *exchange, const char *key);
/* Sends text on the latest stream; then ends it, well or not. Within serve_fn, or under lock. */
void stream_push(const char *text);
void stream_end(bool is_broken);
void server_lock(void);
void server_unlock(void);

/* printf into new memory. */
char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A configuration for the server, with token "secret". */
struct sl_kube_config server_config(void);
/* A file in the test's folder: its path; freed at the end. */
const char *server_file(const char *name, const char *content);
/* The paths of "server.pem", of the stranger's certificate, and the client's pair. */
const char *server_path(const char *name);
const char *server_url(void);

/* Runs the loop until *done, at most limit. Returns *done. */
bool run_until(sd_event *event, const bool *done, sl_ns limit);
/* Or until is_done(context). */
bool run_while(
	sd_event *event, bool (*is_done)(void *context), void *context, sl_ns limit);

#endif
