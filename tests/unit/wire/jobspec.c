#include "../base/test.h"

#include "wire/jobspec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT(literal) literal, sizeof(literal) - 1

static void add(struct sl_jobspec *spec, const char *key, const char *value)
{
	assert_int_equal(sl_jobspec_add(spec, key, value), 0);
}

static struct sl_jobspec small(void)
{
	struct sl_jobspec spec = {0};

	add(&spec, SL_JOBSPEC_ARG, "python");
	add(&spec, SL_JOBSPEC_ARG, "");
	add(&spec, SL_JOBSPEC_DIR, "/tmp");
	add(&spec, SL_JOBSPEC_ENV, "A=1");
	add(&spec, SL_JOBSPEC_ARG, "x=y\n\xff");
	add(&spec, SL_JOBSPEC_ENV, "AB=2");
	return spec;
}

static void test_check(void **state)
{
	static const struct {
		const char *name;
		const char *text;
		size_t size;
		bool from_daemon;
		const char *says; /* NULL: it is fine */
	} rows[] = {
		{"the least", TEXT("arg=a\0dir=/\0"), false, NULL},
		{"all there is", TEXT("dir=/a b\0umask=077\0env=A=\0arg=a\0arg=\0"),
			false, NULL},
		{"the daemon's",
			TEXT("arg=a\0dir=/\0uid=0\0gid=4294967294\0group=1\0group="
			     "2\0task=0\0"
			     "attempt=4294967295\0limit=15 0 18446744073709551615\0"),
			true, NULL},
		{"rights",
			TEXT("arg=a\0dir=/\0uid=0\0gid=0\0rights=18446744073709551615 1 "
			     "4294967295\0"),
			true, NULL},
		{"a stranger's rights", TEXT("arg=a\0dir=/\0rights=0 0 0\0"), false,
			"none that a job has"},
		{"rights without a login",
			TEXT("arg=a\0dir=/\0uid=0\0gid=0\0rights=0 0\0"), true,
			"no rights"},
		{"rights of two", TEXT("arg=a\0dir=/\0uid=0\0gid=0\0rights=0 2 0\0"),
			true, "no rights"},
		{"a stranger's limit", TEXT("arg=a\0dir=/\0limit=0 1 2\0"), false,
			"entry 3"},
		{"a limit of nothing", TEXT("arg=a\0dir=/\0uid=0\0gid=0\0limit=16 1 2\0"),
			true, "no resource limit"},
		{"a limit above itself",
			TEXT("arg=a\0dir=/\0uid=0\0gid=0\0limit=1 3 2\0"), true,
			"no resource limit"},
		{"a limit of one number", TEXT("arg=a\0dir=/\0uid=0\0gid=0\0limit=1 3\0"),
			true, "no resource limit"},
		{"a limit that is too large",
			TEXT("arg=a\0dir=/\0uid=0\0gid=0\0limit=1 3 "
			     "18446744073709551616\0"),
			true, "no resource limit"},
		{"nothing", TEXT(""), false, "0 entries 'arg'"},
		{"no end", TEXT("arg=a\0dir=/"), false, "has no end"},
		{"no command", TEXT("dir=/\0"), false, "0 entries 'arg'"},
		{"an empty command", TEXT("arg=\0dir=/\0"), false, "name is empty"},
		{"no folder", TEXT("arg=a\0"), false, "0 entries 'dir'"},
		{"two folders", TEXT("arg=a\0dir=/\0dir=/\0"), false, "at most 1"},
		{"a relative folder", TEXT("arg=a\0dir=b\0"), false, "not absolute"},
		{"an empty folder", TEXT("arg=a\0dir=\0"), false, "not absolute"},
		{"an unknown key", TEXT("arg=a\0dir=/\0foo=1\0"), false, "entry 3"},
		{"half a key", TEXT("ar=a\0dir=/\0"), false, "entry 1"},
		{"more than a key", TEXT("args=a\0dir=/\0"), false, "entry 1"},
		{"no key", TEXT("=a\0dir=/\0"), false, "entry 1"},
		{"no '='", TEXT("arg\0dir=/\0"), false, "entry 1"},
		{"an empty entry", TEXT("arg=a\0\0dir=/\0"), false, "entry 2"},
		{"no name", TEXT("arg=a\0dir=/\0env==b\0"), false, "NAME=VALUE"},
		{"no value", TEXT("arg=a\0dir=/\0env=b\0"), false, "NAME=VALUE"},
		{"umask not octal", TEXT("arg=a\0dir=/\0umask=08\0"), false, "octal"},
		{"umask too large", TEXT("arg=a\0dir=/\0umask=1000\0"), false, "octal"},
		{"umask empty", TEXT("arg=a\0dir=/\0umask=\0"), false, "octal"},
		{"umask negative", TEXT("arg=a\0dir=/\0umask=-1\0"), false, "octal"},
		{"two of umask", TEXT("arg=a\0dir=/\0umask=1\0umask=2\0"), false,
			"at most 1"},
		{"a stranger's user", TEXT("arg=a\0dir=/\0uid=0\0"), false, "entry 3"},
		{"a stranger's group", TEXT("arg=a\0dir=/\0group=0\0"), false, "entry 3"},
		{"no user", TEXT("arg=a\0dir=/\0gid=0\0"), true, "0 entries 'uid'"},
		{"two users", TEXT("arg=a\0dir=/\0uid=1\0uid=1\0gid=0\0"), true,
			"at most 1"},
		{"no user's number", TEXT("arg=a\0dir=/\0uid=4294967295\0gid=0\0"), true,
			"number"},
		{"a name of a user", TEXT("arg=a\0dir=/\0uid=root\0gid=0\0"), true,
			"number"},
		{"a number that wraps",
			TEXT("arg=a\0dir=/\0uid=18446744073709551616\0gid=0\0"), true,
			"number"},
		{"a task beyond", TEXT("arg=a\0dir=/\0uid=1\0gid=0\0task=4294967296\0"),
			true, "number"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_error err = {{0}};
		/* Its own memory of that size, so that a byte too many is seen. */
		char *copy = malloc(rows[i].size + 1);
		int r;

		memcpy(copy, rows[i].text, rows[i].size);
		copy[rows[i].size] = 'x';
		r = sl_jobspec_check(copy, rows[i].size, rows[i].from_daemon, &err);
		assert_row_u64(rows[i].name, (uint64_t)r,
			rows[i].says ? SL_JOBSPEC_BAD : SL_JOBSPEC_OK);
		assert_row_contains(
			rows[i].name, err.text, rows[i].says ? rows[i].says : "");
		free(copy);
	}
}

static void test_bounds(void **state)
{
	struct sl_error err = {{0}};
	struct sl_jobspec spec = small();
	size_t added = 0;
	char *word;

	(void)state;
	while (spec.entries < SL_JOBSPEC_ENTRIES_MAX)
		add(&spec, SL_JOBSPEC_ARG, "");
	assert_int_equal(
		sl_jobspec_check(spec.text, spec.size, false, &err), SL_JOBSPEC_OK);
	add(&spec, SL_JOBSPEC_ARG, "");
	assert_int_equal(
		sl_jobspec_check(spec.text, spec.size, false, &err), SL_JOBSPEC_BAD);
	assert_non_null(strstr(err.text, "65536 words"));
	/* The daemon can still name the user with the most groups. */
	add(&spec, SL_JOBSPEC_UID, "4294967294");
	add(&spec, SL_JOBSPEC_GID, "4294967294");
	for (int i = 0; i < 65536; i++)
		add(&spec, SL_JOBSPEC_GROUP, "4294967294");
	assert_int_equal(
		sl_jobspec_check(spec.text, spec.size, true, &err), SL_JOBSPEC_OK);
	while (sl_jobspec_add(&spec, SL_JOBSPEC_GROUP, "1") == 0)
		added++;
	assert_true(added < 64);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_GROUP, "1"), -E2BIG);
	sl_jobspec_fini(&spec);

	spec = small();
	word = calloc(1, SL_JOBSPEC_BYTES_MAX);
	memset(word, 'a', SL_JOBSPEC_BYTES_MAX - 1 - spec.size - strlen("arg="));
	add(&spec, SL_JOBSPEC_ARG, word);
	assert_int_equal(spec.size, SL_JOBSPEC_BYTES_MAX);
	assert_int_equal(
		sl_jobspec_check(spec.text, spec.size, false, &err), SL_JOBSPEC_OK);
	add(&spec, SL_JOBSPEC_ARG, "");
	assert_int_equal(
		sl_jobspec_check(spec.text, spec.size, false, &err), SL_JOBSPEC_BAD);
	assert_non_null(strstr(err.text, "bytes"));
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_ARG, word), -E2BIG);
	free(word);
	sl_jobspec_fini(&spec);
}

