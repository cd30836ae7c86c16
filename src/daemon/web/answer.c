/*
 * answer - headers and form of all answers
 *
 * The headers restrict the page: it loads from its own server only, is in no frame, and leaks no
 * address. Even if a hostile name became code in the page, the code could neither run nor reach
 * anything.
 */
#include "daemon/link/pids.h"
#include "daemon/web/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"

/* A larger answer counts in the asker's share. */
#define LARGE (64u << 10)
/* The kernel gives this number to no user. */
#define NO_UID ((uid_t)-1)

/* No Strict-Transport-Security with TLS: it would apply to every port of this host name, and to
 * other services there. */
static const struct {
	const char *name, *value;
} headers[] = {
	{"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
		"'self'; "
		"img-src 'self' data:; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Embedder-Policy", "require-corp"},
	{"Permissions-Policy",
		"camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
};

enum MHD_Result sl_page_send(struct sl_page_request *request, unsigned int status,
	struct MHD_Response *response, const char *type)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < SL_ARRAY_LEN(headers); i++)
		(void)MHD_add_response_header(
			response, headers[i].name, headers[i].value);
	if (type)
		(void)MHD_add_response_header(response, "Content-Type", type);
	if (!MHD_get_response_header(response, "Cache-Control"))
		(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	sl_http_set_phase(&request->page->http, request->connection, SL_HTTP_ANSWERING);
	r = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
	return r;
}

enum MHD_Result sl_page_answer(
	struct sl_page_request *request, unsigned int status, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	if (text && status == 200)
		return sl_page_answer_whole(request, text, strlen(text));
	if (!text)
		return MHD_NO;
	return sl_page_send(request, status,
		MHD_create_response_from_buffer(
			strlen(text), text, MHD_RESPMEM_MUST_FREE),
		"application/json");
}

static enum MHD_Result refuse_large(
	struct sl_page_request *request, int taken, size_t size)
{
	uint64_t each = sl_page_share_each(SL_PAGE_ANSWERS);

	if (taken == SL_PAGE_OWN_FULL && size > each)
		return sl_page_refuse(request, 400,
			"the answer would have %zu MiB, and may have %llu; ask for a "
			"shorter time or for longer steps",
			(size_t)(size / SL_MIB) + 1, (unsigned long long)(each / SL_MIB));
	return sl_page_refuse(request, 503,
		"%s large answers that were not read yet; read them, and try again",
		taken == SL_PAGE_OWN_FULL ? "you have" : "there are");
}

enum MHD_Result sl_page_answer_whole(
	struct sl_page_request *request, char *text, size_t size)
{
	struct MHD_Response *response;
	int taken = SL_PAGE_TAKEN;

	if (!text)
		return MHD_NO;
	if (size > LARGE)
		taken = sl_page_share_take(
			request->page->share, request->asker, SL_PAGE_ANSWERS, size);
	if (taken != SL_PAGE_TAKEN) {
		free(text);
		return refuse_large(request, taken, size);
	}
	request->answer_bytes = size > LARGE ? size : 0;
	response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return sl_page_send(request, 200, response, "application/json");
}

void sl_page_answer_over(struct sl_page_request *request)
{
	sl_page_share_give(request->page->share, request->asker, SL_PAGE_ANSWERS,
		request->answer_bytes);
	request->answer_bytes = 0;
}

enum MHD_Result sl_page_refuse(
	struct sl_page_request *request, unsigned int status, const char *format, ...)
{
	struct sl_error tamed = {0};
	struct MHD_Response *response;
	char words[SL_ERROR_TEXT_MAX];
	json_t *json;
	char *text;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	sl_error_set(&tamed, "%s", words);
	json = json_object();
	(void)json_object_set_new(json, "error", sl_text_json(tamed.text));
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	if (!text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(
		strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (response && status == 401)
		(void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (response && status == 429)
		(void)MHD_add_response_header(response, "Retry-After", "1");
	/* The rest of the body is not read. */
	if (response && (status == 413 || status == 431 || !request->route))
		(void)MHD_add_response_header(response, "Connection", "close");
	return sl_page_send(request, status, response, "application/json");
}

/* The user of a request without a token: it has the rights that all users have. Its number is no
 * user's, so its requests count for none. */
static struct sl_user *nobody(void)
{
	struct sl_user *who = calloc(1, sizeof(*who) + sizeof(who->gids[0]));

	if (!who)
		return NULL;
	who->uid = NO_UID;
	who->contained = SL_PIDS_CONTAINED;
	who->gid_count = 1;
	who->gids[0] = NO_UID;
	return who;
}

bool sl_page_line(
	struct sl_page_request *request, struct sl_inside *line, enum MHD_Result *r)
{
	struct sl_user *who = request->who ? NULL : nobody();
	struct sl_error err = {0};
	int outcome = SL_INSIDE_SYSTEM;

	*line = (struct sl_inside){.fd = -1};
	if (request->who || who)
		outcome = sl_inside_open(line, request->page->door,
			request->who ? request->who : who, &err);
	(void)sl_user_free(who);
	if (outcome == SL_INSIDE_OK)
		return true;
	*r = sl_page_failed(request, line, outcome, &err);
	sl_inside_close(line);
	return false;
}

enum MHD_Result sl_page_failed(struct sl_page_request *request,
	const struct sl_inside *line, int outcome, const struct sl_error *err)
{
	unsigned int status = 503;

	if (outcome == SL_INSIDE_REFUSED && line->rejected == SL_REJECT_DENIED)
		status = 403;
	return sl_page_refuse(request, status, "%s",
		err->text[0] ? err->text : "sluiced is out of memory");
}

const char *sl_page_query(const struct sl_page_request *request, const char *key)
{
	return MHD_lookup_connection_value(
		request->connection, MHD_GET_ARGUMENT_KIND, key);
}

bool sl_page_query_number(struct sl_page_request *request, const char *key, uint64_t most,
	uint64_t fallback, uint64_t *out, enum MHD_Result *r)
{
	const char *text = sl_page_query(request, key);
	char *end = NULL;

	*out = fallback;
	if (!text || !text[0])
		return true;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out <= most)
		return true;
	*r = sl_page_refuse(request, 400, "%s is no number from 0 to %llu", key,
		(unsigned long long)most);
	return false;
}
