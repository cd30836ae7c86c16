/*
 * rig - plumbing of the daemon's tests
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define PATIENCE_MS 20000

void (*rig_idle)(void);
unsigned int rig_descriptors;

/* --- daemon ------------------------------------------------------------------------------- */

void rig_init(struct rig *rig, unsigned int gpu_count, uint64_t gpu_bytes)
{
	char path[96];
	int fd;

	memset(rig, 0, sizeof(*rig));
	(void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/sluice-rig-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	assert_int_equal(chmod(rig->dir, 0755), 0); /* other users connect, too */
	(void)snprintf(rig->socket, sizeof(rig->socket), "%s/s", rig->dir);
	(void)snprintf(rig->log, sizeof(rig->log), "%s/log", rig->dir);
	(void)snprintf(rig->config, sizeof(rig->config), "%s/config", rig->dir);
	(void)snprintf(path, sizeof(path), "%s/nvml", rig->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct fake_nvml)), 0);
	rig->nvml = mmap(NULL, sizeof(struct fake_nvml), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	assert_ptr_not_equal(rig->nvml, MAP_FAILED);
	(void)close(fd);
	rig->nvml->gpu_count = gpu_count;
	for (unsigned int i = 0; i < gpu_count; i++) {
		struct fake_gpu *gpu = &rig->nvml->gpus[i];

		/* No two tests may share a lock file. */
		(void)snprintf(gpu->uuid, sizeof(gpu->uuid),
			"GPU-%08x-0000-4000-8000-%08x%04x", (unsigned int)getpid(),
			(unsigned int)(sl_clock_now() / 1000), i);
		(void)snprintf(gpu->name, sizeof(gpu->name), "Fake %u", i);
		gpu->bus = 0x10 + i;
		gpu->total_bytes = gpu_bytes;
		rig->nvml->order[i] = i;
	}
	assert_int_equal(setenv("FAKE_NVML", path, 1), 0);
}

