/*
 * ptx_cache - compiled modules are kept, and checked; and the compiler may be missing
 */
#include "ptx.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64], kept[128];

static const char code[] = "int answer(void) { return 42; }\n";

static int start(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ptx-cache-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(kept, sizeof(kept), "%s/sluice/ptx", folder);
	return setenv("XDG_CACHE_HOME", folder, 1);
}

static int stop(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* How many files there are; the path of the last. */
static unsigned files(char path[400])
{
	DIR *d = opendir(kept);
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, 400, "%s/%s", kept, e->d_name);
			n++;
		}
	if (d)
		closedir(d);
	return n;
}

static int answer_of(const char *c)
{
	struct sl_image_log log = {""};
	char path[64];
	int fd, got;

	if (sl_hostcc(c, &fd, &log) != CUDA_SUCCESS)
		fail_msg("%s", log.text);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	got = ((int (*)(void))dlsym(handle, "answer"))();
	dlclose(handle);
	close(fd);
	return got;
}

static CUresult without_compiler(const char *c, struct sl_image_log *log)
{
	char *path = strdup(getenv("PATH"));
	int fd = -1;
	CUresult r;

	setenv("PATH", "/nowhere", 1);
	r = sl_hostcc(c, &fd, log);
	setenv("PATH", path, 1);
	free(path);
	if (fd >= 0)
		close(fd);
	return r;
}

static void test_kept(void **state)
{
	struct sl_image_log log = {""};
	char path[400];
	struct stat st;

	(void)state;
	assert_int_equal(answer_of(code), 42);
	assert_int_equal(files(path), 1);
	assert_int_equal(stat(kept, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(without_compiler(code, &log), CUDA_SUCCESS);
	assert_int_equal(without_compiler("int answer(void) { return 43; }\n", &log),
		CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
	assert_non_null(strstr(log.text, "no 'cc' in PATH"));
	assert_int_equal(files(path), 1);
}

/* Each byte turned once, and each length once in a while: compiled anew, never run. */
static void test_damaged(void **state)
{
	struct sl_image_log log;
	char path[400], byte;
	struct stat st;

	(void)state;
	assert_int_equal(answer_of(code), 42);
	assert_int_equal(files(path), 1);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at += 997) {
		int fd = open(path, O_RDWR);

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		assert_int_equal(
			without_compiler(code, &log), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	assert_int_equal(without_compiler(code, &log), CUDA_SUCCESS);
	for (off_t length = st.st_size - 1; length >= 0; length = length * 2 / 3 - 1) {
		assert_int_equal(truncate(path, length), 0);
		assert_int_equal(
			without_compiler(code, &log), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
	}
	assert_int_equal(answer_of(code), 42);
	assert_int_equal(without_compiler(code, &log), CUDA_SUCCESS);
}

static void test_many_at_once(void **state)
{
	char path[400];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		if (fork() == 0)
			_exit(answer_of("int answer(void) { return 7; }\n") == 7 ? 0 : 1);
	for (unsigned i = 0; i < 4; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(files(path), 2);
}

/* A folder that others may write to is not used, nor is there need of one. */
static void test_untrusted(void **state)
{
	struct sl_image_log log;
	char path[400];

	(void)state;
	assert_int_equal(answer_of(code), 42);
	assert_int_equal(chmod(kept, 0777), 0);
	assert_int_equal(without_compiler(code, &log), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
	assert_int_equal(answer_of("int answer(void) { return 9; }\n"), 9);
	assert_int_equal(files(path), 2);
	assert_int_equal(chmod(kept, 0700), 0);
	setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
	assert_int_equal(answer_of(code), 42);
	setenv("XDG_CACHE_HOME", folder, 1);
}

/* The oldest goes once there are 2,000. */
static void test_bounded(void **state)
{
	const struct timespec old[2] = {{1000, 0}, {1000, 0}};
	struct sl_image_log log;
	char path[400];

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(path, sizeof(path), "%s/old%u", kept, i);
		int fd = open(path, O_WRONLY | O_CREAT, 0600);
		assert_true(fd >= 0);
		assert_int_equal(futimens(fd, old), 0);
		close(fd);
	}
	assert_int_equal(answer_of("int answer(void) { return 11; }\n"), 11);
	assert_true(files(path) >= 2000);
	assert_int_equal(without_compiler(code, &log), CUDA_SUCCESS);
	unsigned before = files(path);
	assert_int_equal(answer_of("int answer(void) { return 12; }\n"), 12);
	assert_int_equal(files(path), before);
	assert_int_equal(without_compiler(code, &log), CUDA_SUCCESS);
}

static void test_refused(void **state)
{
	struct sl_image_log log;
	int fd;

	(void)state;
	assert_int_equal(sl_hostcc("this is no C\n", &fd, &log), CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log.text, "the C compiler failed"));
	assert_int_equal(fd, -1);
	setenv("TMPDIR", "/nowhere", 1);
	assert_int_equal(sl_hostcc("int x;\n", &fd, &log), CUDA_ERROR_OPERATING_SYSTEM);
	assert_non_null(strstr(log.text, "/nowhere"));
	unsetenv("TMPDIR");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_untrusted),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
