/*
 * internal - shared by the parts of the page's server
 *
 * The loop owns struct sl_page until the threads start. From then on only members that lock
 * themselves change. A request belongs to its connection's thread.
 */
#ifndef SL_DAEMON_WEB_INTERNAL_H
#define SL_DAEMON_WEB_INTERNAL_H

#include <jansson.h>
#include <stdatomic.h>

#include "daemon/link/inside.h"
#include "daemon/web/guard.h"
#include "daemon/web/http.h"
#include "daemon/web/rate.h"
#include "daemon/web/snapshot.h"
#include "daemon/web/tokens.h"

/* Most bytes of a body; of a job's, which has its command and environment. */
#define SL_PAGE_BODY_MAX     (64u << 10)
#define SL_PAGE_JOB_BODY_MAX (256u << 10)

struct sl_history;

struct sl_page {
	struct sl_inside_door *door;
	struct sl_http http;
	struct sl_page_rules rules;
	char names[1024], machine[256];
	bool reads_need_token;
	char data_dir[SL_CONFIG_TEXT_MAX];
	char address[192]; /* for a browser on this machine; "" for a Unix socket */
	struct sl_page_snapshot *look;
	struct sl_page_tokens *tokens;
	struct sl_page_rate *reads, *changes, *failures;
	struct sl_page_share *share;
	struct sl_history *history; /* NULL: none is written */
	atomic_uint questions;      /* to the history, being worked on */
	/* Time of the last change through the page: an older snapshot is stale. */
	_Atomic sl_ns changed_at;
	char *certificate, *key; /* PEM; NULL: no TLS */
	atomic_bool ending;
};

struct sl_page_route;

struct sl_page_request {
	struct sl_page *page;
	struct MHD_Connection *connection;
	const struct sl_page_route *route;
	char argument[128];  /* what stands for the * in the route */
	struct sl_user *who; /* NULL: not known */
	struct sl_page_asker asker;
	uint64_t answer_bytes; /* of the asker's share, until completed */
	char *body;
	size_t size, room;
	json_t *json;  /* parsed from the body */
	bool answered; /* before its body came */
	bool too_long;
};

typedef enum MHD_Result (*sl_page_fn)(struct sl_page_request *request);

enum sl_page_access {
	SL_PAGE_FRONT = 0, /* the page's files, which hold no secret */
	SL_PAGE_READ,      /* needs a token if reading does */
	SL_PAGE_OWN,       /* always needs a token */
	SL_PAGE_CHANGE     /* the same; the body must be JSON */
};

struct sl_page_route {
	const char *method, *path; /* path: a * matches one segment */
	enum sl_page_access access;
	size_t body_max;
	sl_page_fn fn;
};

/* The route of a target; NULL: none. *allowed is then the methods that exist at that path, "" if
 * none. */
const struct sl_page_route *sl_page_route_find(
	const char *method, const char *path, char argument[128], char allowed[32]);
/* The routes in order; NULL after the last. */
const struct sl_page_route *sl_page_route_at(size_t index);

/* --- answers; one per request ----------------------------------------------------------------- */

/* Takes json; NULL: out of memory. */
enum MHD_Result sl_page_answer(
	struct sl_page_request *request, unsigned int status, json_t *json);
/* Answers {"error": text}. */
enum MHD_Result sl_page_refuse(struct sl_page_request *request, unsigned int status,
	const char *format, ...) SL_PRINTF(3, 4);
/* Takes response (NULL: out of memory), and adds the headers of all answers. */
enum MHD_Result sl_page_send(struct sl_page_request *request, unsigned int status,
	struct MHD_Response *response, const char *type);

/* The key of a request's rates and shares: its user, or its address. */
uint64_t sl_page_rate_key(const struct sl_page_request *request);
/* JSON; takes text (NULL: out of memory). A large answer counts in the asker's share until the
 * request completes. */
enum MHD_Result sl_page_answer_whole(
	struct sl_page_request *request, char *text, size_t size);
/* Returns what the request holds of the asker's share. */
void sl_page_answer_over(struct sl_page_request *request);
/* The token in the request, "" if none. */
const char *sl_page_token(const struct sl_page_request *request);

/* Opens a line as the request's user, or as an unknown user without a token. True: it is open; else
 * the request was refused, with result *r. */
SL_MUST_CHECK bool sl_page_line(
	struct sl_page_request *request, struct sl_inside *line, enum MHD_Result *r);
/* Refuses the request because a call of inside.h failed. */
enum MHD_Result sl_page_failed(struct sl_page_request *request,
	const struct sl_inside *line, int outcome, const struct sl_error *err);
/* A value of the query, or NULL. */
const char *sl_page_query(const struct sl_page_request *request, const char *key);
/* The same as a number of at most `most`; fallback if absent. False: it is not such a number, and
 * the request was refused. */
SL_MUST_CHECK bool sl_page_query_number(struct sl_page_request *request, const char *key,
	uint64_t most, uint64_t fallback, uint64_t *out, enum MHD_Result *r);
/* {"me":USER, as the head of a state; the caller frees it. NULL: no memory. */
SL_MUST_CHECK char *sl_page_me(const struct sl_page_request *request);
/* Whether it is root, or the daemon's own user. */
bool sl_page_is_admin(const struct sl_user *who);

/* Starts the threads. certificate "": no TLS. 0 or negative errno; err may say more. */
SL_MUST_CHECK int sl_page_server_start(struct sl_page *page, const char *certificate,
	const char *key, struct sl_error *err);
extern const struct sl_http_site sl_page_site;

/* The handlers of the routes. */
#define SL_ROUTE(METHOD, path, ACCESS, body, fn) \
	enum MHD_Result sl_page_##fn(struct sl_page_request *request);
#include "daemon/web/routes.def"
#undef SL_ROUTE

#endif
