/* Watches that break, lie, hang and forget: the reported objects stay consistent. */
#include "../server.h"

#include <stdio.h>
#include <stdlib.h>

#include "cluster/kubernetes/api/watch.h"

/* Reports, one word each: +a added, ~a modified, -a deleted, ! in sync, ?STATUS trouble. */
static struct {
	char text[4000];
	char error[600];
	unsigned int synced, troubles;
} told;

/* The server's script: called with the number of the list or watch, from 1. */
static struct {
	void (*list)(struct exchange *x, unsigned int number);
	void (*watch)(struct exchange *x, unsigned int number);
	unsigned int lists, watches;
	char versions[400]; /* that watches began with */
	sl_ns list_at[8], watch_at[8];
} script;

static sd_event *event;
static struct sl_kube *kube;
static struct sl_kube_watch *watch;
static bool frees_watch, frees_client;
static char limits[200]; /* of the lists that were asked for */

static void say(const char *format, const char *what)
{
	size_t used = strlen(told.text);

	(void)snprintf(told.text + used, sizeof(told.text) - used, format, what);
}

static void note(void *context, const struct sl_kube_event *e)
{
	static const char *const signs[] = {"+%s ", "~%s ", "-%s "};
	char number[16];

	if (e->kind == SL_KUBE_SYNCED) {
		told.synced++;
		say("%s ", "!");
	} else if (e->kind == SL_KUBE_TROUBLE) {
		told.troubles++;
		(void)snprintf(number, sizeof(number), "%d", e->status);
		say("?%s ", number);
		(void)snprintf(told.error, sizeof(told.error), "%s", e->error);
	} else {
		say(signs[e->kind], sl_kube_text_at(e->object, "metadata", "name", NULL));
		assert_string_equal(
			sl_kube_text_at(e->object, "metadata", "namespace", NULL), "ns");
		assert_true(*sl_kube_text_at(e->object, "metadata", "uid", NULL));
	}
	if (frees_watch)
		watch = sl_kube_watch_free(watch);
	if (frees_client)
		kube = sl_kube_free(kube);
}

static char *object(const char *name, const char *uid, const char *version)
{
	return text("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\","
		    "\"resourceVersion\":\"%s\"}}",
		name, uid, version);
}

/* objects: "NAME UID VERSION" of each. */
static char *list_of(const char *version, const char *next, const char *objects)
{
	json_t *items = json_array();
	char name[8], uid[8], own[8];
	json_t *list;
	char *out;
	int n = 0;

	for (; sscanf(objects, " %7s %7s %7s%n", name, uid, own, &n) == 3; objects += n) {
		char *one = object(name, uid, own);

		(void)json_array_append_new(items, json_loads(one, 0, NULL));
		free(one);
	}
	list = json_pack("{s{ssss}so}", "metadata", "resourceVersion", version,
		"continue", next, "items", items);
	out = json_dumps(list, 0);
	json_decref(list);
	return out;
}

static char *change(
	const char *type, const char *name, const char *uid, const char *version)
{
	char *one = object(name, uid, version);
	char *line = text("{\"type\":\"%s\",\"object\":%s}\n", type, one);

	free(one);
	return line;
}

static void serve(struct exchange *x)
{
	const char *version = query(x, "resourceVersion");
	size_t used = strlen(script.versions);

	assert_string_equal(x->path, "/things");
	assert_string_equal(query(x, "labelSelector"), "a=b");
	if (!query(x, "watch")) {
		script.list_at[script.lists % 8] = sl_clock_now();
		script.list(x, ++script.lists);
		return;
	}
	assert_string_equal(query(x, "allowWatchBookmarks"), "true");
	(void)snprintf(
		script.versions + used, sizeof(script.versions) - used, "%s ", version);
	x->how = STREAM;
	script.watch_at[script.watches % 8] = sl_clock_now();
	script.watch(x, ++script.watches);
	if (!x->text)
		x->text = text("%s", "");
}

static void one_object(struct exchange *x, unsigned int number)
{
	x->text = list_of("10", "", "a u1 5");
}