void rig_spawn(struct rig *rig, const char *config)
{
	const char *program = getenv("SLUICED");

	assert_non_null(program);
	if (config)
		assert_int_equal(
			sl_file_replace(rig->config, config, strlen(config), false), 0);
	rig->daemon = fork();
	assert_true(rig->daemon >= 0);
	if (rig->daemon == 0) {
		int log = open(rig->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		(void)dup2(log, STDERR_FILENO);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (rig_descriptors) {
			struct rlimit few = {rig_descriptors, rig_descriptors};

			(void)close_range(3, ~0u, 0);
			(void)setrlimit(RLIMIT_NOFILE, &few);
		}
		if (config)
			(void)execl(program, "sluiced", "--socket", rig->socket,
				"--state", rig->dir, "--log", "debug", "--config",
				rig->config, NULL);
		else
			(void)execl(program, "sluiced", "--socket", rig->socket,
				"--state", rig->dir, "--log", "debug", NULL);
		_exit(127);
	}
}

bool rig_log_has(const struct rig *rig, const char *text)
{
	sl_cleanup(sl_freep) char *log = NULL;
	size_t size = 0;

	return sl_file_read(rig->log, 64 << 20, &log, &size) == 0 &&
	       strstr(log, text) != NULL;
}

bool rig_log_gets(const struct rig *rig, const char *text)
{
	for (int i = 0; i < PATIENCE_MS / 5; i++) {
		if (rig_log_has(rig, text))
			return true;
		sl_clock_sleep(5 * SL_MS);
	}
	return false;
}

void rig_start(struct rig *rig, const char *config)
{
	(void)unlink(rig->log);
	rig_spawn(rig, config);
	if (!rig_log_gets(rig, "sluiced: ready on"))
		fail_msg("the daemon is not ready; see %s", rig->log);
}

int rig_start_fails(struct rig *rig, const char *config)
{
	int status = 0;

	(void)unlink(rig->log);
	rig_spawn(rig, config);
	assert_int_equal(waitpid(rig->daemon, &status, 0), rig->daemon);
	rig->daemon = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static size_t log_count(const struct rig *rig, const char *text)
{
	sl_cleanup(sl_freep) char *log = NULL;
	size_t size = 0, count = 0;

	if (sl_file_read(rig->log, 64 << 20, &log, &size) < 0)
		return 0;
	for (const char *at = log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

void rig_configure(struct rig *rig, const char *config)
{
	size_t before = log_count(rig, " anew");

	assert_int_equal(sl_file_replace(rig->config, config, strlen(config), false), 0);
	assert_int_equal(kill(rig->daemon, SIGHUP), 0);
	rig_until(log_count(rig, " anew") > before);
}

void rig_stop(struct rig *rig)
{
	int status = 0;

	assert_int_equal(kill(rig->daemon, SIGTERM), 0);
	assert_int_equal(waitpid(rig->daemon, &status, 0), rig->daemon);
	rig->daemon = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("the daemon ended with wait status %#x; see %s", status,
			rig->log);
}

void rig_kill_daemon(struct rig *rig)
{
	assert_int_equal(kill(rig->daemon, SIGKILL), 0);
	assert_int_equal(waitpid(rig->daemon, NULL, 0), rig->daemon);
	rig->daemon = 0;
}

void rig_lock_path(
	const struct rig *rig, unsigned int gpu, int place, char *buf, size_t size)
{
	unsigned int uid = (unsigned int)geteuid();
	const char *uuid = rig->nvml->gpus[gpu].uuid;

	if (place == 1)
		(void)snprintf(buf, size, "/tmp/sluice-%u/sluice-%s.lock", uid, uuid);
	else if (uid == 0)
		(void)snprintf(buf, size, "/run/sluice/sluice-%s.lock", uuid);
	else
		(void)snprintf(
			buf, size, "/run/user/%u/sluice/sluice-%s.lock", uid, uuid);
}

void rig_fini(struct rig *rig)
{
	char command[128];

	if (rig->daemon)
		rig_stop(rig);
	for (unsigned int i = 0; i < rig->nvml->gpu_count; i++) {
		char path[128];

		for (int place = 0; place < 2; place++) {
			rig_lock_path(rig, i, place, path, sizeof(path));
			(void)unlink(path);
		}
	}
	(void)munmap(rig->nvml, sizeof(*rig->nvml));
	(void)snprintf(command, sizeof(command), "rm -rf %s", rig->dir);
	assert_int_equal(system(command), 0);
}

/* --- peers -------------------------------------------------------------------------------- */

static void pass_fd(int channel, int fd)
{
	char byte = 'f';
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr header = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&header);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	(void)sendmsg(channel, &header, 0);
}

/* A byte, and the descriptor that comes with it, or -1. False: the other end is closed. */
static bool take_byte(int channel, int *fd)
{
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr header = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};

	*fd = -1;
	if (recvmsg(channel, &header, MSG_CMSG_CLOEXEC) != 1)
		return false;
	if (CMSG_FIRSTHDR(&header))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(*fd));
	return true;
}

static void send_proof(int fd, const uint8_t nonce[16])
{
	union sl_msg proof;

	sl_wire_init(&proof, SL_MSG_PROOF);
	memcpy(proof.proof.nonce, nonce, sizeof(proof.proof.nonce));
	(void)!sl_wire_send(fd, &proof);
}

/* By the process that connected, while it lives; else by this one, which proves nothing. */
static void prove(const struct rig_peer *peer, const uint8_t nonce[16])
{
	char byte;

	if (peer->pid <= 0 || peer->order < 0) {
		send_proof(peer->fd, nonce);
		return;
	}
	pass_fd(peer->order, peer->fd);
	assert_int_equal(write(peer->order, nonce, 16), 16);
	assert_int_equal(read(peer->order, &byte, 1), 1);
}

static void prove_as_told(int channel, int fd)
{
	uint8_t nonce[16];

	if (read(channel, nonce, sizeof(nonce)) != sizeof(nonce))
		_exit(1);
	send_proof(fd, nonce);
	(void)close(fd);
	(void)!write(channel, "p", 1);
}

/* The main loop of a peer's process. For each byte, it connects, hands the socket over and keeps
 * none. If a socket comes with the byte, it proves itself on that socket instead. */
static void child_main(int channel, const char *socket_path)
{
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Not the sockets of the other peers: they must close when the test closes them. */
	(void)dup2(channel, 3);
	channel = 3;
	(void)close_range(4, ~0u, 0);
	while (take_byte(channel, &fd)) {
		if (fd >= 0) {
			prove_as_told(channel, fd);
			continue;
		}
		for (int i = 0; i < 1000 && fd < 0; i++) {
			fd = sl_wire_connect(socket_path, NULL);
			if (fd < 0)
				(void)usleep(5000);
		}
		if (fd < 0)
			_exit(1);
		pass_fd(channel, fd);
		(void)close(fd);
	}
	_exit(0);
}

void rig_reconnect(const struct rig *rig, struct rig_peer *peer)
{
	if (peer->fd >= 0)
		(void)close(peer->fd);
	assert_int_equal(write(peer->order, "c", 1), 1);
	if (rig_idle)
		rig_idle();
	assert_true(take_byte(peer->order, &peer->fd) && peer->fd >= 0);
}

pid_t rig_fork_with_pid(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

struct rig_user {
	uid_t uid;
	gid_t gid;
};

static void become(uid_t uid, gid_t gid)
{
	if (setgroups(1, &gid) < 0 || setgid((gid_t)uid) < 0 || setuid(uid) < 0)
		_exit(1);
}

/* pid 0: any; user: to become this one, or NULL; prepare: called first, or NULL. */
static struct rig_peer make_peer(const struct rig *rig, pid_t pid,
	const struct rig_user *user, void (*prepare)(void))
{
	struct rig_peer peer = {.fd = -1, .order = -1};
	int channel[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
	peer.pid = pid ? rig_fork_with_pid(pid) : fork();
	if (peer.pid == 0) {
		(void)close(channel[0]);
		if (user)
			become(user->uid, user->gid);
		if (prepare)
			prepare();
		child_main(channel[1], rig->socket);
	}
	(void)close(channel[1]);
	peer.order = channel[0];
	if (peer.pid > 0)
		rig_reconnect(rig, &peer);
	return peer;
}

struct rig_peer rig_peer(const struct rig *rig)
{
	struct rig_peer peer = make_peer(rig, 0, NULL, NULL);

	assert_true(peer.pid > 0);
	return peer;
}

struct rig_peer rig_peer_as(const struct rig *rig, uid_t uid, gid_t gid)
{
	const struct rig_user user = {.uid = uid, .gid = gid};
	struct rig_peer peer = make_peer(rig, 0, &user, NULL);

	assert_true(peer.pid > 0);
	return peer;
}

struct rig_peer rig_peer_after(const struct rig *rig, void (*prepare)(void))
{
	struct rig_peer peer = make_peer(rig, 0, NULL, prepare);

	assert_true(peer.pid > 0);
	return peer;
}

struct rig_peer rig_peer_with_pid(const struct rig *rig, pid_t pid)
{
	struct rig_peer peer = make_peer(rig, pid, NULL, NULL);

	if (peer.pid < 0) {
		sl_closep(&peer.order);
		peer.pid = 0;
	}
	return peer;
}

void rig_peer_kill(struct rig_peer *peer)
{
	(void)kill(peer->pid, SIGKILL);
	assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
	sl_closep(&peer->order);
}

void rig_peer_end(struct rig_peer *peer)
{
	rig_peer_kill(peer);
	sl_closep(&peer->fd);
}

void rig_send(const struct rig_peer *peer, const union sl_msg *msg)
{
	assert_int_equal(sl_wire_send(peer->fd, msg), SL_WIRE_OK);
}

int rig_receive(const struct rig_peer *peer, int ms, union sl_msg *out)
{
	struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
	struct sl_error err = {0};
	sl_ns end = sl_clock_now() + (sl_ns)ms * SL_MS;
	int r;

	while (rig_idle && poll(&ready, 1, 0) == 0 && sl_clock_now() < end)
		rig_idle();
	if (poll(&ready, 1, rig_idle ? 0 : ms) <= 0)
		return SL_WIRE_AGAIN;
	r = sl_wire_recv(peer->fd, SL_FROM_DAEMON, out, &err);
	/* Where the kernel does not name the peer's process (identity.h). */
	if (r == SL_WIRE_OK && out->head.type == SL_MSG_CHALLENGE) {
		prove(peer, out->challenge.nonce);
		return rig_receive(peer, ms, out);
	}
	return r;
}

void rig_expect(const struct rig_peer *peer, enum sl_msg_type type, union sl_msg *out)
{
	int r;

	do {
		r = rig_receive(peer, PATIENCE_MS, out);
	} while (r == SL_WIRE_OK && out->head.type == SL_MSG_GPU && type != SL_MSG_GPU);
	if (r != SL_WIRE_OK)
		fail_msg("no %s, outcome %d", sl_wire_name(type), r);
	if (out->head.type != type)
		fail_msg("%s instead of %s%s%s", sl_wire_name(out->head.type),
			sl_wire_name(type), out->head.type == SL_MSG_REJECT ? ": " : "",
			out->head.type == SL_MSG_REJECT ? out->reject.text : "");
}

void rig_expect_silence(const struct rig_peer *peer, int ms)
{
	sl_ns end = sl_clock_now() + (sl_ns)ms * SL_MS;

	while (sl_clock_now() < end) {
		union sl_msg msg;
		int r = rig_receive(
			peer, (int)((end - sl_clock_now()) / SL_MS) + 1, &msg);

		if (r == SL_WIRE_OK && msg.head.type != SL_MSG_GPU)
			fail_msg("%s where nothing was due", sl_wire_name(msg.head.type));
		if (r != SL_WIRE_OK && r != SL_WIRE_AGAIN)
			fail_msg("connection lost, outcome %d", r);
	}
}

void rig_expect_closed(const struct rig_peer *peer)
{
	union sl_msg msg;
	int r;

	do {
		r = rig_receive(peer, PATIENCE_MS, &msg);
	} while (r == SL_WIRE_OK);
	assert_int_equal(r, SL_WIRE_CLOSED);
}

/* --- sentences ---------------------------------------------------------------------------- */

void rig_hello(const struct rig_peer *peer, enum sl_role role, uint64_t epoch)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = role;
	msg.hello.daemon_epoch = epoch;
	memcpy(msg.hello.token, peer->token, sizeof(msg.hello.token));
	rig_send(peer, &msg);
}

void rig_send_run(const struct rig_peer *peer, uint64_t request, uint64_t limit,
	unsigned int gpus, const char *name, const char *visible)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = request;
	msg.run.limit_kind = limit ? SL_AMOUNT_BYTES : SL_AMOUNT_UNSET;
	msg.run.limit_value = limit;
	msg.run.gpu_count = gpus;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = visible ? SL_RUN_VISIBLE_SET : 0;
	sl_wire_str(msg.run.name, sizeof(msg.run.name), name);
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "/usr/bin/server --fast");
	sl_wire_str(msg.run.visible, sizeof(msg.run.visible), visible ? visible : "");
	rig_send(peer, &msg);
}

