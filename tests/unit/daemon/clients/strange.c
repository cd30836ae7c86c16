/* Descriptors of files whose file system never answers, and the charges for those not closed
 * yet. */
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/link/bundle.h"
#include "sharing.h"

#define CONFIG \
	"context_reserve: 1GiB\nmeasure_interval: 50ms\nmax_clients: 8\nhistory: no\n"
#define OTHER_USER 4242
/* 64 + 3 * 8 are for other things, so 1112 for memory; 556 of one client, 278 of a user when it
 * gets tight. */
#define DESCRIPTORS 1200

struct world {
	struct rig rig;
	char path[64]; /* of the file; "" where there is no FUSE */
	pid_t server;
};

/* --- a file system of one file ---------------------------------------------------------------- */

static void answer(
	int dev, const struct fuse_in_header *ask, const void *data, size_t size)
{
	unsigned char bytes[256];
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .unique = ask->unique};

	memcpy(bytes, &head, sizeof(head));
	if (size)
		memcpy(bytes + sizeof(head), data, size);
	(void)!write(dev, bytes, head.len);
}

/* The daemon's questions are never answered; the test's own processes are let go. */
static bool is_a_daemons(uint32_t thread)
{
	sl_cleanup(sl_closep) int fd = -1;
	char path[64], name[32] = {0};

	(void)snprintf(path, sizeof(path), "/proc/%u/comm", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 &&
	       strncmp(name, "sluiced", 7) == 0;
}

static void serve(int dev)
{
	static _Alignas(8) unsigned char bytes[1 << 17];
	const struct fuse_in_header *ask = (const void *)bytes;
	struct fuse_init_out init = {
		.major = 7, .minor = 31, .max_write = 4096, .max_background = 16};
	struct fuse_open_out open = {.fh = 1};

	while (read(dev, bytes, sizeof(bytes)) > 0) {
		if (ask->opcode == FUSE_INIT)
			answer(dev, ask, &init, sizeof(init));
		else if (ask->opcode == FUSE_OPEN)
			answer(dev, ask, &open, sizeof(open));
		else if (ask->opcode == FUSE_FLUSH && !is_a_daemons(ask->pid))
			answer(dev, ask, NULL, 0);
	}
	_exit(0);
}

static bool mount_it(int dev, const char *path)
{
	char options[128];

	(void)snprintf(options, sizeof(options),
		"fd=%d,rootmode=100666,user_id=0,group_id=0,allow_other", dev);
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("strange", path, "fuse", 0, options) == 0;
}

/* In a mount namespace of this process and the daemons that it starts. */
static void begin_fuse(struct world *world)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;

	world->path[0] = '\0';
	if (dev < 0 || unshare(CLONE_NEWNS) < 0) {
		sl_closep(&dev);
		return;
	}
	(void)snprintf(world->path, sizeof(world->path), "/tmp/strange.XXXXXX");
	fd = mkstemp(world->path);
	assert_true(fd >= 0);
	sl_closep(&fd);
	if (!mount_it(dev, world->path)) {
		(void)unlink(world->path);
		world->path[0] = '\0';
	} else {
		world->server = fork();
		if (world->server == 0)
			serve(dev);
	}
	sl_closep(&dev);
}

/* Then all calls that wait fail, and descriptors can be closed. */
static void end_fuse(struct world *world)
{
	if (!world->path[0])
		return;
	(void)kill(world->server, SIGKILL);
	(void)waitpid(world->server, NULL, 0);
	(void)umount2(world->path, MNT_DETACH);
	(void)unlink(world->path);
	world->path[0] = '\0';
}

static int setup(void **state)
{
	static struct world world;

	begin_fuse(&world);
	rig_init(&world.rig, 1, 16 * RIG_GIB);
	rig_descriptors = DESCRIPTORS;
	rig_start(&world.rig, CONFIG);
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	end_fuse(world);
	rig_fini(&world->rig);
	return 0;
}

/* --- words ------------------------------------------------------------------------------------ */

