/*
 * server - libmicrohttpd, and the checks of a request
 *
 * A request passes, in this order: rate, guard (web/guard.h), route, token, size. Then its body is
 * read, and the handler runs once, in the connection's thread, where it may block.
 */
#include "daemon/web/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/identity.h"
#include "daemon/link/pids.h"

/* JSON of the API nests 3 levels; each level costs stack. */
#define DEPTH_MAX 16
/* The delay of an answer to a wrong token. */
#define FAILURE_PAUSE (200 * SL_MS)

/* At a Unix socket: the user who opened the connection, as a token would stand for the user. HTTP
 * has no place for a nonce (identity.h). So on kernels that do not report the process, the user
 * counts as one in a container with unknown rights. */
static void *identify(struct sl_http *http, int fd)
{
	bool is_socket = http->listener.address.kind == SL_CONFIG_SOCKET;
	struct sl_user *who = is_socket ? sl_user_of_socket(fd) : NULL;
	struct sl_identity identity;

	if (!who)
		return NULL;
	who->contained = SL_PIDS_CONTAINED;
	if (sl_identity_of_socket(fd, &identity) != SL_IDENTITY_OK)
		return who;
	if (identity.proven) {
		sl_user_ask_rights(who, identity.pid, identity.pidfd);
		who->contained = sl_pids_apart(identity.pid, identity.start_ticks);
	}
	sl_closep(&identity.pidfd);
	return who;
}

static void see_off(void *guest)
{
	(void)sl_user_free(guest);
}

/* --- may it? ---------------------------------------------------------------------------------- */