struct rig_peer rig_run(const struct rig *rig, uint64_t request, uint64_t limit)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	rig_send_run(&peer, request, limit, 1, "", "0");
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	if (!msg.run_reply.ok)
		fail_msg("refused: %s", msg.run_reply.text);
	peer.workload = msg.run_reply.workload;
	memcpy(peer.token, msg.run_reply.token, sizeof(peer.token));
	return peer;
}

void rig_join_as(struct rig_peer *peer, const struct rig_peer *run, uint64_t epoch)
{
	union sl_msg msg;

	memcpy(peer->token, run->token, sizeof(peer->token));
	rig_hello(peer, SL_ROLE_CLIENT, epoch);
	rig_expect(peer, SL_MSG_WELCOME, &msg);
	peer->client = msg.welcome.client;
	peer->workload = msg.welcome.workload;
	peer->epoch = msg.welcome.daemon_epoch;
	assert_int_equal(peer->workload, run->workload);
	for (unsigned int i = msg.welcome.gpu_count; i > 0; i--)
		rig_expect(peer, SL_MSG_GPU, &msg);
	if (epoch)
		return; /* REPORTs come first */
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(peer, &msg);
}

struct rig_peer rig_join(const struct rig *rig, const struct rig_peer *run)
{
	struct rig_peer peer = rig_peer(rig);