static void quiet(struct exchange *x, unsigned int number)
{
}

static int set_up(void **state)
{
	struct sl_kube_config config;

	memset(&told, 0, sizeof(told));
	memset(&script, 0, sizeof(script));
	frees_watch = frees_client = false;
	server_start(serve);
	assert_true(sd_event_new(&event) >= 0);
	config = server_config();
	assert_int_equal(sl_kube_new(&kube, event, &config), 0);
	return 0;
}

static int tear_down(void **state)
{
	watch = sl_kube_watch_free(watch);
	kube = sl_kube_free(kube);
	event = sd_event_unref(event);
	server_stop();
	return 0;
}

static void start(void (*list)(struct exchange *, unsigned int),
	void (*changes)(struct exchange *, unsigned int))
{
	script.list = list;
	script.watch = changes;
	assert_int_equal(sl_kube_watch_new(&watch, kube, "/things", "labelSelector=a%3Db",
				 note, NULL),
		0);
}

static bool was_told(void *context)
{
	return strstr(told.text, context) != NULL;
}

static void want(const char *words)
{
	if (!run_while(event, was_told, (void *)words, 60 * SL_S))
		fail_msg("told '%s' (%s), wanted '%s'", told.text, told.error, words);
}

/* Lets pass what should not come. */
static void pause_ms(unsigned int ms)
{
	bool never = false;

	(void)run_until(event, &never, ms * SL_MS);
}

static void push(char *line)
{
	server_lock();
	stream_push(line);
	server_unlock();
	free(line);
}

static void changes_are_told(void **state)
{
	start(one_object, quiet);
	want("+a ! ");
	assert_true(sl_kube_watch_is_synced(watch));
	pause_ms(100);
	push(change("ADDED", "b", "u2", "11"));
	push(change("MODIFIED", "a", "u1", "12"));
	push(change("DELETED", "b", "u2", "13"));
	want("+a ! +b ~a -b ");
	/* Objects that are known already, or were never reported. */
	push(change("MODIFIED", "a", "u1", "12"));
	push(change("DELETED", "c", "u3", "14"));
	/* Added where it was known: a namesake in its place. */
	push(change("ADDED", "a", "u4", "15"));
	want("+a ! +b ~a -b -a +a ");
	assert_int_equal(script.lists, 1);
	assert_string_equal(script.versions, "10 ");
	assert_int_equal(told.troubles, 0);
}

static void two_pages(struct exchange *x, unsigned int number)
{
	const char *next = query(x, "continue");

	assert_string_equal(query(x, "limit"), "250");
	if (number == 1)
		assert_null(next);
	else
		assert_string_equal(next, "a/+=");
	x->text = number == 1 ? list_of("10", "a/+=", "a u1 5 b u2 6")
			      : list_of("10", "", "c u3 7");
}

static void lists_have_pages(void **state)
{
	start(two_pages, quiet);
	want("+a +b +c ! ");
	assert_int_equal(script.lists, 2);
}

/* Breaks in the middle of a line. */
static void breaks_once(struct exchange *x, unsigned int number)
{
	if (number > 1)
		return;
	x->how = BREAK;
	x->text = change("ADDED", "b", "u2", "11");
	x->text = realloc(x->text, 4096);
	strcat(x->text, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":"
			"{\"resourceVersion\":\"20\"}}}\n{\"type\":\"ADDED\",\"obj");
}

static bool has_second_watch(void *context)
{
	bool has;

	server_lock();
	has = script.watches == 2;
	server_unlock();
	return has;
}

static void broken_watches_go_on(void **state)
{
	start(one_object, breaks_once);
	want("+a ! +b ?200 ");
	assert_true(run_while(event, has_second_watch, NULL, 5 * SL_S));
	/* From the bookmark, without a list. */
	assert_string_equal(script.versions, "10 20 ");
	assert_int_equal(script.lists, 1);
	assert_true(script.watch_at[1] - script.watch_at[0] >= 900 * SL_MS);
}

