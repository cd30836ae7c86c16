#include "test.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void test_replace_and_read(void **state)
{
	char dir[] = "/tmp/sluice-test-XXXXXX", path[200], deep[300];
	char *text = NULL;
	size_t bytes = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a/b", dir);
	assert_int_equal(sl_file_make_dirs(path, 0700), 0);
	assert_int_equal(sl_file_make_dirs(path, 0700), 0);
	(void)snprintf(deep, sizeof(deep), "%s/file", path);
	assert_int_equal(sl_file_read(deep, 100, &text, &bytes), -ENOENT);
	assert_int_equal(sl_file_replace(deep, "one", 3, false), 0);
	assert_int_equal(sl_file_replace(deep, "other", 5, true), 0);
	assert_int_equal(sl_file_read(deep, 5, &text, &bytes), 0);
	assert_int_equal(bytes, 5);
	assert_string_equal(text, "other");
	sl_freep(&text);
	assert_null(text);
	assert_int_equal(sl_file_read(deep, 4, &text, &bytes), -EFBIG);
	assert_null(text);
	/* A folder that is not there: nothing is left behind. */
	(void)snprintf(deep, sizeof(deep), "%s/none/file", dir);
	assert_int_equal(sl_file_replace(deep, "x", 1, false), -ENOENT);
	(void)snprintf(deep, sizeof(deep), "rm -r %s", dir);
	assert_int_equal(system(deep), 0);
}

static void test_processes(void **state)
{
	uint64_t ours = 0, again = 0, init = 0;
	struct sl_pid_stat stat_now = {0};

	(void)state;
	assert_int_equal(sl_file_pid_start(getpid(), &ours), 0);
	assert_int_equal(sl_file_pid_start(getpid(), &again), 0);
	assert_true(ours > 0);
	assert_int_equal(ours, again);
	assert_int_equal(sl_file_pid_start(1, &init), 0);
	assert_true(init <= ours);
	assert_int_equal(sl_file_pid_parent(getpid()), getppid());
	assert_true(sl_file_pid_parent(-1) < 0);
	assert_int_equal(sl_file_pid_stat(getpid(), &stat_now), 0);
	assert_int_equal(stat_now.state, 'R');
	assert_int_equal(stat_now.parent, getppid());
	assert_int_equal(stat_now.start_ticks, ours);
	assert_false(stat_now.kernel_thread);
}

static int socket_at(const char *path, int type, bool listens)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (listens)
		assert_int_equal(listen(fd, 0), 0);
	return fd;
}

/* Connections that are never accepted, until the queue is full. */
static void fill_queue(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	strcpy(address.sun_path, path);
	do
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	assert_int_equal(errno, EAGAIN);
}

static void test_clear_socket(void **state)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	char dir[] = "/tmp/sluice-file-XXXXXX", path[64], deep[200];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	assert_int_equal(sl_file_clear_socket(path), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(types); i++) {
		fd = socket_at(path, types[i], types[i] != SOCK_DGRAM);
		assert_int_equal(sl_file_clear_socket(path), -EADDRINUSE);
		assert_int_equal(access(path, F_OK), 0);
		(void)close(fd);
		assert_int_equal(sl_file_clear_socket(path), 0);
		assert_int_equal(access(path, F_OK), -1);
	}
	/* A program that is too busy to accept is there all the same. */
	fd = socket_at(path, SOCK_STREAM, true);
	fill_queue(path);
	assert_int_equal(sl_file_clear_socket(path), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	(void)close(fd);
	assert_int_equal(sl_file_clear_socket(path), 0);
	assert_int_equal(sl_file_replace(path, "x", 1, false), 0);
	assert_int_equal(sl_file_clear_socket(path), -EEXIST);
	assert_int_equal(unlink(path), 0);
	memset(deep, 'a', sizeof(deep) - 1);
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(sl_file_clear_socket(deep), -ENAMETOOLONG);
	assert_int_equal(rmdir(dir), 0);
}

static void test_clock(void **state)
{
	sl_ns before = sl_clock_now();

	(void)state;
	sl_clock_sleep(2 * SL_MS);
	assert_true(sl_clock_now() - before >= 2 * SL_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace_and_read),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_clear_socket),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
