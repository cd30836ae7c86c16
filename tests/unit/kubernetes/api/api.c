/* Requests to the API server: answers, and missing ones. */
#include "../server.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

/* What the latest done function was told. */
static struct {
	bool done;
	int status;
	char error[600], reason[64];
	unsigned int retry_after_s;
	bool is_too_large;
	json_t *body;
	unsigned int count;
} told;

static struct {
	char content_type[64], authorization[80], body[200];
	bool has_certificate;
} asked;

static sd_event *event;
static struct sl_kube *kube;

static void note(void *context, const struct sl_kube_answer *answer)
{
	json_decref(told.body);
	told.done = true;
	told.count++;
	told.status = answer->status;
	told.retry_after_s = answer->retry_after_s;
	told.is_too_large = answer->is_too_large;
	told.body = answer->body ? json_incref(answer->body) : NULL;
	(void)snprintf(told.error, sizeof(told.error), "%s", answer->error);
	(void)snprintf(told.reason, sizeof(told.reason), "%s", answer->reason);
}

static char *big(size_t bytes)
{
	char *json = malloc(bytes + 1);

	memset(json, 'x', bytes);
	memcpy(json, "{\"a\":\"", 6);
	memcpy(json + bytes - 2, "\"}", 3);
	return json;
}

/* Few bytes, much memory. */
static char *vast(void)
{
	char *json = malloc(3 * SL_KUBE_VALUES_MAX + 1);

	for (size_t i = 0; i < 3 * SL_KUBE_VALUES_MAX; i += 3)
		memcpy(json + i, "{},", 3);
	json[0] = '[';
	json[1] = json[2] = ' ';
	memcpy(json + 3 * SL_KUBE_VALUES_MAX - 1, "]", 2);
	return json;
}

static void serve(struct exchange *x)
{
	(void)snprintf(asked.content_type, sizeof(asked.content_type), "%s",
		x->content_type ? x->content_type : "");
	(void)snprintf(asked.authorization, sizeof(asked.authorization), "%s",
		x->authorization ? x->authorization : "");
	(void)snprintf(asked.body, sizeof(asked.body), "%s", x->body);
	asked.has_certificate = x->has_certificate;
	if (strcmp(x->path, "/refused") == 0) {
		x->status = 409;
		x->text = text("{\"kind\":\"Status\",\"reason\":\"Conflict\","
			       "\"message\":\"the object has been modified\"}");
	} else if (strcmp(x->path, "/busy") == 0) {
		x->status = 429;
		x->retry_after_s = 7;
		x->text = text("too many requests");
	} else if (strcmp(x->path, "/broken") == 0) {
		x->how = BREAK;
		x->text = text("{\"half\":");
	} else if (strcmp(x->path, "/garbage") == 0) {
		x->text = text("<html>a proxy</html>");
	} else if (strcmp(x->path, "/hang") == 0) {
		x->how = HANG;
	} else if (strcmp(x->path, "/11MiB") == 0) {
		x->text = big(11 * SL_MIB);
	} else if (strcmp(x->path, "/9MiB") == 0) {
		x->text = big(9 * SL_MIB);
	} else if (strcmp(x->path, "/vast") == 0) {
		x->text = vast();
	} else {
		x->text = text("{\"metadata\":{\"name\":\"it\"}}");
	}
}

static int set_up(void **state)
{
	struct sl_kube_config config;

	memset(&told, 0, sizeof(told));
	server_start(serve);
	assert_true(sd_event_new(&event) >= 0);
	config = server_config();
	assert_int_equal(sl_kube_new(&kube, event, &config), 0);
	return 0;
}

static int tear_down(void **state)
{
	kube = sl_kube_free(kube);
	json_decref(told.body);
	event = sd_event_unref(event);
	server_stop();
	return 0;
}

static void ask(const struct sl_kube_request *request)
{
	struct sl_kube_call *call = NULL;

	told.done = false;
	assert_int_equal(sl_kube_call(kube, request, &call), 0);
	assert_false(told.done);
	assert_non_null(call);
	assert_true(run_until(event, &told.done, 10 * SL_S));
	assert_null(call);
}

static void get(const char *path)
{
	ask(&(struct sl_kube_request){.path = path, .done = note, .timeout = 2 * SL_S});
}