static void test_read(void **state)
{
	struct sl_jobspec spec = small();
	char **args = sl_jobspec_all(&spec, SL_JOBSPEC_ARG);
	size_t at = 0;

	(void)state;
	assert_string_equal(args[0], "python");
	assert_string_equal(args[1], "");
	assert_string_equal(args[2], "x=y\n\xff");
	assert_null(args[3]);
	free(args);
	assert_string_equal(sl_jobspec_next(&spec, SL_JOBSPEC_DIR, &at), "/tmp");
	assert_null(sl_jobspec_next(&spec, SL_JOBSPEC_DIR, &at));
	assert_int_equal(sl_jobspec_number(&spec, SL_JOBSPEC_UMASK, 022), 022);
	add(&spec, SL_JOBSPEC_UMASK, "027");
	add(&spec, SL_JOBSPEC_UID, "4294967294");
	assert_int_equal(sl_jobspec_number(&spec, SL_JOBSPEC_UMASK, 022), 027);
	assert_int_equal(sl_jobspec_number(&spec, SL_JOBSPEC_UID, 0), 4294967294u);
	sl_jobspec_fini(&spec);
}

/* The last of a name counts, and names that begin alike are others. */
static void test_env(void **state)
{
	static const char *const given[] = {
		"AB=1", "A=1", "B=", "A=2", "A.B=1", "ABC=1", "A=3=4", "B=5"};
	static const char *const wanted[] = {"AB=1", "A.B=1", "ABC=1", "A=3=4", "B=5"};
	struct sl_jobspec spec = {0};
	char **env;

	(void)state;
	env = sl_jobspec_env(&spec);
	assert_non_null(env);
	assert_null(env[0]);
	free(env);
	for (size_t i = 0; i < SL_ARRAY_LEN(given); i++)
		add(&spec, SL_JOBSPEC_ENV, given[i]);
	env = sl_jobspec_env(&spec);
	for (size_t i = 0; i < SL_ARRAY_LEN(wanted); i++)
		assert_string_equal(env[i], wanted[i]);
	assert_null(env[SL_ARRAY_LEN(wanted)]);
	free(env);
	sl_jobspec_fini(&spec);
}

