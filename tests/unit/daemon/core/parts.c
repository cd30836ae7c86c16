/* map, visible, lock: the small parts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/core/lock.h"
#include "daemon/core/map.h"
#include "daemon/gpu/visible.h"

static void map_is_a_map(void **state)
{
	static uint64_t values[5000];
	struct sl_map map = {0};

	assert_null(sl_map_get(&map, 1));
	assert_null(sl_map_take(&map, 1));
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 5000; i++)
			assert_int_equal(sl_map_put(&map, i * 4096, &values[i]), 0);
		assert_int_equal(map.used, 5000);
		for (uint64_t i = 0; i < 5000; i++)
			assert_ptr_equal(sl_map_get(&map, i * 4096), &values[i]);
		assert_null(sl_map_get(&map, 1));
		for (uint64_t i = 0; i < 5000; i += 2)
			assert_ptr_equal(sl_map_take(&map, i * 4096), &values[i]);
		for (uint64_t i = 0; i < 5000; i++)
			assert_ptr_equal(
				sl_map_get(&map, i * 4096), i % 2 ? &values[i] : NULL);
		assert_int_equal(sl_map_put(&map, 4096, &values[0]), 0);
		assert_ptr_equal(sl_map_get(&map, 4096), &values[0]);
	}
	/* Coming and going for ever takes no memory for ever. */
	for (uint64_t i = 0; i < 1000000; i++) {
		assert_int_equal(sl_map_put(&map, 1ull << 40 | i, &values[0]), 0);
		assert_ptr_equal(sl_map_take(&map, 1ull << 40 | i), &values[0]);
	}
	assert_true(map.room <= 65536);
	sl_map_fini(&map);
}