static enum MHD_Result count_host(
	void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct sl_page_headers *headers = context;

	if (strcasecmp(key, "Host") == 0) {
		headers->hosts++;
		headers->host = value ? value : "";
	}
	return MHD_YES;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static unsigned int guard(struct sl_page_request *request, const char *method,
	const char *url, struct sl_error *why)
{
	struct MHD_Connection *mhd = request->connection;
	const char *length = header(mhd, "Content-Length");
	struct sl_page_headers headers = {.origin = header(mhd, "Origin"),
		.site = header(mhd, "Sec-Fetch-Site"),
		.mode = header(mhd, "Sec-Fetch-Mode"),
		.type = header(mhd, "Content-Type"),
		.changes = strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
			   strcmp(method, MHD_HTTP_METHOD_HEAD) != 0,
		.has_body = header(mhd, "Transfer-Encoding") ||
			    (length && strcmp(length, "0") != 0),
		.is_front = strcmp(url, "/") == 0};

	(void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, count_host, &headers);
	return sl_page_guard(&request->page->rules, &headers, why);
}

static void pause_after_failure(struct sl_page *page)
{
	sl_ns end = sl_clock_now() + FAILURE_PAUSE;

	while (!atomic_load(&page->ending) && sl_clock_now() < end)
		sl_clock_sleep(20 * SL_MS);
}

/* True: refused, with result *r. A wrong token is refused even where none is needed, so that the
 * user notices. */
static bool is_stranger(struct sl_page_request *request, enum MHD_Result *r)
{
	struct sl_page *page = request->page;
	struct sl_http_connection *connection =
		sl_http_connection_of(request->connection);
	const char *value = header(request->connection, "Authorization");
	uint64_t key = connection ? connection->key : 0;

	if (!value)
		return false;
	if (!sl_page_rate_take(page->failures, key, sl_clock_now())) {
		*r = sl_page_refuse(
			request, 429, "too many tokens were wrong; wait a second");
		return true;
	}
	pause_after_failure(page);
	*r = sl_page_refuse(request, 401,
		"this token is not valid, or not any more (%u hours, or until sluiced is "
		"restarted); get another one with `sluice page`",
		(unsigned int)(SL_PAGE_TOKEN_LIFE / SL_S / 3600));
	return true;
}

const char *sl_page_token(const struct sl_page_request *request)
{
	const char *value = header(request->connection, "Authorization");

	if (!value || strncasecmp(value, "Bearer ", strlen("Bearer ")) != 0)
		return "";
	return value + strlen("Bearer ");
}

static struct sl_user *who_asks(struct sl_page_request *request)
{
	struct sl_http_connection *connection =
		sl_http_connection_of(request->connection);

	if (request->page->rules.is_socket)
		return connection && connection->guest ? sl_user_copy(connection->guest)
						       : NULL;
	return sl_page_tokens_find(
		request->page->tokens, sl_page_token(request), sl_clock_now());
}

static bool needs_token(const struct sl_page *page, const struct sl_page_route *route)
{
	return route->access >= SL_PAGE_OWN ||
	       (route->access == SL_PAGE_READ && page->reads_need_token);
}

/* A known user has a key of its own, so that others at the same address cannot use up its share.
 * Users' keys lie above all IPv4 addresses; an IPv6 network may share one at worst. */
uint64_t sl_page_rate_key(const struct sl_page_request *request)
{
	const struct sl_http_connection *connection =
		sl_http_connection_of(request->connection);

	if (request->who)
		return 1ull << 40 | request->who->uid;
	return connection ? connection->key : 0;
}

/* False: the request was answered, with result *r. */
static bool may_enter(struct sl_page_request *request, const char *method,
	const char *url, enum MHD_Result *r)
{
	struct sl_page *page = request->page;
	struct sl_error why = {0};
	unsigned int status;
	char allowed[32];
	bool changes;

	request->who = who_asks(request);
	request->asker =
		(struct sl_page_asker){sl_page_rate_key(request), request->who != NULL};
	sl_http_set_asker(&page->http, request->connection, request->asker);
	if (!sl_page_rate_take(page->reads, request->asker.key, sl_clock_now())) {
		*r = sl_page_refuse(request, 429, "too many requests; wait a second");
		return false;
	}
	status = guard(request, method, url, &why);
	if (status) {
		*r = sl_page_refuse(request, status, "%s", why.text);
		return false;
	}
	request->route = sl_page_route_find(method, url, request->argument, allowed);
	if (!request->route) {
		*r = allowed[0] ? sl_page_refuse(request, 405,
					  "only %s is understood here", allowed)
				: sl_page_refuse(request, 404,
					  "there is nothing here; see docs/api.md");
		return false;
	}
	if (request->route->access == SL_PAGE_FRONT)
		return true;
	if (!request->who && !page->rules.is_socket && is_stranger(request, r))
		return false;
	if (!request->who && needs_token(page, request->route)) {
		*r = sl_page_refuse(request, 401,
			"this needs a token; `sluice page` prints an address with one");
		return false;
	}
	changes = request->route->access == SL_PAGE_CHANGE;
	if (changes &&
		!sl_page_rate_take(page->changes, request->who->uid, sl_clock_now())) {
		*r = sl_page_refuse(request, 429, "too many changes; wait a second");
		return false;
	}
	return true;
}

/* --- bodies ----------------------------------------------------------------------------------- */

static bool is_too_long(const struct sl_page_request *request)
{
	const char *length = header(request->connection, "Content-Length");

	return length && strtoull(length, NULL, 10) > request->route->body_max;
}

/* False: no memory. */
static bool gather(struct sl_page_request *request, const char *data, size_t size)
{
	if (request->size + size > request->room) {
		size_t room = sl_max_u64(2 * request->room, request->size + size);
		char *body = realloc(request->body, room + 1);

		if (!body)
			return false;
		request->body = body;
		request->room = room;
	}
	memcpy(request->body + request->size, data, size);
	request->size += size;
	return true;
}

static bool is_shallow(const char *text, size_t size)
{
	unsigned int depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < size; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '[' || text[i] == '{'))
			depth++;
		else if (!quoted && (text[i] == ']' || text[i] == '}') && depth)
			depth--;
		if (depth > DEPTH_MAX)
			return false;
	}
	return true;
}

static bool read_json(struct sl_page_request *request, enum MHD_Result *r)
{
	json_error_t where = {0};

	if (request->size == 0) {
		request->json = json_object();
		return true;
	}
	if (!is_shallow(request->body, request->size)) {
		*r = sl_page_refuse(request, 400, "the body is nested too deeply");
		return false;
	}
	request->json =
		json_loadb(request->body, request->size, JSON_REJECT_DUPLICATES, &where);
	if (json_is_object(request->json))
		return true;
	*r = request->json
		     ? sl_page_refuse(request, 400, "the body must be a JSON object")
		     : sl_page_refuse(request, 400, "the body is not JSON: line %d: %s",
			       where.line, where.text);
	return false;
}

