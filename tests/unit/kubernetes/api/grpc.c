/* A server of gRPC, called by nghttp2, and by peers that break its protocol. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "../caller.h"
#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/api/stream.h"

static struct {
	sd_event *loop;
	struct sl_grpc *grpc;
	char folder[32], path[64];
	struct sl_grpc_call *kept[CALLER_CALLS]; /* calls of /Late */
	size_t kept_count;
} t;

static void on_call(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	if (strcmp(method, "/Echo") == 0)
		sl_grpc_answer(call, message, size);
	else if (strcmp(method, "/Late") == 0)
		t.kept[t.kept_count++] = call;
	else
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED, "100 % unknown: \xc3\xa4");
}

static int setup(void **state)
{
	struct sl_error err = {0};

	memset(&t, 0, sizeof(t));
	strcpy(t.folder, "/tmp/sluice-grpc-XXXXXX");
	assert_non_null(mkdtemp(t.folder));
	(void)snprintf(t.path, sizeof(t.path), "%s/s", t.folder);
	assert_true(sd_event_new(&t.loop) >= 0);
	assert_int_equal(sl_grpc_new(t.loop, t.path, on_call, NULL, &t.grpc, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	t.grpc = sl_grpc_free(t.grpc);
	t.loop = sd_event_unref(t.loop);
	(void)unlink(t.path);
	return rmdir(t.folder);
}

static void answers(void **state)
{
	struct caller caller;
	struct caller_call *call, *unknown, *empty;
	struct stat stat_;

	assert_int_equal(stat(t.path, &stat_), 0);
	assert_int_equal(stat_.st_mode & 0777, 0600);
	caller_open(&caller, t.loop, t.path);
	call = caller_begin(&caller, "/Echo", "hello", 5, false);
	unknown = caller_begin(&caller, "/No", "", 0, false);
	empty = caller_begin(&caller, "/Echo", "", 0, false);
	caller_wait(&caller, call);
	caller_wait(&caller, unknown);
	caller_wait(&caller, empty);
	assert_int_equal(call->status, SL_GRPC_OK);
	assert_int_equal(call->size, 5);
	assert_memory_equal(call->answer, "hello", 5);
	assert_int_equal(unknown->status, SL_GRPC_UNIMPLEMENTED);
	assert_string_equal(unknown->text, "100 %25 unknown: %C3%A4");
	assert_int_equal(empty->status, SL_GRPC_OK);
	assert_int_equal(empty->size, 0);
	caller_close(&caller);
}

static void many_late_answers(void **state)
{
	struct caller caller;
	char text[16];

	caller_open(&caller, t.loop, t.path);
	for (size_t i = 0; i < SL_GRPC_STREAMS_MAX; i++)
		(void)caller_begin(&caller, "/Late", "x", 1, false);
	for (int i = 0; t.kept_count < SL_GRPC_STREAMS_MAX; i++) {
		assert_true(i < 10000);
		caller_turn(&caller);
	}
	for (size_t i = SL_GRPC_STREAMS_MAX; i > 0; i--) {
		(void)snprintf(text, sizeof(text), "%zu", i - 1);
		sl_grpc_answer(t.kept[i - 1], text, strlen(text));
	}
	for (size_t i = 0; i < SL_GRPC_STREAMS_MAX; i++) {
		caller_wait(&caller, &caller.calls[i]);
		assert_int_equal(caller.calls[i].status, SL_GRPC_OK);
		(void)snprintf(text, sizeof(text), "%zu", i);
		assert_int_equal(caller.calls[i].size, strlen(text));
		assert_memory_equal(caller.calls[i].answer, text, strlen(text));
	}
	caller_close(&caller);
}

static void large_messages(void **state)
{
	uint8_t *bytes = calloc(1, SL_GRPC_MESSAGE_MAX + 1);
	struct caller caller;
	struct caller_call *most, *more;

	assert_non_null(bytes);
	memset(bytes, 'a', SL_GRPC_MESSAGE_MAX);
	caller_open(&caller, t.loop, t.path);
	most = caller_begin(&caller, "/Echo", bytes, SL_GRPC_MESSAGE_MAX, false);
	caller_wait(&caller, most);
	assert_int_equal(most->status, SL_GRPC_OK);
	assert_int_equal(most->size, SL_GRPC_MESSAGE_MAX);
	assert_memory_equal(most->answer, bytes, SL_GRPC_MESSAGE_MAX);
	more = caller_begin(&caller, "/Echo", bytes, SL_GRPC_MESSAGE_MAX + 1, false);
	caller_wait(&caller, more);
	assert_int_equal(more->status, SL_GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(more->text, "a message may have 4 MiB");
	caller_close(&caller);
	free(bytes);
}

static void what_is_no_message(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		int status;
	} rows[] = {
		{"", 0, SL_GRPC_INTERNAL},
		{"\0\0\0\0", 4, SL_GRPC_INTERNAL},
		{"\0\0\0\0\2a", 6, SL_GRPC_INTERNAL},
		{"\0\0\0\0\1ab", 7, SL_GRPC_INTERNAL},
		{"\0\xff\xff\xff\xff"
		 "a",
			6, SL_GRPC_INTERNAL},
		{"\1\0\0\0\1a", 6, SL_GRPC_UNIMPLEMENTED},
	};
	struct caller caller;

	caller_open(&caller, t.loop, t.path);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct caller_call *call =
			caller_begin(&caller, "/Echo", rows[i].bytes, rows[i].size, true);

		caller_wait(&caller, call);
		assert_int_equal(call->status, rows[i].status);
	}
	caller_close(&caller);
}

/* Answers come when the caller is gone, or even the server. */
static void those_who_go(void **state)
{
	struct caller caller;

	caller_open(&caller, t.loop, t.path);
	for (int i = 0; i < 3; i++)
		(void)caller_begin(&caller, "/Late", "", 0, false);
	while (t.kept_count < 3)
		caller_turn(&caller);
	caller_close(&caller);
	sl_grpc_answer(t.kept[0], "a", 1); /* no status yet */
	for (int i = 0; i < 20; i++)
		assert_true(sd_event_run(t.loop, 1000) >= 0);
	sl_grpc_answer(t.kept[1], "b", 1);
	t.grpc = sl_grpc_free(t.grpc);
	assert_int_equal(access(t.path, F_OK), -1);
	sl_grpc_refuse(t.kept[2], SL_GRPC_UNAVAILABLE, "late");
}

/* Each message tells the whole state: those that come late see the newest one alone. */
static void streams(void **state)
{
	struct sl_stream stream = {0};
	struct caller caller, other;
	struct caller_call *first, *second, *gone;

	caller_open(&caller, t.loop, t.path);
	caller_open(&other, t.loop, t.path);
	first = caller_begin(&caller, "/Late", "", 0, false);
	gone = caller_begin(&other, "/Late", "", 0, false);
	while (t.kept_count < 2) {
		caller_turn(&caller);
		caller_turn(&other);
	}
	sl_stream_add(&stream, t.kept[0]);
	sl_stream_add(&stream, t.kept[1]);
	assert_int_equal(stream.count, 2);
	sl_stream_tell(&stream, "one", 3);
	caller_wait_for(&caller, first, 7);
	caller_wait_for(&other, gone, 7);
	assert_memory_equal(first->answer, "\0\0\0\0\3one", 8);
	caller_close(&other);
	sl_stream_tell(&stream, "two", 3);
	caller_wait_for(&caller, first, 15);
	assert_memory_equal(first->answer + 8, "\0\0\0\0\3two", 8);
	for (int i = 0; i < 20; i++)
		caller_turn(&caller);
	second = caller_begin(&caller, "/Late", "", 0, false);
	while (t.kept_count < 3)
		caller_turn(&caller);
	sl_stream_add(&stream, t.kept[2]);
	caller_wait_for(&caller, second, 7);
	assert_memory_equal(second->answer, "\0\0\0\0\3two", 8);
	sl_stream_tell(&stream, "three", 5);
	assert_int_equal(stream.count, 2); /* the one that went is forgotten */
	caller_wait_for(&caller, first, 25);
	assert_false(first->over);
	sl_stream_fini(&stream);
	caller_wait(&caller, first);
	assert_int_equal(first->status, -1);
	caller_close(&caller);
}

/* A client that takes nothing: what waits for it does not grow. */
static void a_stream_that_is_not_read(void **state)
{
	uint8_t *bytes = calloc(1, SL_MIB);
	struct sl_stream stream = {0};
	struct caller caller;
	struct caller_call *call;

	assert_non_null(bytes);
	caller_open(&caller, t.loop, t.path);
	call = caller_begin(&caller, "/Late", "", 0, false);
	while (t.kept_count < 1)
		caller_turn(&caller);
	sl_stream_add(&stream, t.kept[0]);
	for (uint8_t i = 1; i <= 200; i++) {
		memset(bytes, i, SL_MIB);
		sl_stream_tell(&stream, bytes, SL_MIB);
	}
	/* The first one was under way, and the last one follows. */
	caller_wait_for(&caller, call, 2 * (SL_MIB + 5) - 1);
	assert_int_equal(call->answer[5], 1);
	assert_int_equal(call->answer[SL_MIB + 10], 200);
	sl_stream_fini(&stream);
	caller_close(&caller);
	free(bytes);
}

static void bytes_that_are_no_http2(void **state)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x16\x03\x01"};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct caller caller;
	struct caller_call *call;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", t.path);
	caller_open(&caller, t.loop, t.path);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		char buf[4096];
		ssize_t size = -1;

		assert_int_equal(
			connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_true(send(fd, texts[i], strlen(texts[i]), 0) > 0);
		/* The last one is a beginning that never goes on. */
		for (int n = 0; n < 50 && size != 0; n++) {
			caller_turn(&caller);
			size = recv(fd, buf, sizeof(buf), 0);
		}
		assert_true(i == 2 || size <= 0);
		(void)close(fd);
	}
	call = caller_begin(&caller, "/Echo", "still", 5, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_OK);
	caller_close(&caller);
}

