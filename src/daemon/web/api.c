/*
 * api - the requests for the page's files, the daemon's state, the signed-in user, and the end of a
 * token
 */
#include "daemon/web/internal.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "daemon/report/tell.h"
#include "daemon/web/assets.h"
#include "daemon/web/state.h"

/* A snapshot of this age still counts as the present. */
#define STATE_FRESH (300 * SL_MS)

/* --- files ------------------------------------------------------------------------------------ */

static const char *type_of(const char *name)
{
	static const struct {
		const char *ending, *type;
	} types[] = {
		{".html", "text/html; charset=utf-8"},
		{".css", "text/css; charset=utf-8"},
		{".js", "text/javascript; charset=utf-8"},
		{".mjs", "text/javascript; charset=utf-8"},
		{".svg", "image/svg+xml"},
		{".png", "image/png"},
		{".ico", "image/x-icon"},
		{".json", "application/json"},
		{".txt", "text/plain; charset=utf-8"},
		{".woff2", "font/woff2"},
	};
	size_t length = strlen(name);

	for (size_t i = 0; i < SL_ARRAY_LEN(types); i++) {
		size_t end = strlen(types[i].ending);

		if (length > end && strcmp(name + length - end, types[i].ending) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}

static const struct sl_page_asset *find_asset(const char *name)
{
	for (const struct sl_page_asset *asset = sl_page_assets; asset->name; asset++) {
		if (strcmp(asset->name, name) == 0)
			return asset;
	}
	return NULL;
}

static enum MHD_Result send_asset(
	struct sl_page_request *request, const struct sl_page_asset *asset)
{
	const char *has = MHD_lookup_connection_value(
		request->connection, MHD_HEADER_KIND, "If-None-Match");
	bool same = has && strstr(has, asset->etag);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(same ? 0 : (size_t)asset->size,
			(void *)(uintptr_t)asset->data, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "ETag", asset->etag);
	/* Revalidated each time: after an update the page's files must match. */
	(void)MHD_add_response_header(response, "Cache-Control", "no-cache");
	return sl_page_send(
		request, same ? 304 : 200, response, same ? NULL : type_of(asset->name));
}

enum MHD_Result sl_page_front(struct sl_page_request *request)
{
	const struct sl_page_asset *asset = find_asset("index.html");

	if (asset)
		return send_asset(request, asset);
	return sl_page_refuse(request, 404,
		"this sluiced was built without the page; its API is here (docs/api.md)");
}

enum MHD_Result sl_page_asset(struct sl_page_request *request)
{
	const struct sl_page_asset *asset = find_asset(request->argument);

	if (asset)
		return send_asset(request, asset);
	return sl_page_refuse(request, 404, "the page has no such part");
}

/* --- state ------------------------------------------------------------------------------------ */

bool sl_page_is_admin(const struct sl_user *who)
{
	return who && (who->uid == 0 || who->uid == geteuid());
}

static json_t *me_json(const struct sl_page_request *request)
{
	static const struct sl_page_users none;
	struct sl_page_users users = none;
	char name[64];

	if (!request->who)
		return json_null();
	return json_pack("{s:i, s:o, s:b}", "uid", (int)request->who->uid, "user",
		sl_text_json(sl_page_user(&users, request->who->uid, name, sizeof(name))),
		"admin", sl_page_is_admin(request->who));
}

/* The head of a state, before what is the same for all users. */
char *sl_page_me(const struct sl_page_request *request)
{
	json_t *me = me_json(request);
	char *text = me ? json_dumps(me, JSON_COMPACT | JSON_ENCODE_ANY) : NULL,
	     *head = NULL;

	json_decref(me);
	if (text && asprintf(&head, "{\"me\":%s,", text) < 0)
		head = NULL;
	free(text);
	return head;
}

enum MHD_Result sl_page_state(struct sl_page_request *request)
{
	sl_ns now = sl_clock_now(), changed = atomic_load(&request->page->changed_at);
	struct sl_error err = {0};
	struct sl_page_text *state = sl_page_snapshot_state(request->page->look,
		sl_max_u64(changed, sl_sub_sat(now, STATE_FRESH)), &err);
	char *head, *text = NULL;
	size_t size = 0;

	if (!state)
		return sl_page_refuse(request, 503, "%s", err.text);
	head = sl_page_me(request);
	if (head) {
		size = strlen(head) + state->size;
		text = malloc(size + 1);
	}
	if (text)
		(void)snprintf(text, size + 1, "%s%s", head, state->text);
	(void)sl_page_text_unref(state);
	free(head);
	return sl_page_answer_whole(request, text, size);
}

/* --- tokens ----------------------------------------------------------------------------------- */

enum MHD_Result sl_page_token_end(struct sl_page_request *request)
{
	bool ended = sl_page_tokens_end(request->page->tokens, sl_page_token(request));

	return sl_page_answer(request, 200, json_pack("{s:b}", "ended", ended));
}
