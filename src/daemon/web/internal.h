/*
 * internal - what the parts of the page's server share
 *
 * struct sl_page belongs to the loop until the threads start, and is not changed then but for what
 * locks itself. A request belongs to its connection's thread.
 */
#ifndef SL_DAEMON_WEB_INTERNAL_H
#define SL_DAEMON_WEB_INTERNAL_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "daemon/link/inside.h"
#include "daemon/web/guard.h"
#include "daemon/web/http_socket.h"
#include "daemon/web/rate.h"
#include "daemon/web/share.h"
#include "daemon/web/snapshot.h"
#include "daemon/web/tokens.h"

/* Bodies of requests; of jobs, which bring words and environment. */
#define SL_PAGE_BODY_MAX     (64u << 10)
#define SL_PAGE_JOB_BODY_MAX (256u << 10)
/* Method, target and headers. */
#define SL_PAGE_HEAD_MAX (16u << 10)

struct sl_history;

struct sl_page {
	struct sl_inside_door *door;
	struct sl_http_socket listener;
	struct sl_page_rules rules;
	char names[1024], machine[256];
	bool reads_need_token;
	char data_dir[SL_CONFIG_TEXT_MAX];
	char address[192]; /* for a browser on this machine; "" for a Unix socket */
	struct MHD_Daemon *server;
	struct sl_page_snapshot *look;
	struct sl_page_tokens *tokens;
	struct sl_page_rate *reads, *changes, *failures;
	struct sl_page_share *share;
	struct sl_history *history; /* NULL: none is written */
	atomic_uint questions;      /* that it works on */
	/* When something was changed by way of the page: what is older is no state of now. */
	_Atomic sl_ns changed_at;
	/* The doorman, who accepts and shows the slow out (page.c). */
	pthread_t doorman;
	bool has_doorman;
	int stop_fd;
	pthread_mutex_t mutex;
	struct sl_link connections; /* struct sl_page_connection, under the mutex */
	unsigned int connection_count;
	uint64_t requests, refused;
	char *certificate, *key; /* PEM; NULL: no TLS */
	atomic_bool ending;
};

enum sl_page_phase {
	SL_PAGE_READING = 0, /* a request is awaited, or on its way */
	SL_PAGE_ANSWERING,
	SL_PAGE_WATCHING
};

struct sl_page_connection {
	struct sl_link link;
	int fd;
	enum sl_page_phase phase; /* under the page's mutex */
	sl_ns since;
	uint64_t key;               /* whose rate it uses: its address, or user */
	struct sl_page_asker asker; /* of its latest request; under the page's mutex */
	struct sl_user *who;        /* of a Unix socket; else NULL */
};

struct sl_page_route;

struct sl_page_request {
	struct sl_page *page;
	struct MHD_Connection *connection;
	const struct sl_page_route *route;
	char argument[128];  /* what stands for the * in the route */
	struct sl_user *who; /* NULL: nobody in particular */
	struct sl_page_asker asker;
	uint64_t answer_bytes; /* of its share, until it is completed */
	char *body;
	size_t size, room;
	json_t *json;  /* of a body */
	bool answered; /* before its body came */
	bool too_long;
};

typedef enum MHD_Result (*sl_page_fn)(struct sl_page_request *request);

enum sl_page_access {
	SL_PAGE_FRONT = 0, /* the page's own parts, which hold no secret */
	SL_PAGE_READ,      /* needs a token where reading does */
	SL_PAGE_OWN,       /* always needs a token */
	SL_PAGE_CHANGE     /* the same, and JSON */
};

struct sl_page_route {
	const char *method, *path; /* one * for a segment */
	enum sl_page_access access;
	size_t body_max;
	sl_page_fn fn;
};

/* The route of a target; NULL: none. *allowed, if not NULL then: the methods that there are at that
 * path, "" if there is none. */
const struct sl_page_route *sl_page_route_find(
	const char *method, const char *path, char argument[128], char allowed[32]);
/* The routes in order; NULL behind the last. */
const struct sl_page_route *sl_page_route_at(size_t index);

/* --- answers; each once per request ----------------------------------------------------------- */

/* Takes json; NULL: out of memory. */
enum MHD_Result sl_page_answer(
	struct sl_page_request *request, unsigned int status, json_t *json);
/* {"error": text}. */
enum MHD_Result sl_page_refuse(struct sl_page_request *request, unsigned int status,
	const char *format, ...) SL_PRINTF(3, 4);
/* Takes response, NULL: out of memory; with the headers of every answer of the API. */
enum MHD_Result sl_page_send(struct sl_page_request *request, unsigned int status,
	struct MHD_Response *response, const char *type);

/* Whose rates, and other shares, a request uses: a user's, or an address's. */
uint64_t sl_page_rate_key(const struct sl_page_request *request);
/* JSON; takes text, NULL: out of memory. A large one is of the asker's share until it is read to
 * its end. */
enum MHD_Result sl_page_answer_whole(
	struct sl_page_request *request, char *text, size_t size);
/* What is given back when a request is completed. */
void sl_page_answer_over(struct sl_page_request *request);
/* The token that it brings, "" if none. */
const char *sl_page_token(const struct sl_page_request *request);

/* Opens a line as whoever asks, or as nobody. True: it is open; else the request was refused, *r is
 * its result. */
SL_MUST_CHECK bool sl_page_line(
	struct sl_page_request *request, struct sl_inside *line, enum MHD_Result *r);
/* What a call of inside.h came to, as a refusal. */
enum MHD_Result sl_page_failed(struct sl_page_request *request,
	const struct sl_inside *line, int outcome, const struct sl_error *err);
/* A value of the query, or NULL. */
const char *sl_page_query(const struct sl_page_request *request, const char *key);
/* The same as a number of at most `most`; fallback where it is missing. False: it is none, and the
 * request was refused. */
SL_MUST_CHECK bool sl_page_query_number(struct sl_page_request *request, const char *key,
	uint64_t most, uint64_t fallback, uint64_t *out, enum MHD_Result *r);
/* {"me":WHO, before a state; the caller frees it. NULL: no memory. */
SL_MUST_CHECK char *sl_page_me(const struct sl_page_request *request);
/* Root, or the daemon's own user. */
bool sl_page_is_admin(const struct sl_user *who);
void sl_page_set_phase(struct sl_page_request *request, enum sl_page_phase phase);

/* The handlers of the routes. */
#define SL_ROUTE(METHOD, path, ACCESS, body, fn) \
	enum MHD_Result sl_page_##fn(struct sl_page_request *request);
#include "daemon/web/routes.def"
#undef SL_ROUTE

#endif