static void lists_differ(struct exchange *x, unsigned int number)
{
	x->text = number == 1 ? list_of("10", "", "a u1 5 b u2 6 c u3 7")
			      : list_of("30", "", "a u1 5 b u9 25 d u4 26");
}

static void is_gone(struct exchange *x, unsigned int number)
{
	if (number > 1)
		return;
	x->how = WHOLE;
	x->status = 410;
	x->text = text("{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
		       "\"message\":\"too old\"}");
}

static void gone_lists_again(void **state)
{
	start(lists_differ, is_gone);
	want("+a +b +c ! ?410 -b +b +d -c ! ");
	pause_ms(200);
	assert_string_equal(script.versions, "10 30 ");
	/* Once at once. */
	assert_true(script.list_at[1] - script.list_at[0] < 900 * SL_MS);
}

static void always_gone(struct exchange *x, unsigned int number)
{
	x->text = text("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
		       "\"message\":\"too old\"}}\n");
	x->how = STREAM;
	if (number >= 4)
		x->text[0] = '\0';
}

static bool ends_stream(void *context)
{
	server_lock();
	stream_end(false);
	server_unlock();
	return told.synced >= 3;
}

static void error_events_list_again_and_wait(void **state)
{
	start(one_object, always_gone);
	assert_true(run_while(event, ends_stream, NULL, 15 * SL_S));
	assert_string_equal(told.error, "too old");
	assert_true(script.list_at[1] - script.list_at[0] < 900 * SL_MS);
	assert_true(script.list_at[2] - script.list_at[1] >= 2 * SL_S);
}

static void garbage_once(struct exchange *x, unsigned int number)
{
	if (number == 1)
		x->text = text("<html>\n");
}

static void garbage_is_not_believed(void **state)
{
	start(one_object, garbage_once);
	want("+a ! ");
	pause_ms(200);
	/* Later data on that stream does not count. */
	push(change("ADDED", "b", "u2", "11"));
	server_lock();
	stream_end(false);
	server_unlock();
	want("+a ! ?0 ! ");
	assert_non_null(strstr(told.error, "no event: <html>"));
	assert_int_equal(script.lists, 2);
}

static void busy_lists(struct exchange *x, unsigned int number)
{
	if (number == 1) {
		x->status = 429;
		x->retry_after_s = 3;
		x->text = text("slow down");
	} else if (number == 2) {
		x->status = 500;
		x->text = text("oops");
	} else if (number == 3) {
		x->text = text("{\"kind\":\"Nothing\"}");
	} else {
		one_object(x, number);
	}
}

static void busy_servers_are_given_time(void **state)
{
	start(busy_lists, quiet);
	want("?429 ?500 ?200 +a ! ");
	assert_in_range(script.list_at[1] - script.list_at[0], 3 * SL_S, 4 * SL_S);
	assert_in_range(script.list_at[2] - script.list_at[1], 2 * SL_S, 3 * SL_S);
	assert_in_range(script.list_at[3] - script.list_at[2], 4 * SL_S, 6 * SL_S);
}

static void eleven_mib_once(struct exchange *x, unsigned int number)
{
	if (number > 1)
		return;
	x->text = malloc(11 * SL_MIB + 2);
	memset(x->text, 'x', 11 * SL_MIB);
	memcpy(x->text + 11 * SL_MIB, "\n", 2);
}

static void long_lines_are_not_kept(void **state)
{
	start(one_object, eleven_mib_once);
	want("+a ! ?200 ! ");
	assert_non_null(strstr(told.error, "more than 10485760 bytes"));
	assert_int_equal(script.lists, 2);
}

/* A page of 17 MiB, unless it is asked for less. */
static void large_pages(struct exchange *x, unsigned int number)
{
	if (strcmp(query(x, "limit"), "63") == 0) {
		one_object(x, number);
		return;
	}
	x->text = malloc(17 * SL_MIB + 1);
	memset(x->text, 'x', 17 * SL_MIB);
	x->text[17 * SL_MIB] = '\0';
}

