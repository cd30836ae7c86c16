/*
 * sluice-move - takes a user's processes off their GPUs whole, and brings them back, for sluiced
 *
 * usage: sluice-move UID GID CAPABILITIES, with a socket to the daemon as descriptor 3. Each order
 * has a thread of its own, since one may hang in the driver. The process ends with the daemon's end
 * of the socket; no state is its own, so it may be killed at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "move/move.h"

enum { EXIT_USAGE = 64, EXIT_USER = 77 };

static atomic_uint open_orders;

static void send_answer(const struct sl_move_answer *answer)
{
	/* Without the daemon, main ends the process. */
	(void)!send(SL_MOVE_FD, answer, sizeof(*answer), MSG_NOSIGNAL);
}

static void *carry_out(void *context)
{
	struct sl_move_order *order = context;
	struct sl_move_answer answer = {.order = order->order};
	sl_ns begin = sl_clock_now();

	sl_walk(order, &answer);
	answer.span_ns = sl_clock_now() - begin;
	free(order);
	(void)atomic_fetch_sub(&open_orders, 1);
	send_answer(&answer);
	return NULL;
}

static bool begin(const struct sl_move_order *order)
{
	struct sl_move_order *copy;
	pthread_t thread;

	if (atomic_load(&open_orders) >= SL_MOVE_ORDERS_MAX)
		return false;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *order;
	(void)atomic_fetch_add(&open_orders, 1);
	if (pthread_create(&thread, NULL, carry_out, copy) != 0) {
		(void)atomic_fetch_sub(&open_orders, 1);
		free(copy);
		return false;
	}
	(void)pthread_detach(thread);
	return true;
}

/* Until the daemon closes its end. */
static int serve(void)
{
	struct sl_move_answer answer = {.outcome = SL_MOVE_READY};
	struct sl_move_order order;
	ssize_t n;

	send_answer(&answer);
	for (;;) {
		n = recv(SL_MOVE_FD, &order, sizeof(order), MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return EXIT_SUCCESS;
		if (n != (ssize_t)sizeof(order) || order.op >= SL_MOVE_OPS ||
			order.pairs > SL_MOVE_GPUS_MAX)
			return EXIT_USAGE;
		if (begin(&order))
			continue;
		answer = (struct sl_move_answer){.order = order.order,
			.outcome = order.op == SL_MOVE_AWAY ? SL_MOVE_REFUSED
							    : SL_MOVE_AWAY_STILL};
		send_answer(&answer);
	}
}

/* The daemon may be protected from the out-of-memory killer. */
static void be_killed_like_others(void)
{
	sl_cleanup(sl_closep) int fd =
		open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "0", 1) < 0)
		(void)0;
}

/* Root becomes any user, for good; others only themselves. */
static bool set_ids(uid_t uid, gid_t gid)
{
	if (geteuid() != 0)
		return geteuid() == uid && getuid() == uid;
	/* A container with a single user forbids setting groups, and does not need it. */
	if (setgroups(1, &gid) < 0 && !(errno == EPERM && uid == 0))
		return false;
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return false;
	return uid == 0 || (setuid(0) < 0 && geteuid() == uid);
}

/* A process may look into another one of its user that has no capability beyond its own. So what
 * the helper moves decides what it keeps: as root in a container, next to nothing. */
static bool keep_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(kept >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) == 0;
}

/* The driver reads files of this process in /proc that would be root's, so another user may trace
 * it: it must have nothing of the daemon's, such as its keys. Root of a container may not: these
 * files are root's anyway, and the helper sees the host's files. Where the kernel or a container
 * has no keys, none are shared. */
static bool become(uid_t uid, gid_t gid, uint64_t capabilities)
{
	be_killed_like_others();
	if (!set_ids(uid, gid) || !keep_capabilities(capabilities))
		return false;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
		errno != ENOSYS && errno != EPERM)
		return false;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_DUMPABLE, uid != 0) == 0;
}

static bool read_number(const char *text, unsigned long most, unsigned long *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return !*end && !errno && *out <= most;
}

int main(int argc, char **argv)
{
	unsigned long uid, gid, capabilities;
	sigset_t none;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)puts("sluice-move " SL_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc != 4 || !read_number(argv[1], UINT32_MAX - 1, &uid) ||
		!read_number(argv[2], UINT32_MAX - 1, &gid) ||
		!read_number(argv[3], ULONG_MAX, &capabilities) ||
		fcntl(SL_MOVE_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fputs("sluice-move: only sluiced starts this program\n", stderr);
		return EXIT_USAGE;
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* Descriptors that were inherited by mistake; before Linux 5.9 they stay. */
	(void)syscall(SYS_close_range, SL_MOVE_FD + 1, ~0u, 0);
	if (chdir("/") < 0 || !become((uid_t)uid, (gid_t)gid, capabilities))
		_exit(EXIT_USER);
	/* Not exit(3): threads may be in the driver. */
	_exit(serve());
}