static unsigned int count_of(const char *path, const char *text)
{
	char *log = NULL, *at;
	unsigned int count = 0;
	size_t size;

	assert_int_equal(sl_file_read(path, 1 << 20, &log, &size), 0);
	for (at = log; (at = strstr(at, text)); at++)
		count++;
	free(log);
	return count;
}

/* No descriptor for another connection: the loop rests, and says so once. */
static void no_descriptors(void **state)
{
	char path[80];
	struct caller caller;
	struct caller_call *call;
	struct rlimit limit, none;
	int errors = dup(2), log;

	sl_log_set_level(SL_LOG_WARNING);
	(void)snprintf(path, sizeof(path), "%s/log", t.folder);
	log = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(errors >= 0 && log >= 0 && dup2(log, 2) == 2);
	caller_open(&caller, t.loop, t.path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	/* An attempt, the pause's end, and another attempt; after each, nothing is left to do. */
	assert_true(sd_event_run(t.loop, 0) > 0);
	assert_int_equal(sd_event_run(t.loop, 0), 0);
	assert_true(sd_event_run(t.loop, 20000000) > 0);
	assert_true(sd_event_run(t.loop, 0) > 0);
	assert_int_equal(sd_event_run(t.loop, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(dup2(errors, 2) == 2);
	assert_int_equal(count_of(path, "accepting a connection"), 1);
	call = caller_begin(&caller, "/Echo", "late", 4, false);
	caller_wait(&caller, call);
	assert_int_equal(call->status, SL_GRPC_OK);
	caller_close(&caller);
	(void)close(errors);
	(void)close(log);
	(void)unlink(path);
}

static void sockets_and_others(void **state)
{
	struct sl_grpc *other = NULL;
	struct sl_error err = {0};
	char path[200];

	/* A server listens there: this very one. */
	assert_true(sl_grpc_new(t.loop, t.path, on_call, NULL, &other, &err) < 0);
	assert_non_null(strstr(err.text, "cannot listen on"));
	/* The socket of a dead server is replaced. */
	t.grpc = sl_grpc_free(t.grpc);
	{
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", t.path);
		assert_int_equal(
			bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		(void)close(fd);
	}
	assert_int_equal(sl_grpc_new(t.loop, t.path, on_call, NULL, &t.grpc, &err), 0);
	t.grpc = sl_grpc_free(t.grpc);
	/* A file stays. */
	assert_int_equal(sl_file_replace(t.path, "x", 1, false), 0);
	assert_true(sl_grpc_new(t.loop, t.path, on_call, NULL, &other, &err) < 0);
	assert_non_null(strstr(err.text, "it is no socket"));
	assert_int_equal(access(t.path, F_OK), 0);
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_true(sl_grpc_new(t.loop, path, on_call, NULL, &other, &err) < 0);
	assert_non_null(strstr(err.text, "too long"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(many_late_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(large_messages, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_message, setup, teardown),
		cmocka_unit_test_setup_teardown(those_who_go, setup, teardown),
		cmocka_unit_test_setup_teardown(streams, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_stream_that_is_not_read, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_that_are_no_http2, setup, teardown),
		cmocka_unit_test_setup_teardown(no_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(sockets_and_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