static void large_pages_become_smaller(void **state)
{
	start(large_pages, quiet);
	want("+a ! ");
	assert_int_equal(told.troubles, 0);
}

/* Ten objects; the parameters of the third have many values. */
static void one_is_vast(struct exchange *x, unsigned int number)
{
	unsigned int limit = (unsigned int)atoi(query(x, "limit"));
	const char *next = query(x, "continue");
	unsigned int first = next ? (unsigned int)atoi(next) : 0;
	unsigned int behind = first + limit < 10 ? first + limit : 10;
	json_t *items = json_array(), *list;
	char name[12], to[12];

	for (unsigned int i = first; i < behind; i++) {
		json_t *vast = json_array(), *empty = json_array();

		for (unsigned int n = 0; i == 2 && n < SL_KUBE_VALUES_MAX; n++)
			(void)json_array_append(vast, empty);
		json_decref(empty);
		(void)snprintf(name, sizeof(name), "%u", i);
		(void)json_array_append_new(items,
			json_pack("{s{sssssss{}}so}", "metadata", "namespace", "ns",
				"name", name, "uid", name, "labels", "spec", vast));
	}
	(void)snprintf(to, sizeof(to), "%u", behind);
	list = json_pack("{s{ssss}so}", "metadata", "resourceVersion", "10", "continue",
		behind < 10 ? to : "", "items", items);
	x->text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	(void)snprintf(
		limits + strlen(limits), sizeof(limits) - strlen(limits), "%u ", limit);
}

static void a_vast_object_comes_alone(void **state)
{
	limits[0] = '\0';
	start(one_is_vast, quiet);
	want("+0 +1 +2 +3 +4 +5 +6 +7 +8 +9 ! ");
	assert_int_equal(told.troubles, 0);
	assert_string_equal(limits, "250 63 16 4 1 2 1 2 1 2 3 4 ");
}

static void numbers_of_users(struct exchange *x, unsigned int number)
{
	if (number == 1)
		x->text = text(
			"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":"
			"\"ns\",\"name\":\"b\",\"uid\":\"u2\",\"resourceVersion\":"
			"\"11\"},\"x\":[1e400,99999999999999999999]}}\n");
}

static void what_users_write_blinds_nobody(void **state)
{
	start(one_object, numbers_of_users);
	want("+a ! +b ");
	assert_int_equal(told.troubles, 0);
}

static void a_function_may_free_the_watch(void **state)
{
	frees_watch = true;
	start(one_object, quiet);
	want("+a ");
	pause_ms(200);
	assert_string_equal(told.text, "+a ");
	assert_null(watch);
}

static void a_function_may_free_the_client(void **state)
{
	start(one_object, quiet);
	want("+a ! ");
	frees_client = true;
	pause_ms(100);
	push(text("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\","
		  "\"name\":\"b\",\"uid\":\"u\",\"resourceVersion\":\"11\"}}}\n"
		  "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\","
		  "\"name\":\"c\",\"uid\":\"u\",\"resourceVersion\":\"12\"}}}\n"));
	want("+a ! +b ");
	pause_ms(200);
	assert_string_equal(told.text, "+a ! +b ");
	assert_null(kube);
}

static void in_the_list_the_client_may_go(void **state)
{
	frees_client = true;
	start(one_object, quiet);
	want("+a ");
	pause_ms(200);
	assert_string_equal(told.text, "+a ");
	assert_int_equal(script.watches, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(changes_are_told),
		TEST(lists_have_pages),
		TEST(broken_watches_go_on),
		TEST(gone_lists_again),
		TEST(error_events_list_again_and_wait),
		TEST(garbage_is_not_believed),
		TEST(busy_servers_are_given_time),
		TEST(long_lines_are_not_kept),
		TEST(large_pages_become_smaller),
		TEST(a_vast_object_comes_alone),
		TEST(what_users_write_blinds_nobody),
		TEST(a_function_may_free_the_watch),
		TEST(a_function_may_free_the_client),
		TEST(in_the_list_the_client_may_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