	rig_join_as(&peer, run, 0);
	return peer;
}

void rig_ask(const struct rig_peer *peer, uint64_t ask, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = ask;
	msg.ask.bytes = bytes;
	rig_send(peer, &msg);
}

void rig_commit(const struct rig_peer *peer, uint64_t epoch, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = epoch;
	msg.commit.used_bytes = bytes;
	rig_send(peer, &msg);
}

static uint64_t listed(const struct rig *rig, pid_t pid)
{
	const struct fake_gpu *gpu = &rig->nvml->gpus[0];

	for (unsigned int i = 0; i < gpu->count; i++) {
		if (gpu->rows[i].pid == (unsigned int)pid)
			return gpu->rows[i].bytes;
	}
	return 0;
}

void rig_hold(
	const struct rig *rig, const struct rig_peer *peer, uint64_t ask, uint64_t bytes)
{
	union sl_msg msg;

	rig_ask(peer, ask, bytes);
	rig_expect(peer, SL_MSG_GRANT, &msg);
	assert_int_equal(msg.grant.ask, ask);
	assert_int_equal(msg.grant.bytes, bytes);
	rig_nvml(rig, peer->pid, listed(rig, peer->pid) + bytes);
	rig_commit(peer, msg.grant.epoch, bytes);
}

void rig_nvml(const struct rig *rig, pid_t pid, uint64_t bytes)
{
	struct fake_gpu *gpu = &rig->nvml->gpus[0];
	unsigned int i = 0;

	while (i < gpu->count && gpu->rows[i].pid != (unsigned int)pid)
		i++;
	if (bytes == 0 && i < gpu->count) {
		gpu->rows[i] = gpu->rows[gpu->count - 1];
		__atomic_store_n(&gpu->count, gpu->count - 1, __ATOMIC_RELEASE);
	} else if (bytes) {
		gpu->rows[i].pid = (unsigned int)pid;
		gpu->rows[i].bytes = bytes;
		if (i == gpu->count)
			__atomic_store_n(&gpu->count, i + 1, __ATOMIC_RELEASE);
	}
}

