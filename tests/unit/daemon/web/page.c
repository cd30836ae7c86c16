/* The parts of the page's server that need neither a socket nor a daemon: who may read, and
 * what for. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/jobs/compute.h"
#include "daemon/web/assets.h"
#include "daemon/web/guard.h"
#include "daemon/web/internal.h"
#include "daemon/web/rate.h"
#include "daemon/web/tokens.h"

/* --- headers ---------------------------------------------------------------------------------- */

enum place { LOOPBACK, NETWORK, TLS, SOCKET };

static struct sl_page_rules rules_of(enum place place)
{
	return (struct sl_page_rules){.is_socket = place == SOCKET,
		.is_loopback = place == LOOPBACK,
		.tls = place == TLS,
		.names = "page.example.org, other.example.org",
		.machine = "gpubox"};
}

struct ask {
	const char *what;
	enum place place;
	struct sl_page_headers headers;
	unsigned int status;
};

#define GET(...)                        \
	{                               \
		.hosts = 1, __VA_ARGS__ \
	}
#define POST(...)                                                          \
	{                                                                  \
		.hosts = 1, .changes = true, .has_body = true, __VA_ARGS__ \
	}
#define JSON .type = "application/json"

static const struct ask asks[] = {
	{"curl", LOOPBACK, GET(.host = "127.0.0.1:7654"), 0},
	{"by name", LOOPBACK, GET(.host = "localhost:7654"), 0},
	{"through ssh -L", LOOPBACK, GET(.host = "localhost:9999"), 0},
	{"IPv6", LOOPBACK, GET(.host = "[::1]:7654"), 0},
	{"a name that was told", LOOPBACK, GET(.host = "PAGE.example.org"), 0},
	{"the other one, with a port", LOOPBACK, GET(.host = "other.example.org:80"), 0},
	{"part of one", LOOPBACK, GET(.host = "example.org"), 421},
	{"a rebound name", LOOPBACK, GET(.host = "evil.example"), 421},
	{"that begins well", LOOPBACK, GET(.host = "localhost.evil.example"), 421},
	{"that ends well", LOOPBACK, GET(.host = "evil.localhost"), 421},
	{"an address that is not ours", LOOPBACK, GET(.host = "192.168.1.1:7654"), 421},
	{"the machine's name, at the loopback", LOOPBACK, GET(.host = "gpubox"), 421},
	{"no host", LOOPBACK, {.hosts = 0}, 421},
	{"an empty host", LOOPBACK, GET(.host = ""), 421},
	{"two hosts", LOOPBACK, {.hosts = 2, .host = "localhost"}, 421},
	{"half a bracket", NETWORK, GET(.host = "[::1"), 421},
	{"brackets of nothing", NETWORK, GET(.host = "[]"), 421},
	{"a port of letters", NETWORK, GET(.host = "gpubox:http"), 421},
	{"more behind the bracket", NETWORK, GET(.host = "[fe80::1]x"), 421},
	{"an address", NETWORK, GET(.host = "10.0.0.7:7654"), 0},
	{"an address of IPv6", NETWORK, GET(.host = "[fe80::1]:7654"), 0},
	{"the machine's name", NETWORK, GET(.host = "gpubox:7654"), 0},
	{"a rebound name from afar", NETWORK, GET(.host = "evil.example:7654"), 421},
	{"any host at a socket", SOCKET, GET(.host = "whatever"), 0},
	{"none at a socket", SOCKET, {.hosts = 0}, 0},

	{"our own page", LOOPBACK,
		POST(.host = "localhost:7654", .origin = "http://localhost:7654",
			.site = "same-origin", JSON),
		0},
	{"another port of this machine", LOOPBACK,
		POST(.host = "localhost:7654", .origin = "http://localhost:8888",
			.site = "same-site", JSON),
		403},
	{"another site", LOOPBACK,
		POST(.host = "localhost:7654", .origin = "http://evil.example", JSON),
		403},
	{"another site that reads", LOOPBACK,
		GET(.host = "localhost:7654", .origin = "http://evil.example"), 403},
	{"a sandboxed frame", LOOPBACK, GET(.host = "localhost:7654", .origin = "null"),
		403},
	{"another scheme", TLS, POST(.host = "gpubox", .origin = "http://gpubox", JSON),
		403},
	{"our scheme", TLS, POST(.host = "gpubox", .origin = "https://gpubox", JSON), 0},
	{"an origin that begins well", LOOPBACK,
		POST(.host = "localhost:7654", .origin = "http://localhost:7654.evil",
			JSON),
		403},
	{"an image of another site", LOOPBACK,
		GET(.host = "localhost:7654", .site = "cross-site", .mode = "no-cors"),
		403},
	{"the same from a neighbour's port", LOOPBACK,
		GET(.host = "localhost:7654", .site = "same-site", .mode = "no-cors"),
		403},
	{"a link to the page", LOOPBACK,
		GET(.host = "localhost:7654", .site = "cross-site", .mode = "navigate",
			.is_front = true),
		0},
	{"a link to the API", LOOPBACK,
		GET(.host = "localhost:7654", .site = "cross-site", .mode = "navigate"),
		403},
	{"the page as a script", LOOPBACK,
		GET(.host = "localhost:7654", .site = "cross-site", .mode = "no-cors",
			.is_front = true),
		403},
	{"typed into the address line", LOOPBACK,
		GET(.host = "localhost:7654", .site = "none", .mode = "navigate"), 0},
	{"a word we do not know", LOOPBACK, GET(.host = "localhost:7654", .site = "near"),
		403},

	{"a form", LOOPBACK,
		POST(.host = "localhost", .type = "application/x-www-form-urlencoded"),
		415},
	{"a form that looks like JSON", LOOPBACK,
		POST(.host = "localhost", .type = "text/plain"), 415},
	{"no type", LOOPBACK, POST(.host = "localhost"), 415},
	{"a type that begins well", LOOPBACK,
		POST(.host = "localhost", .type = "application/jsonx"), 415},
	{"JSON with a charset", LOOPBACK,
		POST(.host = "localhost", .type = "Application/JSON; charset=utf-8"), 0},
	{"no body, no type", LOOPBACK, {.hosts = 1, .host = "localhost", .changes = true},
		0},
	{"no JSON at a socket", SOCKET, POST(.host = "x", .type = "text/plain"), 415},
};