static void answers_and_refusals(void **state)
{
	static const struct {
		const char *path;
		int status;
		unsigned int retry_after_s;
		const char *reason, *error;
		bool is_too_large;
	} rows[] = {
		{"/fine", 200, 0, "", ""},
		{"/9MiB", 200, 0, "", ""},
		{"/refused", 409, 0, "Conflict",
			"GET /refused: 409 Conflict: the object has been modified"},
		{"/busy", 429, 7, "", "GET /busy: 429 : too many requests"},
		{"/broken", 0, 0, "", "no answer from https://127.0.0.1"},
		{"/garbage", 0, 0, "", "the answer is not JSON"},
		{"/hang", 0, 0, "", "no answer"},
		{"/vast", 200, 0, "", ""},
		{"/11MiB", 0, 0, "", "more than 10485760 bytes", true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		get(rows[i].path);
		assert_row_u64(
			rows[i].path, (uint64_t)told.status, (uint64_t)rows[i].status);
		assert_row_u64(rows[i].path, told.retry_after_s, rows[i].retry_after_s);
		assert_row_text(rows[i].path, told.reason, rows[i].reason);
		assert_row_contains(rows[i].path, told.error, rows[i].error);
		assert_row_u64(rows[i].path, told.is_too_large, rows[i].is_too_large);
		assert_row_u64(rows[i].path, !*told.error, rows[i].status == 200);
		assert_row_u64(rows[i].path, told.status == 200, rows[i].status == 200);
		if (rows[i].status == 200)
			assert_non_null(told.body);
	}
}

static void pages_have_a_bound_of_values(void **state)
{
	ask(&(struct sl_kube_request){.path = "/vast", .done = note, .is_page = true});
	assert_string_equal(told.error, "GET /vast: the answer has too many values");
	assert_true(told.is_too_large);
	assert_int_equal(told.status, 0);
	ask(&(struct sl_kube_request){.path = "/9MiB", .done = note, .is_page = true});
	assert_string_equal(told.error, "");
}

static void verbs(void **state)
{
	static const struct {
		enum sl_kube_verb verb;
		const char *method, *type;
	} rows[] = {
		{SL_KUBE_POST, "POST", "application/json"},
		{SL_KUBE_PUT, "PUT", "application/json"},
		{SL_KUBE_DELETE, "DELETE", "application/json"},
		{SL_KUBE_MERGE, "PATCH", "application/merge-patch+json"},
		{SL_KUBE_STRATEGIC, "PATCH", "application/strategic-merge-patch+json"},
		{SL_KUBE_APPLY, "PATCH", "application/apply-patch+yaml"},
	};
	json_t *body = json_pack("{si}", "a", 1);

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		ask(&(struct sl_kube_request){.verb = rows[i].verb,
			.path = "/x?y=z",
			.body = body,
			.done = note});
		assert_row_text(rows[i].type, told.error, "");
		assert_row_text(rows[i].type, asked.content_type, rows[i].type);
		assert_row_text(rows[i].type, asked.body, "{\"a\":1}");
		assert_string_equal(asked.authorization, "Bearer secret");
	}
	json_decref(body);
	assert_int_equal(server_count("PATCH", "/x"), 3);
	assert_int_equal(server_count("PUT", "/x"), 1);
	ask(&(struct sl_kube_request){
		.verb = SL_KUBE_DELETE, .path = "/gone", .done = note});
	assert_int_equal(server_count("DELETE", "/gone"), 1);
}

static void paths_are_checked(void **state)
{
	static const char *const bad[] = {"", "x", "/a b", "/a\nHost: x", "/a#b"};

	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++)
		assert_int_equal(sl_kube_call(kube,
					 &(struct sl_kube_request){.path = bad[i]}, NULL),
			-EINVAL);
	/* What writes has something to write. */
	for (int verb = 0; verb < SL_KUBE_VERBS; verb++) {
		if (verb != SL_KUBE_GET && verb != SL_KUBE_DELETE)
			assert_int_equal(sl_kube_call(kube,
						 &(struct sl_kube_request){
							 .path = "/x", .verb = verb},
						 NULL),
				-EINVAL);
	}
	assert_true(sl_kube_is_name("node-1.example.com"));
	assert_false(sl_kube_is_name(".."));
	assert_false(sl_kube_is_name(""));
	assert_false(sl_kube_is_name("a/b"));
	assert_false(sl_kube_is_name("a%2fb"));
}

static void cancelled_calls_are_silent(void **state)
{
	struct sl_kube_call *hung = NULL, *later = NULL;

	assert_int_equal(sl_kube_call(kube,
				 &(struct sl_kube_request){
					 .path = "/hang", .done = note, .timeout = SL_S},
				 &hung),
		0);
	assert_int_equal(
		sl_kube_call(kube,
			&(struct sl_kube_request){
				.path = "/fine", .done = note, .after = SL_S / 5},
			&later),
		0);
	for (int i = 0; i < 5; i++)
		assert_true(sd_event_run(event, 10000) >= 0);
	sl_kube_cancel(&hung);
	sl_kube_cancel(&later);
	assert_null(hung);
	assert_null(later);
	sl_kube_cancel(&later);
	assert_false(run_until(event, &told.done, 3 * SL_S / 2));
	assert_int_equal(server_count("GET", "/fine"), 0);
}

static void later_is_later(void **state)
{
	sl_ns from = sl_clock_now();

	ask(&(struct sl_kube_request){
		.path = "/fine", .done = note, .after = 300 * SL_MS});
	assert_int_equal(told.status, 200);
	assert_true(sl_clock_now() - from >= 300 * SL_MS);
}