static int strange_file(const struct world *world)
{
	int fd;

	if (!world->path[0] || geteuid() != 0)
		skip();
	fd = open(world->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* False: the daemon has hung up. */
static bool send_copies(
	const struct rig_peer *peer, union sl_msg *msg, int fd, uint32_t count)
{
	struct iovec part = {.iov_base = msg, .iov_len = sl_wire_size(msg->head.type)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	union sl_wire_control control;
	int fds[SL_WIRE_FDS_MAX];

	for (uint32_t i = 0; i < count; i++)
		fds[i] = fd;
	sl_wire_attach(&header, &control, fds, count);
	return sendmsg(peer->fd, &header, MSG_NOSIGNAL) > 0;
}

/* Good clients are served: descriptors come, and are closed; so are connections. */
static void others_are_served(struct rig *rig)
{
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), a = rig_join(rig, &run);
	struct pollfd gone = {0};
	unsigned int before;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	share(&a, 77, 40, ends[1]);
	sl_closep(&ends[1]);
	say(&a, SL_MSG_IPC_WITHDRAW, 77);
	gone.fd = ends[0];
	assert_int_equal(poll(&gone, 1, 5000), 1);
	assert_true(gone.revents & POLLHUP);
	sl_closep(&ends[0]);
	before = daemon_fds_at_rest(rig);
	for (int i = 0; i < 30; i++) {
		struct rig_peer one = rig_peer(rig);

		sl_closep(&one.fd);
	}
	rig_until(daemon_fds(rig) <= before);
	rig_peer_end(&a);
	rig_peer_end(&run);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* A client opens memory and does not read, and so keeps descriptors that its partner withdraws.
 * They are charged to the partner until they are closed. */
static void charged_until_closed(void **state)
{
	struct rig *rig = &((struct world *)*state)->rig;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	unsigned int before = daemon_fds_at_rest(rig);
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	share(&a, 1, 300, file);
	for (int i = 0; i < 50; i++)
		ask(&b, 1);
	rig_until(rig_status(rig).clients == 2);
	say(&a, SL_MSG_IPC_WITHDRAW, 1);
	offer(&a, 2, 300);
	offered(&a, 2, SL_IPC_FULL);
	/* A reader that is gone gives it back. */
	rig_peer_end(&b);
	rig_until(daemon_fds(rig) < before);
	share(&a, 3, 300, file);
	sl_closep(&file);
	rig_peer_end(&a);
	rig_peer_end(&run);
}

/* A descriptor that is no memory: it is taken without a question to its file system. */
static void nobody_asks_the_file_system(void **state)
{
	struct world *world = *state;
	struct rig *rig = &world->rig;
	int file = strange_file(world);
	struct rig_peer run, a = rig_join_as_other(rig, OTHER_USER, &run);

	share(&a, 1, 40, file);
	assert_int_equal(rig_status(rig).clients, 1);
	/* Closing hangs: that is this user's own loss, and stays charged to it. */
	share(&a, 2, 500, file);
	say(&a, SL_MSG_IPC_WITHDRAW, 1);
	say(&a, SL_MSG_IPC_WITHDRAW, 2);
	rig_peer_end(&a);
	a = rig_peer_as(rig, OTHER_USER, OTHER_USER);
	rig_join_as(&a, &run, 0);
	share(&a, 3, 270, file);
	offer(&a, 4, 50);
	offered(&a, 4, SL_IPC_FULL);
	others_are_served(rig);
	rig_peer_end(&a);
	rig_peer_end(&run);
	end_fuse(world);
	begin_fuse(world);
	sl_closep(&file);
}

static void send_strays(const struct rig *rig, int file)
{
	struct rig_peer stranger = rig_peer_as(rig, OTHER_USER, OTHER_USER);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WORK);
	(void)send_copies(&stranger, &msg, file, SL_WIRE_FDS_MAX);
	rig_expect_closed(&stranger);
	rig_peer_end(&stranger);
}

/* Unwanted descriptors of one user are bounded, and do not keep others' from being closed. */
static void strays_are_one_users(void **state)
{
	struct world *world = *state;
	struct rig *rig = &world->rig;
	int file = strange_file(world);
	unsigned int before = daemon_fds_at_rest(rig);
	struct rig_peer run, a;

	for (int i = 0; i < 30; i++)
		send_strays(rig, file);
	assert_true(
		daemon_fds(rig) <= before + SL_BUNDLE_STRAYS_MAX + SL_WIRE_FDS_MAX + 8);
	assert_true(rig_log_has(rig, "no more are taken"));
	others_are_served(rig);
	/* The same user without descriptors, too. */
	a = rig_join_as_other(rig, OTHER_USER, &run);
	rig_hold(rig, &a, 1, RIG_GIB / 2);
	rig_peer_end(&a);
	rig_peer_end(&run);
	end_fuse(world);
	rig_until(daemon_fds(rig) <= before);
	sl_closep(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charged_until_closed),
		cmocka_unit_test(nobody_asks_the_file_system),
		cmocka_unit_test(strays_are_one_users),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