/* --- Files. --- */

static int from_fd(int fd, size_t size, struct sl_error *err)
{
	struct sl_jobspec spec = {0};
	int r = sl_jobspec_from_fd(fd, size, false, &spec, err);

	if (r != SL_JOBSPEC_OK)
		assert_null(spec.text);
	sl_jobspec_fini(&spec);
	return r;
}

static void test_there_and_back(void **state)
{
	struct sl_jobspec spec = small(), back = {0};
	struct sl_error err = {{0}};
	int fd = sl_jobspec_to_fd(&spec);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(
		sl_jobspec_from_fd(fd, spec.size, false, &back, &err), SL_JOBSPEC_OK);
	assert_int_equal(back.size, spec.size);
	assert_int_equal(back.entries, spec.entries);
	assert_memory_equal(back.text, spec.text, spec.size);
	/* Wherever the sender has left its place in the file. */
	assert_true(lseek(fd, 0, SEEK_END) > 0);
	assert_int_equal(from_fd(fd, spec.size, &err), SL_JOBSPEC_OK);
	assert_int_equal(from_fd(fd, spec.size - 1, &err), SL_JOBSPEC_BAD);
	assert_non_null(strstr(err.text, "another size"));
	assert_int_equal(from_fd(fd, spec.size + 1, &err), SL_JOBSPEC_BAD);
	assert_int_equal(from_fd(fd, 0, &err), SL_JOBSPEC_BAD);
	close(fd);
	sl_jobspec_fini(&spec);
	sl_jobspec_fini(&back);
}

static int sealed(const char *text, size_t size, off_t whole, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	assert_int_equal(ftruncate(fd, whole), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void test_other_files(void **state)
{
	static const char text[] = "arg=a\0dir=/";
	const unsigned int all = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	struct sl_error err = {{0}};
	int ends[2], fd;
	char path[64];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		const unsigned int missing[] = {F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW};

		fd = sealed(text, sizeof(text), sizeof(text), all & ~missing[i]);
		assert_int_equal(from_fd(fd, sizeof(text), &err), SL_JOBSPEC_BAD);
		assert_non_null(strstr(err.text, "not a sealed file"));
		close(fd);
	}
	fd = sealed(text, sizeof(text), sizeof(text), all);
	assert_int_equal(from_fd(fd, sizeof(text), &err), SL_JOBSPEC_OK);
	/* The same, opened so that it cannot be read. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ends[0] = open(path, O_PATH | O_CLOEXEC);
	assert_int_equal(from_fd(ends[0], sizeof(text), &err), SL_JOBSPEC_BAD);
	close(ends[0]);
	close(fd);
	/* A hole; and one larger than any memory. */
	fd = sealed(text, sizeof(text), sizeof(text) + 100, all);
	assert_int_equal(from_fd(fd, sizeof(text) + 100, &err), SL_JOBSPEC_BAD);
	close(fd);
	fd = sealed(text, sizeof(text), (off_t)1 << 40, all);
	assert_int_equal(from_fd(fd, (size_t)1 << 40, &err), SL_JOBSPEC_BAD);
	assert_non_null(strstr(err.text, "shorten"));
	close(fd);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, sizeof(text)), sizeof(text));
	assert_int_equal(from_fd(ends[0], sizeof(text), &err), SL_JOBSPEC_BAD);
	assert_non_null(strstr(err.text, "not a sealed file"));
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(from_fd(-1, sizeof(text), &err), SL_JOBSPEC_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_other_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