/* --- requests --------------------------------------------------------------------------------- */

static enum MHD_Result refuse_body(struct sl_page_request *request)
{
	return sl_page_refuse(request, 413, "the body may have %zu bytes here",
		request->route->body_max);
}

static enum MHD_Result handle(struct sl_page_request *request)
{
	enum MHD_Result r = MHD_NO;

	sl_http_set_phase(&request->page->http, request->connection, SL_HTTP_ANSWERING);
	if (request->route->access == SL_PAGE_CHANGE && !read_json(request, &r))
		return r;
	r = request->route->fn(request);
	if (request->route->access == SL_PAGE_CHANGE)
		atomic_store(&request->page->changed_at, sl_clock_now());
	return r;
}

static enum MHD_Result begin(struct sl_page *page, struct MHD_Connection *connection,
	const char *url, const char *method, void **context)
{
	struct sl_page_request *request = calloc(1, sizeof(*request));
	enum MHD_Result r = MHD_NO;

	if (!request)
		return MHD_NO;
	*context = request;
	request->page = page;
	request->connection = connection;
	if (!may_enter(request, method, url, &r)) {
		request->answered = true;
		return r;
	}
	if (!is_too_long(request))
		return MHD_YES;
	request->answered = true;
	return refuse_body(request);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload_data,
	size_t *upload_data_size, void **request_context)
{
	struct sl_page *page = context;
	struct sl_page_request *request = *request_context;

	if (!request)
		return begin(page, connection, url, method, request_context);
	if (*upload_data_size) {
		size_t size = *upload_data_size;

		*upload_data_size = 0;
		if (request->answered || request->too_long)
			return MHD_YES;
		/* The library takes no answer before the body has ended. A client that never ends
		 * it is closed in time. */
		request->too_long = request->size + size > request->route->body_max;
		return request->too_long || gather(request, upload_data, size) ? MHD_YES
									       : MHD_NO;
	}
	if (request->answered)
		return MHD_YES;
	return request->too_long ? refuse_body(request) : handle(request);
}

static void on_completed(void *context, struct MHD_Connection *connection,
	void **request_context, enum MHD_RequestTerminationCode how)
{
	struct sl_page_request *request = *request_context;

	if (!request)
		return;
	sl_http_set_phase(&request->page->http, connection, SL_HTTP_READING);
	sl_page_answer_over(request);
	(void)sl_user_free(request->who);
	json_decref(request->json);
	free(request->body);
	free(request);
	*request_context = NULL;
}

/* --- start and end ---------------------------------------------------------------------------- */

static int read_pem(const char *path, char **out, struct sl_error *err)
{
	size_t size;
	int r = sl_file_read(path, 1u << 20, out, &size);

	if (r < 0)
		sl_error_set(err,
			"page: cannot read %.300s: %s; name a PEM file that sluiced may "
			"read",
			path, strerror(-r));
	return r;
}

static void look_at_key(const char *path)
{
	struct stat is;

	if (stat(path, &is) == 0 && (is.st_mode & (S_IRGRP | S_IROTH)))
		sl_warning("page_key: others may read %.300s; chmod 600 it", path);
}

const struct sl_http_site sl_page_site = {
	.name = "page",
	.connections = SL_PAGE_CONNECTIONS,
	.head_max_bytes = 16u << 10,
	.reading_life = 15 * SL_S,
	.still_s = 40, /* more than between two comments of a stream */
	.greet = identify,
	.see_off = see_off,
	.on_request = on_request,
	.on_completed = on_completed,
};

int sl_page_server_start(struct sl_page *page, const char *certificate, const char *key,
	struct sl_error *err)
{
	int r = 0;

	if (certificate[0])
		r = read_pem(certificate, &page->certificate, err);
	if (r == 0 && certificate[0])
		r = read_pem(key, &page->key, err);
	if (r == 0 && certificate[0])
		look_at_key(key);
	if (r < 0)
		return r;
	r = sl_http_start(&page->http, page, page->certificate, page->key);
	if (r != -ENOTSUP)
		return r;
	sl_error_set(err, "page: libmicrohttpd does not start%s",
		certificate[0] ? "; are page_certificate and page_key PEM files that "
				 "belong together?"
			       : "");
	return certificate[0] ? sl_err_origin(-EINVAL) : r;
}