static void nothing_blocks_the_loop(void **state)
{
	struct sl_kube_call *hung[4] = {NULL};

	for (size_t i = 0; i < SL_ARRAY_LEN(hung); i++)
		assert_int_equal(
			sl_kube_call(kube,
				&(struct sl_kube_request){.path = "/hang", .done = note},
				&hung[i]),
			0);
	get("/fine");
	assert_int_equal(told.status, 200);
	assert_int_equal(told.count, 1);
	for (size_t i = 0; i < SL_ARRAY_LEN(hung); i++)
		assert_non_null(hung[i]);
}

static void the_end_is_silent(void **state)
{
	struct sl_kube_call *hung = NULL, *later = NULL;
	struct sl_kube *kept = sl_kube_ref(kube);

	assert_int_equal(
		sl_kube_call(kube,
			&(struct sl_kube_request){.path = "/hang", .done = note}, &hung),
		0);
	assert_int_equal(sl_kube_call(kube,
				 &(struct sl_kube_request){
					 .path = "/fine", .done = note, .after = SL_S},
				 &later),
		0);
	(void)run_until(event, &told.done, 100 * SL_MS);
	kube = sl_kube_free(kube);
	assert_null(hung);
	assert_null(later);
	assert_false(told.done);
	assert_int_equal(
		sl_kube_call(kept, &(struct sl_kube_request){.path = "/x"}, NULL),
		-ESHUTDOWN);
	(void)sl_kube_unref(kept);
}

static void free_in_the_middle(void *context, const struct sl_kube_answer *answer)
{
	note(context, answer);
	kube = sl_kube_free(kube);
}

static void a_done_function_may_free_the_client(void **state)
{
	struct sl_kube_call *other = NULL;

	assert_int_equal(
		sl_kube_call(kube,
			&(struct sl_kube_request){.path = "/hang", .done = note}, &other),
		0);
	assert_int_equal(sl_kube_call(kube,
				 &(struct sl_kube_request){
					 .path = "/fine", .done = free_in_the_middle},
				 NULL),
		0);
	assert_true(run_until(event, &told.done, 5 * SL_S));
	assert_null(kube);
	assert_null(other);
}

static void open_with(struct sl_kube_config *config)
{
	kube = sl_kube_free(kube);
	assert_int_equal(sl_kube_new(&kube, event, config), 0);
}

static void strangers_are_refused(void **state)
{
	struct sl_kube_config config = server_config();

	free(config.path[SL_KUBE_CA]);
	config.path[SL_KUBE_CA] = text("%s", server_path("stranger.pem"));
	open_with(&config);
	get("/fine");
	assert_int_equal(told.status, 0);
	assert_non_null(strstr(told.error, "is not the cluster's"));
	/* Nor is it called by another name. */
	config = server_config();
	free(config.server);
	config.server = text("https://localhost%s", strrchr(server_url(), ':'));
	open_with(&config);
	get("/fine");
	assert_int_equal(told.status, 0);
	assert_int_equal(server_count("GET", "/fine"), 0);
}

static void tokens_change(void **state)
{
	struct sl_kube_config config = server_config();

	free(sl_steal(&config.token));
	config.token_path = text("%s", server_file("token", "first\n"));
	open_with(&config);
	get("/fine");
	assert_string_equal(asked.authorization, "Bearer first");
	(void)server_file("token", "second");
	get("/fine");
	assert_string_equal(asked.authorization, "Bearer second");
	/* While it is being replaced, the one that we have is still good. */
	assert_int_equal(unlink(server_path("token")), 0);
	get("/fine");
	assert_string_equal(asked.authorization, "Bearer second");
}

static void client_certificates(void **state)
{
	struct sl_kube_config config = server_config();

	get("/fine");
	assert_false(asked.has_certificate);
	config.path[SL_KUBE_CERT] = text("%s", server_path("client.pem"));
	config.path[SL_KUBE_KEY] = text("%s", server_path("client.key"));
	open_with(&config);
	get("/fine");
	assert_string_equal(told.error, "");
	assert_true(asked.has_certificate);
}

static void waits_grow(void **state)
{
	static const unsigned int want_s[] = {1, 2, 4, 8, 16, 30, 30, 30};
	struct sl_kube_backoff backoff = {0};
	bool differs = false;

	for (size_t i = 0; i < SL_ARRAY_LEN(want_s); i++) {
		sl_ns span = sl_kube_backoff_next(&backoff, 0);

		assert_in_range(span, want_s[i] * SL_S, want_s[i] * SL_S * 5 / 4);
		differs = differs || span != want_s[i] * SL_S;
	}
	assert_true(differs);
	backoff.tries = 0;
	assert_in_range(sl_kube_backoff_next(&backoff, 60), 60 * SL_S, 75 * SL_S);
	assert_in_range(sl_kube_backoff_next(&backoff, 0), 2 * SL_S, 5 * SL_S / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_and_refusals),
		TEST(pages_have_a_bound_of_values),
		TEST(verbs),
		TEST(paths_are_checked),
		TEST(cancelled_calls_are_silent),
		TEST(later_is_later),
		TEST(nothing_blocks_the_loop),
		TEST(the_end_is_silent),
		TEST(a_done_function_may_free_the_client),
		TEST(strangers_are_refused),
		TEST(tokens_change),
		TEST(client_certificates),
		cmocka_unit_test(waits_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
