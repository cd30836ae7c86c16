/*
 * call - one request: sending it, collecting the answer, and reporting it to the caller
 *
 * An answer is collected until its end. Of a stream, only the lines that settle() of the client has
 * not passed on yet are kept. Bounds are checked on arrival.
 */
#include "cluster/kubernetes/api/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define CONNECT_TIMEOUT_MS 10000L
#define TOKEN_MAX_BYTES    (64 * SL_KIB)
#define RETRY_AFTER_MAX_S  3600
#define KEEPALIVE_IDLE_S   30L
#define KEEPALIVE_EVERY_S  10L
/* After this time without an acknowledgement of sent bytes the server counts as gone. */
#define UNACKNOWLEDGED_MS 30000

static const struct {
	const char *method, *content_type;
} verbs[SL_KUBE_VERBS] = {
	[SL_KUBE_GET] = {"GET", NULL},
	[SL_KUBE_POST] = {"POST", "application/json"},
	[SL_KUBE_PUT] = {"PUT", "application/json"},
	[SL_KUBE_DELETE] = {"DELETE", "application/json"},
	[SL_KUBE_MERGE] = {"PATCH", "application/merge-patch+json"},
	[SL_KUBE_STRATEGIC] = {"PATCH", "application/strategic-merge-patch+json"},
	/* The server reads it as YAML, which JSON is. */
	[SL_KUBE_APPLY] = {"PATCH", "application/apply-patch+yaml"},
};

static bool is_path(const char *path)
{
	for (const char *at = path; *at; at++)
		if (*at <= ' ' || *at == 0x7f || *at == '#')
			return false;
	return path[0] == '/';
}

/* --- callbacks of libcurl -------------------------------------------------------------------- */

static int set_up_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
	unsigned int span_ms = UNACKNOWLEDGED_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &span_ms, sizeof(span_ms));
	return CURL_SOCKOPT_OK;
}

static int status_of(const struct sl_kube_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static bool is_streaming(const struct sl_kube_call *call)
{
	return call->request.line && status_of(call) == 200;
}

static int grow(struct sl_kube_call *call, size_t more)
{
	size_t room = call->room ? call->room : 4096;
	char *grown;

	while (room < call->used + more + 1)
		room *= 2;
	if (room == call->room)
		return 0;
	grown = realloc(call->data, room);
	if (!grown)
		return sl_err_origin(-ENOMEM);
	call->data = grown;
	call->room = room;
	return 0;
}

/* Returning less than all bytes makes libcurl end the call. In a stream the bound holds for each
 * line; libcurl's chunks are much smaller. */
static size_t take(char *bytes, size_t one, size_t count, void *context)
{
	struct sl_kube_call *call = context;
	bool streams = is_streaming(call);
	const char *first = streams ? memchr(bytes, '\n', count) : NULL;
	const char *last = streams ? memrchr(bytes, '\n', count) : NULL;

	call->line_bytes += first ? (size_t)(first - bytes) : count;
	call->is_too_large = call->line_bytes > call->request.max_bytes;
	if (call->is_too_large || grow(call, count) < 0)
		return 0;
	if (last)
		call->line_bytes = (size_t)(bytes + count - last - 1);
	memcpy(call->data + call->used, bytes, count);
	call->used += count;
	call->data[call->used] = '\0';
	if (last && !sl_list_is_linked(&call->ready_link))
		sl_list_push_tail(&call->kube->ready, &call->ready_link);
	return count;
}

/* --- a call's life ------------------------------------------------------------------------- */

void sl_kube_call_free(struct sl_kube_call *call)
{
	if (call->gone)
		*call->gone = true;
	if (call->slot)
		*call->slot = NULL;
	sl_list_unlink(&call->link);
	sl_list_unlink(&call->ready_link);
	sd_event_source_disable_unref(call->later);
	if (call->is_added)
		(void)curl_multi_remove_handle(call->kube->multi, call->easy);
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	free(call->what);
	free(call->data);
	free(call);
}

static void call_freep(struct sl_kube_call **call)
{
	if (*call)
		sl_kube_call_free(*call);
}

/* The present Authorization header: NULL without a token. The kubelet replaces a service account's
 * token long before it expires. */
static const char *authorization(struct sl_kube *kube)
{
	const struct sl_kube_config *config = &kube->config;
	sl_cleanup(sl_freep) char *token = NULL;
	struct stat now = {0}, *old = &kube->token_stat;
	char *header = NULL;
	size_t size = 0;

	if (!config->token_path || stat(config->token_path, &now) < 0)
		return kube->authorization;
	if (now.st_ino == old->st_ino && now.st_size == old->st_size &&
		now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == old->st_mtim.tv_nsec)
		return kube->authorization;
	if (sl_file_read(config->token_path, TOKEN_MAX_BYTES, &token, &size) < 0)
		return kube->authorization;
	token[strcspn(token, "\r\n")] = '\0';
	if (asprintf(&header, "Authorization: Bearer %s", token) >= 0) {
		free(kube->authorization);
		kube->authorization = header;
		kube->token_stat = now;
	}
	explicit_bzero(token, size);
	return kube->authorization;
}

static int add_header(struct sl_kube_call *call, const char *header)
{
	struct curl_slist *longer = curl_slist_append(call->headers, header);

	if (!longer)
		return sl_err_origin(-ENOMEM);
	call->headers = longer;
	return 0;
}

static int add_headers(struct sl_kube_call *call)
{
	const char *type = verbs[call->request.verb].content_type;
	char content_type[80];
	int r = add_header(call, "Accept: application/json");

	/* libcurl would otherwise wait up to a second for a 100 before it sends a body. */
	if (r == 0)
		r = add_header(call, "Expect:");
	if (r == 0 && type) {
		(void)snprintf(
			content_type, sizeof(content_type), "Content-Type: %s", type);
		r = add_header(call, content_type);
	}
	return r;
}

static void set_trust(CURL *easy, const struct sl_kube_config *config)
{
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (config->path[SL_KUBE_CA]) {
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, config->path[SL_KUBE_CA]);
		/* The system's certificate authorities do not count for a cluster. */
		(void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	if (config->path[SL_KUBE_CERT]) {
		(void)curl_easy_setopt(easy, CURLOPT_SSLCERT, config->path[SL_KUBE_CERT]);
		(void)curl_easy_setopt(easy, CURLOPT_SSLKEY, config->path[SL_KUBE_KEY]);
	}
	if (config->is_inside)
		(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
}

static void set_bounds(CURL *easy, sl_ns timeout)
{
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(timeout / SL_MS));
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	(void)curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, set_up_socket);
}

static int set_body(CURL *easy, const json_t *body)
{
	sl_cleanup(sl_freep) char *text = NULL;

	if (!body)
		return 0;
	text = json_dumps(body, JSON_COMPACT);
	if (!text)
		return sl_err_origin(-ENOMEM);
	if (curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
		    (curl_off_t)strlen(text)) != CURLE_OK ||
		curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, text) != CURLE_OK)
		return sl_err_origin(-ENOMEM);
	return 0;
}