static void who_is_let_in(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(asks); i++) {
		struct sl_page_rules rules = rules_of(asks[i].place);
		struct sl_error why = {0};
		unsigned int status = sl_page_guard(&rules, &asks[i].headers, &why);

		if (status != asks[i].status || (status != 0) != (why.text[0] != 0))
			fail_msg("%s: %u (%s), not %u", asks[i].what, status, why.text,
				asks[i].status);
	}
}

static void hosts_pass_or_not(void **state)
{
	static const struct {
		const char *host;
		bool passes;
	} cases[] = {
		{"localhost", true},
		{"LocalHost:9464", true},
		{"127.0.0.1", true},
		{"127.0.0.1:9464", true},
		{"127.1.2.3:80", true},
		{"[::1]", true},
		{"[::1]:9464", true},
		{"", false},
		{":9464", false},
		{"evil.example", false},
		{"evil.example:9464", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"localhost:", false},
		{"localhost:80x", false},
		{"localhost:80:80", false},
		{"127.0.0.1 evil", false},
		{"127.1", false},
		{"0x7f.0.0.1", false},
		{"2130706433", false},
		{"128.0.0.1", false},
		{"10.0.0.1", false},
		{"0.0.0.0", false},
		{"[::1]evil", false},
		{"[::2]", false},
		{"::1", false},
		{"[::1", false},
		{"localhost,evil.example", false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		if (sl_page_is_local_host(cases[i].host) != cases[i].passes)
			fail_msg("Host: %s must %spass", cases[i].host,
				cases[i].passes ? "" : "not ");
	}
}

/* --- routes ----------------------------------------------------------------------------------- */

static void paths_lead_to_routes(void **state)
{
	static const struct {
		const char *method, *path, *argument, *allowed; /* argument NULL: none */
	} rows[] = {
		{"GET", "/", "", ""},
		{"HEAD", "/", "", ""},
		{"GET", "/assets/index.html", "index.html", ""},
		{"GET", "/assets/", NULL, ""},
		{"GET", "/assets/../index.html", NULL, ""},
		{"GET", "/api/state", "", ""},
		{"GET", "/api/state/", NULL, ""},
		{"GET", "//api/state", NULL, ""},
		{"POST", "/api/state", NULL, "GET"},
		{"POST", "/api/workloads/17/set", "17", ""},
		{"POST", "/api/workloads//set", NULL, ""},
		{"POST", "/api/workloads/1/2/set", NULL, ""},
		{"GET", "/api/workloads/17/set", NULL, "POST"},
		{"DELETE", "/api/resources/small", "small", ""},
		{"POST", "/api/resources/small", NULL, "DELETE"},
		{"BREW", "/api/jobs", NULL, "POST"},
		{"GET", "/metrics", NULL, ""},
	};
	char argument[128], allowed[32], longest[300] = "/assets/";

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_page_route *route = sl_page_route_find(
			rows[i].method, rows[i].path, argument, allowed);

		if ((route != NULL) != (rows[i].argument != NULL) ||
			(route && strcmp(argument, rows[i].argument) != 0) ||
			(!route && strcmp(allowed, rows[i].allowed) != 0))
			fail_msg("%s %s: %s, '%s', '%s'", rows[i].method, rows[i].path,
				route ? "found" : "not found", argument, allowed);
	}
	memset(longest + strlen(longest), 'x', 200);
	assert_null(sl_page_route_find("GET", longest, argument, allowed));
}