static void visible_is_the_drivers_rule(void **state)
{
	static const char *const uuids[] = {"GPU-aaaa1111-0000-0000-0000-000000000000",
		"GPU-aaaa2222-0000-0000-0000-000000000000",
		"GPU-bbbb3333-0000-0000-0000-000000000000",
		"GPU-cccc4444-0000-0000-0000-000000000000"};
	static const struct {
		const char *text;
		unsigned int mask;
	} rows[] = {
		{"", 0},
		{"0", 1},
		{"2,0", 5},
		{" 1 , 3 ", 10},
		{"0,1,2,3", 15},
		{"-1", 0},
		{"0,-1,1", 1},
		{"1,4,0", 2},
		{"0,x,1", 1},
		{"0,,1", 1},
		{"0x1", 0},
		{"NoDevFiles", 0},
		{"GPU-b", 4},
		{"GPU-aaaa", 0},
		{"GPU-aaaa2", 2},
		{"gpu-b", 0},
		{"GPU-BBBB3333", 4},
		{"GPU-cccc4444-0000-0000-0000-000000000000,0", 9},
		{"GPU-", 0},
		{"MIG-GPU-b/0/0", 0},
		{"0,0", 1},
		{"99999999999999999999", 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		uint64_t mask = sl_visible_mask(rows[i].text, uuids, 4);

		if (mask != rows[i].mask)
			fail_msg("'%s': want %#x, got %#llx", rows[i].text, rows[i].mask,
				(unsigned long long)mask);
	}
	assert_int_equal(sl_visible_mask("0", uuids, 0), 0);
}

/* Runs fn in a child that stays until the pipe closes; returns its answer. */
static int in_child(int (*fn)(const char *), const char *argument, int *hold)
{
	int answer[2], stay[2], result = -1;

	assert_int_equal(pipe(answer), 0);
	assert_int_equal(pipe(stay), 0);
	if (fork() == 0) {
		char byte;
		int r = fn(argument);

		(void)close(stay[1]);
		(void)!write(answer[1], &r, sizeof(r));
		(void)!read(stay[0], &byte, 1);
		_exit(0);
	}
	(void)close(stay[0]);
	(void)close(answer[1]);
	assert_int_equal(read(answer[0], &result, sizeof(result)), sizeof(result));
	(void)close(answer[0]);
	*hold = stay[1];
	return result;
}

static int take(const char *path)
{
	int fd, holder;

	return sl_lock_take(path, &fd, &holder);
}

static void lock_is_held_and_dropped_with_its_holder(void **state)
{
	char dir[] = "/tmp/sluice-lock-XXXXXX", path[64], command[80];
	int hold, fd = -1, holder = 0;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	assert_int_equal(in_child(take, path, &hold), SL_LOCK_OK);
	assert_int_equal(sl_lock_take(path, &fd, &holder), SL_LOCK_BUSY);
	assert_int_equal(fd, -1);
	assert_true(holder > 1 && holder != getpid());
	(void)close(hold); /* its holder ends */
	(void)wait(NULL);
	assert_int_equal(sl_lock_take(path, &fd, &holder), SL_LOCK_OK);
	(void)close(fd);
	/* peer-failures row 3: a holder that is killed leaves nothing to clean up. */
	assert_int_equal(in_child(take, path, &hold), SL_LOCK_OK);
	(void)close(hold);
	(void)wait(NULL);
	/* Not through a symbolic link, and not where no file can be made. */
	(void)snprintf(command, sizeof(command), "%s/link", dir);
	assert_int_equal(symlink(path, command), 0);
	assert_int_equal(sl_lock_take(command, &fd, &holder), SL_LOCK_FOREIGN);
	assert_int_equal(sl_lock_take("/proc/none/x", &fd, &holder), -ENOENT);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

/* Holders that remove their file must not let two in. */
static void lock_admits_one_at_a_time(void **state)
{
	enum { CHILDREN = 4, ROUNDS = 500 };
	char dir[] = "/tmp/sluice-lock-XXXXXX", path[64];
	int *inside = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;

	assert_ptr_not_equal(inside, MAP_FAILED);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	for (int i = 0; i < CHILDREN; i++) {
		if (fork() != 0)
			continue;
		for (int round = 0; round < ROUNDS;) {
			int fd = -1, holder;

			if (sl_lock_take(path, &fd, &holder) != SL_LOCK_OK) {
				/* Otherwise its holder waits behind three that spin. */
				(void)sched_yield();
				continue;
			}
			if (__atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST) != 1)
				_exit(1);
			(void)sched_yield();
			(void)__atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
			sl_lock_drop(path, &fd);
			round++;
		}
		_exit(0);
	}
	for (int i = 0; i < CHILDREN; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(rmdir(dir), 0);
	(void)munmap(inside, 4096);
}

/* Two daemons may each be able to use only some of the folders. */
static void gpu_lock_meets_in_every_folder(void **state)
{
	char one[] = "/tmp/sluice-lock-XXXXXX", two[] = "/tmp/sluice-lock-XXXXXX",
	     command[80];
	const char *both[] = {one, two, NULL}, *second[] = {two, NULL};
	const char *none[] = {"/proc/none", NULL};
	int a[SL_LOCK_DIRS_MAX], b[SL_LOCK_DIRS_MAX], holder = 0;

	assert_non_null(mkdtemp(one));
	assert_non_null(mkdtemp(two));
	assert_int_equal(sl_lock_gpu(second, "GPU-x", a, &holder), SL_LOCK_OK);
	assert_int_equal(sl_lock_gpu(both, "GPU-x", b, &holder), SL_LOCK_BUSY);
	assert_int_equal(holder, getpid());
	assert_int_equal(b[0], -1); /* the first folder's lock was given back */
	assert_int_equal(sl_lock_gpu(both, "GPU-y", b, &holder), SL_LOCK_OK);
	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++) {
		sl_closep(&a[i]);
		sl_closep(&b[i]);
	}
	assert_int_equal(sl_lock_gpu(both, "GPU-x", a, &holder), SL_LOCK_OK);
	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		sl_closep(&a[i]);
	assert_true(sl_lock_gpu(none, "GPU-x", a, &holder) < 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s %s", one, two);
	assert_int_equal(system(command), 0);
}

/* Others can reach the file, too: it must not be waited for, nor written to. */
static void a_foreign_file_is_no_lock(void **state)
{
	char dir[] = "/tmp/sluice-lock-XXXXXX", path[64], secret[64], text[16] = "";
	int fd = -1, holder = 0;
	struct stat info;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/l", dir);
	(void)snprintf(secret, sizeof(secret), "%s/secret", dir);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(sl_lock_take(path, &fd, &holder), SL_LOCK_FOREIGN);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(sl_file_replace(secret, "precious", 8, false), 0);
	assert_int_equal(link(secret, path), 0);
	assert_int_equal(sl_lock_take(path, &fd, &holder), SL_LOCK_FOREIGN);
	fd = open(secret, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 8);
	assert_string_equal(text, "precious");
	sl_closep(&fd);
	assert_int_equal(unlink(path), 0);
	/* Our own, from an older daemon, is closed to others. */
	assert_int_equal(chmod(secret, 0644), 0);
	assert_int_equal(sl_lock_take(secret, &fd, &holder), SL_LOCK_OK);
	assert_int_equal(fstat(fd, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0600);
	sl_lock_drop(secret, &fd);
	assert_int_equal(rmdir(dir), 0);
}

static int take_gpu(const char *uuid)
{
	int fds[SL_LOCK_DIRS_MAX], holder = 0;
	int r = sl_lock_gpu(NULL, uuid, fds, &holder);

	return r == SL_LOCK_BUSY ? 1000 + holder : r;
}

static int take_gpu_as_alice(const char *uuid)
{
	return setgid(1001) < 0 || setuid(1001) < 0 ? -1 : take_gpu(uuid);
}

static int take_gpu_as_bob(const char *uuid)
{
	return setgid(1002) < 0 || setuid(1002) < 0 ? -1 : take_gpu(uuid);
}

/* The system's lock counts for all users, and an ordinary user's for that user alone. */
static void gpus_are_the_systems_first(void **state)
{
	char uuid[41], other[41];
	int fds[SL_LOCK_DIRS_MAX], holder = 0, hold[3];

	if (geteuid() != 0)
		skip();
	(void)snprintf(uuid, sizeof(uuid), "GPU-%08x-parts-1", (unsigned int)getpid());
	(void)snprintf(other, sizeof(other), "GPU-%08x-parts-2", (unsigned int)getpid());
	assert_int_equal(sl_lock_gpu(NULL, uuid, fds, &holder), SL_LOCK_OK);
	assert_int_equal(in_child(take_gpu_as_alice, uuid, &hold[0]), 1000 + getpid());
	(void)close(hold[0]);
	assert_int_equal(in_child(take_gpu_as_alice, other, &hold[0]), SL_LOCK_OK);
	assert_true(in_child(take_gpu_as_alice, other, &hold[1]) > 1000);
	assert_int_equal(in_child(take_gpu_as_bob, other, &hold[2]), SL_LOCK_OK);
	/* Nor does an ordinary user keep root out. */
	sl_lock_gpu_drop(NULL, uuid, fds);
	assert_int_equal(sl_lock_gpu(NULL, other, fds, &holder), SL_LOCK_OK);
	sl_lock_gpu_drop(NULL, other, fds);
	for (int i = 0; i < 3; i++)
		(void)close(hold[i]);
	while (wait(NULL) > 0)
		continue;
	assert_int_equal(system("rm -rf /tmp/sluice-1001/sluice-GPU-*-parts-*.lock "
				"/tmp/sluice-1002/sluice-GPU-*-parts-*.lock"),
		0);
}

static void folders_of_others_are_left_out(void **state)
{
	char open_to_all[] = "/tmp/sluice-lock-XXXXXX", own[] = "/tmp/sluice-lock-XXXXXX",
	     command[80];
	const char *both[] = {open_to_all, own, NULL}, *one[] = {open_to_all, NULL};
	int fds[SL_LOCK_DIRS_MAX], holder = 0;

	assert_non_null(mkdtemp(open_to_all));
	assert_non_null(mkdtemp(own));
	assert_int_equal(chmod(open_to_all, 01777), 0);
	assert_true(sl_lock_gpu(one, "GPU-x", fds, &holder) < 0);
	assert_int_equal(sl_lock_gpu(both, "GPU-x", fds, &holder), SL_LOCK_OK);
	assert_int_equal(fds[0], -1);
	sl_lock_gpu_drop(both, "GPU-x", fds);
	(void)snprintf(command, sizeof(command), "rm -rf %s %s", open_to_all, own);
	assert_int_equal(system(command), 0);
}

static void holders_are_found(void **state)
{
	static const char locks[] = "1: POSIX  ADVISORY  READ 11 00:1a:77 128 128\n"
				    "2: FLOCK  ADVISORY  WRITE 22 00:1a:78 0 EOF\n"
				    "3: FLOCK  ADVISORY  WRITE 33 fe:00:77 0 EOF\n"
				    "3: -> FLOCK  ADVISORY  WRITE 44 00:1a:77 0 EOF\n"
				    "4: FLOCK  ADVISORY  WRITE 55 00:1a:77 0 EOF\n";

	assert_int_equal(sl_lock_holder_in(locks, makedev(0, 0x1a), 77), 55);
	assert_int_equal(sl_lock_holder_in(locks, makedev(0, 0x1a), 78), 22);
	assert_int_equal(sl_lock_holder_in(locks, makedev(0xfe, 0), 77), 33);
	assert_int_equal(sl_lock_holder_in(locks, makedev(0xfe, 0), 78), 0);
	assert_int_equal(sl_lock_holder_in("", 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_is_a_map),
		cmocka_unit_test(visible_is_the_drivers_rule),
		cmocka_unit_test(lock_is_held_and_dropped_with_its_holder),
		cmocka_unit_test(lock_admits_one_at_a_time),
		cmocka_unit_test(gpu_lock_meets_in_every_folder),
		cmocka_unit_test(a_foreign_file_is_no_lock),
		cmocka_unit_test(gpus_are_the_systems_first),
		cmocka_unit_test(folders_of_others_are_left_out),
		cmocka_unit_test(holders_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