static int set_up(struct sl_kube_call *call)
{
	const struct sl_kube_request *request = &call->request;
	const char *server = call->kube->config.server;
	const char *method = verbs[request->verb].method;
	sl_cleanup(sl_freep) char *url = NULL;
	CURL *easy = curl_easy_init();
	int r;

	call->easy = easy;
	if (!easy || asprintf(&url, "%s%s", server, request->path) < 0 ||
		asprintf(&call->what, "%s %.*s", method, (int)strcspn(request->path, "?"),
			request->path) < 0)
		return sl_err_origin(-ENOMEM);
	set_trust(easy, &call->kube->config);
	set_bounds(easy, request->timeout);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice-kube/" SL_VERSION);
	(void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_text);
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	if (curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK)
		return sl_err_origin(-ENOMEM);
	r = set_body(easy, request->body);
	if (r == 0)
		r = add_headers(call);
	/* Set after the body, which changes the method to POST. */
	if (r == 0 && curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK)
		r = sl_err_origin(-ENOMEM);
	return r;
}

/* Sets options that may have changed since the call was made. */
static int start(struct sl_kube_call *call)
{
	const char *header = authorization(call->kube);
	int r = header ? add_header(call, header) : 0;

	if (r < 0)
		return r;
	if (curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) != CURLE_OK ||
		curl_multi_add_handle(call->kube->multi, call->easy) != CURLM_OK)
		return sl_err_origin(-ENOMEM);
	call->is_added = true;
	return 0;
}

static int on_later(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_kube_call *call = context;

	if (start(call) < 0)
		sl_kube_call_finish(call, CURLE_OUT_OF_MEMORY);
	return 0;
}

int sl_kube_call(struct sl_kube *kube, const struct sl_kube_request *request,
	struct sl_kube_call **slot)
{
	sl_cleanup(call_freep) struct sl_kube_call *call = NULL;
	int r;

