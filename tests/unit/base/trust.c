/* Which listeners are believed to be the daemon: by user, by folder, and from within a
 * user namespace. */
#include "test.h"

#include "base/trust.h"
#include "wire/wire.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALICE  1001
#define BOB    1002
#define NOBODY 65534

/* Runs fn in a child, as that user; its exit status. */
static int as_user(uid_t uid, int (*fn)(void *context), void *context)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		if (uid && (setgid(uid) < 0 || setuid(uid) < 0))
			_exit(99);
		_exit(fn(context));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

struct place {
	char folder[64], socket[80];
	pid_t listener;
};

static void listen_as(uid_t uid, const char *path, int ready)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	/* Bound first: the folder may be another's. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chmod(path, 0666) < 0 || (uid && setuid(uid) < 0) || listen(fd, 9) < 0)
		_exit(1);
	(void)!write(ready, "r", 1);
	for (;;)
		(void)pause();
}

/* A socket on which `user` listens, in a folder of `owner` below `parent`. */
static struct place make_place(const char *parent, uid_t owner, uid_t user)
{
	struct place place;
	int ready[2];
	char byte;

	(void)snprintf(
		place.folder, sizeof(place.folder), "%s/sluice-trust-XXXXXX", parent);
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(chmod(place.folder, 0755), 0);
	assert_int_equal(chown(place.folder, owner, owner), 0);
	(void)snprintf(place.socket, sizeof(place.socket), "%s/s", place.folder);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	place.listener = fork();
	if (place.listener == 0)
		listen_as(user, place.socket, ready[1]);
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return place;
}

static void end_place(const struct place *place)
{
	assert_int_equal(kill(place->listener, SIGKILL), 0);
	assert_int_equal(waitpid(place->listener, NULL, 0), place->listener);
	assert_int_equal(unlink(place->socket), 0);
	assert_int_equal(rmdir(place->folder), 0);
}

static struct sl_error *shared_text(void)
{
	static struct sl_error *text;

	if (!text)
		text = mmap(NULL, sizeof(*text), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(text, MAP_FAILED);
	return text;
}

static int judge(void *context)
{
	const struct place *place = context;
	int fd = sl_wire_connect(place->socket, NULL);

	return fd < 0 ? 98 : sl_trust_daemon(fd, place->socket, shared_text());
}

static void only_root_and_oneself(void **state)
{
	static const struct {
		const char *name;
		uid_t owner, listener, client;
		int want;
		const char *words;
	} rows[] = {
		{"root's, for root", 0, 0, 0, SL_TRUST_OK, ""},
		{"root's, for Alice", 0, 0, ALICE, SL_TRUST_OK, ""},
		{"Alice's own", ALICE, ALICE, ALICE, SL_TRUST_OK, ""},
		{"Alice's, in a folder of root's", 0, ALICE, ALICE, SL_TRUST_OK, ""},
		{"Bob's, for Alice", BOB, BOB, ALICE, SL_TRUST_NO, "runs as user 1002"},
		{"Bob's, for root", BOB, BOB, 0, SL_TRUST_NO,
			"start a daemon of your own"},
		{"Bob's, in a folder of root's", 0, BOB, ALICE, SL_TRUST_NO,
			"neither root nor you"},
		{"root's, in a folder of Bob's", BOB, 0, ALICE, SL_TRUST_NO,
			"belongs to user 1002"},
		{"root's, in a folder of Bob's, for root", BOB, 0, 0, SL_TRUST_NO,
			"Set SLUICE_SOCKET"},
		{"nobody's, for Alice", NOBODY, NOBODY, ALICE, SL_TRUST_NO,
			"runs as user 65534"},
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct place place = make_place("/tmp", rows[i].owner, rows[i].listener);

		shared_text()->text[0] = '\0';
		assert_row_u64(rows[i].name,
			(uint64_t)as_user(rows[i].client, judge, &place),
			(uint64_t)rows[i].want);
		assert_row_contains(rows[i].name, shared_text()->text, rows[i].words);
		end_place(&place);
	}
}

/* --- user namespaces ------------------------------------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool wrote = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	(void)close(fd);
	return wrote;
}

/* In a namespace that knows its own user only, as `root`. 97: there are none here. */
static int judge_inside(void *context)
{
	char map[32];

	(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)geteuid());
	/* Its files in /proc are its own only while it can be traced. */
	(void)prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER) < 0 || !write_file("/proc/self/uid_map", map))
		return 97;
	return judge(context);
}

static void the_outside_is_believed_by_its_place(void **state)
{
	static const struct {
		const char *name, *parent;
		uid_t owner, listener;
		mode_t mode;
		int want;
	} rows[] = {
		{"root's, in /run", "/run", 0, 0, 0755, SL_TRUST_OK},
		{"one's own outside", "/tmp", ALICE, ALICE, 0755, SL_TRUST_OK},
		{"what Bob put into /tmp", "/tmp", BOB, BOB, 0755, SL_TRUST_NO},
		/* It cannot be told from Bob's. */
		{"what root put into /tmp", "/tmp", 0, 0, 0755, SL_TRUST_NO},
		{"Bob's, in a folder like /tmp itself", "/run", 0, BOB, 01777,
			SL_TRUST_NO},
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct place place =
			make_place(rows[i].parent, rows[i].owner, rows[i].listener);
		int r;

		assert_int_equal(chmod(place.folder, rows[i].mode), 0);
		r = as_user(ALICE, judge_inside, &place);
		end_place(&place);
		if (r == 97) {
			print_message("skipped: users may make no namespaces here\n");
			return;
		}
		assert_row_u64(rows[i].name, (uint64_t)r, (uint64_t)rows[i].want);
	}
}

static void maps_are_read(void **state)
{
	static const struct {
		const char *map;
		bool is_namespace, has_nobody;
	} rows[] = {
		{"         0          0 4294967295\n", false, true},
		{"         0       1000          1\n", true, false},
		{"0 1000 1\n1 100000 65536\n", true, true},
		{"0 1000 1\n1 100000 65533\n", true, false},
		{"1000 1000 1\n", true, false},
		{"", true, false},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		bool has_nobody = !rows[i].has_nobody;

		assert_row_u64(rows[i].map,
			sl_trust_parse_map(rows[i].map, NOBODY, &has_nobody),
			rows[i].is_namespace);
		assert_row_u64(rows[i].map, has_nobody, rows[i].has_nobody);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_root_and_oneself),
		cmocka_unit_test(the_outside_is_believed_by_its_place),
		cmocka_unit_test(maps_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