/* --- lists -------------------------------------------------------------------------------- */

static int control_socket(const struct rig *rig)
{
	struct rig_peer self = {.fd = sl_wire_connect(rig->socket, NULL)};
	union sl_msg msg;

	assert_true(self.fd >= 0);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	return self.fd;
}

static struct rig_peer ask_list(const struct rig *rig, enum sl_list_what what)
{
	struct rig_peer self = {.fd = control_socket(rig)};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = what;
	rig_send(&self, &msg);
	return self;
}

struct sl_msg_gpu_row rig_gpu(const struct rig *rig)
{
	struct rig_peer self = ask_list(rig, SL_LIST_GPUS);
	union sl_msg msg;

	rig_expect(&self, SL_MSG_GPU_ROW, &msg);
	(void)close(self.fd);
	return msg.gpu_row;
}

uint64_t rig_measured(const struct rig *rig)
{
	struct sl_msg_gpu_row row = rig_gpu(rig);

	return row.hidden_bytes + row.paid_bytes;
}

struct sl_msg_status_row rig_status(const struct rig *rig)
{
	struct rig_peer self = ask_list(rig, SL_LIST_STATUS);
	union sl_msg msg;

	rig_expect(&self, SL_MSG_STATUS_ROW, &msg);
	(void)close(self.fd);
	return msg.status_row;
}

unsigned int rig_uses(
	const struct rig *rig, struct sl_msg_use_row *out, unsigned int room)
{
	struct rig_peer self = ask_list(rig, SL_LIST_USES);
	unsigned int rows = 0;
	union sl_msg msg;

	for (;;) {
		assert_int_equal(rig_receive(&self, PATIENCE_MS, &msg), SL_WIRE_OK);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_int_equal(msg.head.type, SL_MSG_USE_ROW);
		if (out && rows < room)
			out[rows] = msg.use_row;
		rows++;
	}
	assert_int_equal(msg.list_end.rows, rows);
	(void)close(self.fd);
	return rows;
}

uint64_t rig_held(const struct rig *rig)
{
	struct rig_peer self = ask_list(rig, SL_LIST_USES);
	uint64_t bytes = 0;
	union sl_msg msg;

	for (;;) {
		assert_int_equal(rig_receive(&self, PATIENCE_MS, &msg), SL_WIRE_OK);
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_int_equal(msg.head.type, SL_MSG_USE_ROW);
		bytes += msg.use_row.held_bytes;
	}
	(void)close(self.fd);
	return bytes;
}

struct rig_peer rig_join_as_other(const struct rig *rig, uid_t user, struct rig_peer *run)
{
	struct rig_peer peer = rig_peer_as(rig, user, user);
	union sl_msg msg;

	*run = rig_peer_as(rig, user, user);
	rig_hello(run, SL_ROLE_CONTROL, 0);
	rig_expect(run, SL_MSG_WELCOME, &msg);
	rig_send_run(run, RIG_GIB, 0, 1, "", "0");
	rig_expect(run, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	run->workload = msg.run_reply.workload;
	memcpy(run->token, msg.run_reply.token, sizeof(run->token));
	rig_join_as(&peer, run, 0);
	return peer;
}