	if (sl_kube_has_ended(kube))
		return sl_err_origin(-ESHUTDOWN);
	/* Requests that write need a body. */
	if (!is_path(request->path) || (!request->body && request->verb != SL_KUBE_GET &&
					       request->verb != SL_KUBE_DELETE))
		return sl_err_origin(-EINVAL);
	call = calloc(1, sizeof(*call));
	if (!call)
		return sl_err_origin(-ENOMEM);
	sl_list_init(&call->link);
	sl_list_init(&call->ready_link);
	call->kube = kube;
	call->request = *request;
	if (!call->request.timeout)
		call->request.timeout = SL_KUBE_TIMEOUT;
	if (!call->request.max_bytes)
		call->request.max_bytes = SL_KUBE_OBJECT_MAX_BYTES;
	r = set_up(call);
	if (r == 0 && request->after)
		r = sd_event_add_time_relative(kube->event, &call->later, CLOCK_MONOTONIC,
			request->after / SL_US, SL_KUBE_ACCURACY_US, on_later, call);
	else if (r == 0)
		r = start(call);
	if (r < 0)
		return sl_err_origin(r);
	call->request.path = NULL;
	call->request.body = NULL;
	call->slot = slot;
	if (slot)
		*slot = call;
	sl_list_push_tail(&kube->calls, &call->link);
	call = NULL;
	return 0;
}

void sl_kube_cancel(struct sl_kube_call **slot)
{
	if (*slot)
		sl_kube_call_free(*slot);
}

/* --- the end of a call --------------------------------------------------------------------- */

static void set_no_answer(struct sl_kube_call *call, struct sl_error *err, CURLcode code)
{
	const char *why = call->curl_text[0] ? call->curl_text : curl_easy_strerror(code);

	if (call->is_too_large)
		sl_error_set(err, "%.200s: more than %zu bytes were sent", call->what,
			call->request.max_bytes);
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		sl_error_set(err,
			"%.150s: the API server's certificate is not the cluster's: "
			"%.150s; "
			"compare server and certificate-authority",
			call->what, why);
	else
		sl_error_set(err, "%.200s: no answer from %.100s: %.150s", call->what,
			call->kube->config.server, why);
}

static void set_refusal(
	struct sl_kube_call *call, struct sl_error *err, struct sl_kube_answer *answer)
{
	const char *message = sl_kube_text_at(answer->body, "message", NULL);

	if (!*message && call->data)
		message = call->data;
	answer->reason = sl_kube_text_at(answer->body, "reason", NULL);
	sl_error_set(err, "%.150s: %d %.40s: %.250s", call->what, answer->status,
		answer->reason, message);
}

static void set_answer(struct sl_kube_call *call, CURLcode code,
	struct sl_kube_answer *answer, struct sl_error *err)
{
	curl_off_t retry_after_s = 0;
	bool streams = is_streaming(call);

	answer->error = err->text;
	answer->reason = "";
	answer->is_too_large = call->is_too_large;
	(void)curl_easy_getinfo(call->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s > 0)
		answer->retry_after_s = (unsigned int)sl_min_u64(
			(uint64_t)retry_after_s, RETRY_AFTER_MAX_S);
	if (code != CURLE_OK)
		set_no_answer(call, err, code);
	if (code == CURLE_OK || streams)
		answer->status = status_of(call);
	if (code != CURLE_OK || streams)
		return;
	answer->is_too_large =
		call->request.is_page && sl_kube_is_vast(call->data, call->used);
	if (call->used && !answer->is_too_large)
		answer->body = sl_kube_parse_object(call->data, call->used);
	if (answer->status / 100 != 2) {
		set_refusal(call, err, answer);
	} else if (!answer->body) {
		sl_error_set(err, "%.200s: the answer %s", call->what,
			answer->is_too_large ? "has too many values" : "is not JSON");
		answer->status = 0;
	}
}

void sl_kube_call_finish(struct sl_kube_call *call, CURLcode code)
{
	struct sl_kube_request request = call->request;
	struct sl_kube_answer answer = {0};
	struct sl_error err = {{0}};

	set_answer(call, code, &answer, &err);
	sl_kube_call_free(call);
	if (request.done)
		request.done(request.context, &answer);
	json_decref(answer.body);
}

void sl_kube_call_serve_lines(struct sl_kube_call *call)
{
	bool gone = false;
	size_t from = 0;

	call->gone = &gone;
	for (;;) {
		char *line = call->data + from;
		char *end = memchr(line, '\n', call->used - from);

		if (!end)
			break;
		*end = '\0';
		from += (size_t)(end - line) + 1;
		call->request.line(call->request.context, line, (size_t)(end - line));
		if (gone)
			return;
	}
	call->gone = NULL;
	call->used -= from;
	memmove(call->data, call->data + from, call->used + 1);
	/* Free the memory of one large line. */
	if (call->room > 64 * SL_KIB && call->used == 0) {
		free(sl_steal(&call->data));
		call->room = 0;
	}
}
