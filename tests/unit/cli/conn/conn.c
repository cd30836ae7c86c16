/*
 * Connecting when this process itself is in trouble. Errors of a daemon are in
 * tests/system/cli/badinput.sh.
 */
#include "../../base/test.h"

#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/conn/past.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char dir[] = "/tmp/sluice-unit-XXXXXX", path[64];

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	return setenv("SLUICE_SOCKET", path, 1);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void test_absent(void **state)
{
	struct sl_conn conn;
	struct sl_error err = {0};

	(void)state;
	assert_int_equal(sl_conn_open(&conn, &err), SL_EXIT_NO_DAEMON);
	assert_row_contains("absent", err.text, path);
	assert_row_contains("absent", err.text, "sluiced &");
	assert_string_equal(conn.socket, path);
	sl_conn_close(&conn);
	sl_conn_close(&conn);
}

static void test_no_descriptors(void **state)
{
	struct rlimit before, none;
	struct sl_conn conn;
	struct sl_error err = {0};
	int outcome, next = open("/dev/null", O_RDONLY);

	(void)state;
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	outcome = sl_conn_open(&conn, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	sl_conn_close(&conn);
	assert_int_equal(outcome, SL_EXIT_SYSTEM);
	assert_row_contains("EMFILE", err.text, "no descriptors left");
	assert_row_contains("EMFILE", err.text, "ulimit -n");
}

/* The daemon does not accept: the connection is in its queue, and the answer never comes. */
static void test_timeout(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sl_conn conn;
	struct sl_error err = {0};

	(void)state;
	strcpy(address.sun_path, path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(sl_conn_open(&conn, &err), SL_EXIT_NO_DAEMON);
	assert_row_contains("bound only", err.text, "nothing listens there");
	assert_int_equal(listen(listener, 1), 0);
	setenv("SLUICE_TIMEOUT", "20ms", 1);
	assert_int_equal(sl_conn_open(&conn, &err), SL_EXIT_NO_DAEMON);
	assert_row_contains("mute", err.text, "within 20 ms");
	sl_conn_close(&conn);
	setenv("SLUICE_TIMEOUT", "junk", 1);
	close(listener);
	assert_int_equal(sl_conn_open(&conn, &err), SL_EXIT_NO_DAEMON);
	assert_int_equal(conn.timeout_ms, 10000);
	unsetenv("SLUICE_TIMEOUT");
	sl_conn_close(&conn);
}

static void *fetch(void *status)
{
	struct sl_msg_history ask = {.what = SL_HISTORY_USAGE};
	char *text = NULL;
	size_t size = 0;

	*(int *)status = sl_past_fetch(SL_VERB_history, false, &ask, &text, &size);
	free(text);
	return NULL;
}

/* A question about the past may take longer than others; the socket's own deadline is longer,
 * too. */
static void test_long_timeout(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), next, status = -1;
	struct timeval span = {0};
	socklen_t length = sizeof(span);
	pthread_t thread;

	(void)state;
	strcpy(address.sun_path, path);
	unlink(path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	next = open("/dev/null", O_RDONLY);
	close(next);
	assert_int_equal(pthread_create(&thread, NULL, fetch, &status), 0);
	while (getsockopt(next, SOL_SOCKET, SO_RCVTIMEO, &span, &length) < 0 ||
		span.tv_sec == 0)
		usleep(1000);
	assert_int_equal(span.tv_sec, 60);
	assert_int_equal(shutdown(next, SHUT_RDWR), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_not_equal(status, -1);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_long_timeout),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