/* What changes something must not be had by reading. */
static void changes_take_tokens(void **state)
{
	const struct sl_page_route *route;

	for (size_t i = 0; (route = sl_page_route_at(i)); i++) {
		bool reads = strcmp(route->method, "GET") == 0;

		if (reads == (route->access == SL_PAGE_CHANGE))
			fail_msg("%s %s has access %d", route->method, route->path,
				route->access);
		if (reads && route->body_max)
			fail_msg("%s takes a body", route->path);
	}
}

static void write_routes(FILE *out)
{
	const struct sl_page_route *route;

	for (size_t i = 0; (route = sl_page_route_at(i)); i++)
		(void)fprintf(out, "%s %s\n", route->method, route->path);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static struct sl_user *user(uid_t uid)
{
	struct sl_user *who = sl_user_self();

	assert_non_null(who);
	who->uid = uid;
	return who;
}

#define NOBODY ((uid_t)-1)

static uid_t found(struct sl_page_tokens *tokens, const char *text, sl_ns now)
{
	struct sl_user *who = sl_page_tokens_find(tokens, text, now);
	uid_t uid = who ? who->uid : (uid_t)-1;

	(void)sl_user_free(who);
	return uid;
}

static void tokens_stand_for_users(void **state)
{
	struct sl_page_tokens *tokens = sl_page_tokens_new();
	struct sl_user *a = user(1001), *b = user(1002);
	char first[SL_PAGE_TOKEN_ROOM], text[SL_PAGE_TOKEN_ROOM],
		other[SL_PAGE_TOKEN_ROOM];

	assert_int_equal(sl_page_tokens_make(tokens, a, 1, first), 0);
	assert_int_equal(sl_page_tokens_make(tokens, b, 2, other), 0);
	assert_int_equal(strlen(first), 2 * SL_PAGE_TOKEN_BYTES);
	assert_string_not_equal(first, other);
	assert_int_equal(found(tokens, first, 3), 1001);
	assert_int_equal(found(tokens, other, 3), 1002);
	assert_int_equal(found(tokens, "", 3), NOBODY);
	assert_int_equal(found(tokens, "0", 3), NOBODY);
	/* The table's free places are empty texts; an empty text is no token. */
	memset(text, 0, sizeof(text));
	assert_int_equal(found(tokens, text, 3), NOBODY);
	memcpy(text, first, sizeof(text));
	text[SL_PAGE_TOKEN_ROOM - 2] ^= 1;
	assert_int_equal(found(tokens, text, 3), NOBODY);
	/* A user's seventeenth token ends that user's first, and no other. */
	for (int i = 1; i < SL_PAGE_TOKENS_EACH; i++)
		assert_int_equal(sl_page_tokens_make(tokens, a, 10, text), 0);
	assert_int_equal(found(tokens, first, 11), 1001);
	assert_int_equal(sl_page_tokens_make(tokens, a, 11, text), 0);
	assert_int_equal(found(tokens, first, 12), NOBODY);
	assert_int_equal(found(tokens, text, 12), 1001);
	assert_int_equal(found(tokens, other, 12), 1002);
	/* Its time is over. */
	assert_int_equal(found(tokens, text, 11 + SL_PAGE_TOKEN_LIFE - 1), 1001);
	assert_int_equal(found(tokens, text, 11 + SL_PAGE_TOKEN_LIFE), NOBODY);
	(void)sl_user_free(a);
	(void)sl_user_free(b);
	tokens = sl_page_tokens_free(tokens);
}

static void the_table_of_tokens_is_bounded(void **state)
{
	struct sl_page_tokens *tokens = sl_page_tokens_new();
	char first[SL_PAGE_TOKEN_ROOM], text[SL_PAGE_TOKEN_ROOM];

	for (uint32_t i = 0; i < SL_PAGE_TOKENS_MOST + 5; i++) {
		struct sl_user *who = user(2000 + i);

		assert_int_equal(
			sl_page_tokens_make(tokens, who, 1 + i, i ? text : first), 0);
		(void)sl_user_free(who);
	}
	assert_int_equal(found(tokens, first, 5000), NOBODY);
	assert_int_equal(found(tokens, text, 5000), 2000 + SL_PAGE_TOKENS_MOST + 4);
	tokens = sl_page_tokens_free(tokens);
}

/* A user who has one keeps it while others make as many as they may. */
static void many_tokens_end_only_their_own(void **state)
{
	struct sl_page_tokens *tokens = sl_page_tokens_new();
	char first[SL_PAGE_TOKEN_ROOM], text[SL_PAGE_TOKEN_ROOM];
	struct sl_user *who = user(1001);

	assert_int_equal(sl_page_tokens_make(tokens, who, 1, first), 0);
	(void)sl_user_free(who);
	for (uint32_t i = 0; i < 2 * SL_PAGE_TOKENS_MOST; i++) {
		who = user(2000 + i / SL_PAGE_TOKENS_EACH);
		assert_int_equal(sl_page_tokens_make(tokens, who, 2 + i, text), 0);
		(void)sl_user_free(who);
	}
	assert_int_equal(found(tokens, first, 5000), 1001);
	assert_int_not_equal(found(tokens, text, 5000), NOBODY);
	assert_true(sl_page_tokens_end(tokens, first));
	assert_int_equal(found(tokens, first, 5000), NOBODY);
	assert_false(sl_page_tokens_end(tokens, first));
	assert_false(sl_page_tokens_end(tokens, ""));
	tokens = sl_page_tokens_free(tokens);
}

/* --- shares ----------------------------------------------------------------------------------- */

static unsigned int take_all(struct sl_page_share *share, struct sl_page_asker asker,
	enum sl_page_good good, uint64_t amount, int *why)
{
	unsigned int count = 0;

	while ((*why = sl_page_share_take(share, asker, good, amount)) == SL_PAGE_TAKEN)
		count++;
	return count;
}

/* An asker gets no more than its bound, nor do all askers without a token together. Askers with a
 * token still find some left, and what is given back can be taken again. */
static void shares_leave_something(void **state)
{
	const struct sl_page_asker local = {1, false}, other = {2, false},
				   more = {3, false}, root = {1ull << 40, true},
				   ann = {1ull << 40 | 7, true};
	struct sl_page_share *share = sl_page_share_new();
	int why;

	assert_int_equal(take_all(share, local, SL_PAGE_STREAMS, 1, &why), 12);
	assert_int_equal(why, SL_PAGE_OWN_FULL);
	assert_int_equal(take_all(share, other, SL_PAGE_STREAMS, 1, &why), 8);
	assert_int_equal(why, SL_PAGE_UNKNOWN_FULL);
	assert_int_equal(take_all(share, more, SL_PAGE_STREAMS, 1, &why), 0);
	assert_int_equal(take_all(share, root, SL_PAGE_STREAMS, 1, &why), 12);
	assert_int_equal(why, SL_PAGE_OWN_FULL);
	assert_int_equal(take_all(share, ann, SL_PAGE_STREAMS, 1, &why), 0);
	assert_int_equal(why, SL_PAGE_ALL_FULL);
	/* Another good is another matter. */
	assert_int_equal(take_all(share, local, SL_PAGE_QUESTIONS, 1, &why), 6);
	assert_int_equal(take_all(share, local, SL_PAGE_ANSWERS, 10 * SL_MIB, &why), 2);
	assert_int_equal(take_all(share, ann, SL_PAGE_ANSWERS,
				 sl_page_share_each(SL_PAGE_ANSWERS) + 1, &why),
		0);
	assert_int_equal(why, SL_PAGE_OWN_FULL);
	sl_page_share_give(share, local, SL_PAGE_STREAMS, 1);
	assert_int_equal(take_all(share, other, SL_PAGE_STREAMS, 1, &why), 1);
	for (int i = 0; i < 11; i++)
		sl_page_share_give(share, local, SL_PAGE_STREAMS, 1);
	for (int i = 0; i < 9; i++)
		sl_page_share_give(share, other, SL_PAGE_STREAMS, 1);
	assert_int_equal(take_all(share, ann, SL_PAGE_STREAMS, 1, &why), 12);
	share = sl_page_share_free(share);
}

/* --- rate ------------------------------------------------------------------------------------- */

static void rates_are_per_key(void **state)
{
	struct sl_page_rate *rate = sl_page_rate_new(10, 5);
	sl_ns now = 1000 * SL_S;
	unsigned int taken = 0;

	for (int i = 0; i < 100; i++)
		taken += sl_page_rate_take(rate, 1, now);
	assert_int_equal(taken, 5);
	assert_true(sl_page_rate_take(rate, 2, now));
	assert_false(sl_page_rate_take(rate, 1, now + 99 * SL_MS));
	assert_true(sl_page_rate_take(rate, 1, now + 100 * SL_MS));
	assert_false(sl_page_rate_take(rate, 1, now + 100 * SL_MS));
	/* A long pause gives a full bucket and no more. */
	taken = 0;
	for (int i = 0; i < 100; i++)
		taken += sl_page_rate_take(rate, 1, now + 100 * SL_S);
	assert_int_equal(taken, 5);
	rate = sl_page_rate_free(rate);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void the_page_is_in_the_program(void **state)
{
	const struct sl_page_asset *front = NULL;

	for (const struct sl_page_asset *asset = sl_page_assets; asset->name; asset++) {
		assert_true(asset->size > 0);
		assert_int_equal(asset->etag[0], '"');
		assert_int_equal(asset->etag[strlen(asset->etag) - 1], '"');
		if (strcmp(asset->name, "index.html") == 0)
			front = asset;
	}
	/* It can be built without the page (option page of meson), and then has nothing of it. */
	if (!sl_page_assets[0].name)
		skip();
	assert_non_null(front);
	assert_memory_equal(front->data, "<!", 2);
}

/* --- compute resources ------------------------------------------------------------------------ */

static struct sl_compute compute(const char *name, uint64_t request)
{
	struct sl_compute row = {.gpus = 2,
		.shared = true,
		.priority = -7,
		.request = {.kind = SL_AMOUNT_FRACTION, .value = request},
		.limit = {.kind = SL_AMOUNT_BYTES, .value = 8ull << 30}};

	(void)snprintf(row.name, sizeof(row.name), "%s", name);
	return row;
}

static void ignore(void *context, int r, const struct sl_error *err)
{
	if (r < 0)
		fail_msg("%s", err->text);
}

static void commit(struct sl_store *store, struct sl_store_change *change)
{
	assert_int_equal(sl_store_commit(store, change, ignore, NULL), 0);
	sl_store_finish(store);
}

static void resources_are_kept(void **state)
{
	static struct sl_compute_list list, again;
	char folder[] = "/tmp/sluice-page.XXXXXX", path[128];
	struct sl_compute b = compute("b", 250000), a = compute("a.1", 1000000),
			  b2 = compute("b", 500000), own = compute("b", 300000);
	struct sl_store_change *change = sl_store_change_new();
	struct sl_store *store = NULL;
	struct sl_error err = {0};

	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/deep", folder);
	assert_int_equal(sl_store_new(path, path, &store), 0);
	assert_int_equal(sl_compute_load(store, &list, &err), SL_STORE_OK);
	assert_int_equal(list.count, 0);
	assert_true(sl_compute_put(&list, &b));
	assert_true(sl_compute_put(&list, &a));
	assert_true(sl_compute_put(&list, &b2));
	assert_int_equal(list.count, 2);
	assert_string_equal(list.all[0].name, "a.1");
	/* A user's own, of a name that is for all. */
	own.shared = false;
	own.owner = 1000;
	(void)snprintf(own.project, sizeof(own.project), "vision");
	assert_true(sl_compute_put(&list, &own));
	assert_false(sl_compute_drop(
		&list, &(struct sl_compute){.name = "c", .shared = true}));
	for (uint32_t i = 0; i < list.count; i++)
		sl_compute_store(change, &list.all[i]);
	commit(store, change);
	assert_int_equal(sl_compute_load(store, &again, &err), SL_STORE_OK);
	assert_int_equal(again.count, 3);
	assert_memory_equal(&again.all, &list.all, 3 * sizeof(a));
	a.number = 2;
	b2.number = 1;
	own.number = 3;
	assert_memory_equal(&again.all[0], &a, sizeof(a));
	assert_memory_equal(&again.all[1], &b2, sizeof(b2));
	assert_memory_equal(&again.all[2], &own, sizeof(own));
	assert_true(sl_compute_drop(&again, &own));
	assert_true(sl_compute_drop(
		&again, &(struct sl_compute){.name = "a.1", .shared = true}));
	assert_int_equal(again.count, 1);
	assert_string_equal(again.all[0].name, "b");
	store = sl_store_free(store);
	(void)snprintf(path, sizeof(path), "rm -r %s", folder);
	assert_int_equal(system(path), 0);
}

/* A record that no sluiced wrote costs itself alone. */
static void damaged_resources_are_told(void **state)
{
	static const char *const texts[] = {"", "{}", "[1]", "{\"name\": \"a\"}", "5"};
	static struct sl_compute_list list;
	char folder[] = "/tmp/sluice-page.XXXXXX", path[128];
	struct sl_compute odd[] = {compute("<b>", 1), compute("a", 1), compute("a", 1),
		compute("a", SL_AMOUNT_WHOLE), compute("good", 1)};
	struct sl_store_change *change = sl_store_change_new();
	struct sl_store *store = NULL;
	struct sl_error err = {0};

	odd[1].gpus = 99;
	odd[2].request.kind = 77;
	odd[3].limit = (struct sl_amount){.kind = SL_AMOUNT_FRACTION, .value = 1};
	assert_non_null(mkdtemp(folder));
	assert_int_equal(sl_store_new(folder, folder, &store), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++)
		sl_store_put(change, SL_KIND_RESOURCE, i + 1, texts[i]);
	for (size_t i = 0; i < SL_ARRAY_LEN(odd); i++) {
		odd[i].number = 10 + i;
		sl_compute_store(change, &odd[i]);
	}
	commit(store, change);
	assert_int_equal(sl_compute_load(store, &list, &err), SL_STORE_PARTLY);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.all[0].name, "good");
	assert_non_null(strstr(err.text, "compute resource 1 in "));
	store = sl_store_free(store);
	(void)snprintf(path, sizeof(path), "rm -r %s", folder);
	assert_int_equal(system(path), 0);
}

static void the_list_of_resources_is_bounded(void **state)
{
	static struct sl_compute_list list;
	struct sl_compute row = compute("x", 1);

	list.count = 0;
	for (int i = 0; i < SL_RESOURCES_MOST; i++) {
		(void)snprintf(row.name, sizeof(row.name), "r%d", i);
		assert_true(sl_compute_put(&list, &row));
	}
	(void)snprintf(row.name, sizeof(row.name), "more");
	assert_false(sl_compute_put(&list, &row));
	(void)snprintf(row.name, sizeof(row.name), "r17");
	assert_true(sl_compute_put(&list, &row));
	for (uint32_t i = 1; i < list.count; i++)
		assert_true(strcmp(list.all[i - 1].name, list.all[i].name) < 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_let_in),
		cmocka_unit_test(hosts_pass_or_not),
		cmocka_unit_test(paths_lead_to_routes),
		cmocka_unit_test(changes_take_tokens),
		cmocka_unit_test(tokens_stand_for_users),
		cmocka_unit_test(the_table_of_tokens_is_bounded),
		cmocka_unit_test(many_tokens_end_only_their_own),
		cmocka_unit_test(shares_leave_something),
		cmocka_unit_test(rates_are_per_key),
		cmocka_unit_test(the_page_is_in_the_program),
		cmocka_unit_test(resources_are_kept),
		cmocka_unit_test(damaged_resources_are_told),
		cmocka_unit_test(the_list_of_resources_is_bounded),
	};

	if (argc == 2 && strcmp(argv[1], "routes") == 0) {
		write_routes(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
