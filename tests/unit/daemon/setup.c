/* Starting: sockets, locks, GPUs, configuration, descriptors. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "rig.h"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static void starts_and_ends_cleanly(void **state)
{
	struct rig *rig = *state;
	struct stat stat_now;

	rig_start(rig, NULL);
	assert_true(rig_log_has(rig, "sluiced: ready on"));
	assert_true(rig_log_has(rig, ", 2 GPUs"));
	assert_int_equal(stat(rig->socket, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 0777, 0666);
	rig_stop(rig);
	assert_int_not_equal(stat(rig->socket, &stat_now), 0);
	/* SIGINT too. */
	rig_start(rig, "socket_mode: 0600\n");
	assert_int_equal(stat(rig->socket, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 0777, 0600);
	assert_int_equal(kill(rig->daemon, SIGINT), 0);
	assert_int_equal(waitpid(rig->daemon, NULL, 0), rig->daemon);
	rig->daemon = 0;
	assert_int_not_equal(stat(rig->socket, &stat_now), 0);
}

/* Messages for a service manager that wants to know every 100 ms whether the loop goes round. */
static void it_tells_that_its_loop_goes_round(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int pings = 0;
	bool ready = false;

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/notify", rig->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name.sun_path, 1), 0);
	assert_int_equal(setenv("WATCHDOG_USEC", "100000", 1), 0);
	rig_start(rig, NULL);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	while (pings < 5) {
		struct pollfd said = {.fd = fd, .events = POLLIN};
		char text[512] = "";

		assert_int_equal(poll(&said, 1, 5000), 1);
		assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
		ready |= strstr(text, "READY=1") != NULL;
		pings += strstr(text, "WATCHDOG=1") != NULL;
	}
	assert_true(ready);
	(void)close(fd);
	rig_stop(rig);
}

static void a_live_daemon_is_left_alone_and_a_dead_one_replaced(void **state)
{
	struct rig *rig = *state, second;
	char words[64];

	rig_start(rig, NULL);
	second = *rig;
	(void)snprintf(second.log, sizeof(second.log), "%s/log2", rig->dir);
	assert_int_equal(rig_start_fails(&second, NULL), 1);
	(void)snprintf(words, sizeof(words), "already running on %s, pid %d", rig->socket,
		(int)rig->daemon);
	assert_true(rig_log_has(&second, words));
	assert_int_equal(rig_status(rig).pid, rig->daemon); /* unharmed */
	rig_kill_daemon(rig);
	assert_int_equal(access(rig->socket, F_OK), 0); /* stale */
	rig_start(rig, NULL);
	rig_stop(rig);
}

/* A restart in a script: the next one must find GPUs that are free, or be told to wait. */
static void the_socket_is_locked_to_the_last(void **state)
{
	struct rig *rig = *state;
	char path[176];
	int fd = -1;

	rig_start(rig, "measure_interval: 10ms\n");
	rig->nvml->hang = 1; /* the end takes longer then */
	sl_clock_sleep(50 * SL_MS);
	(void)snprintf(path, sizeof(path), "%s.lock", rig->socket);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(kill(rig->daemon, SIGTERM), 0);
	rig_until(flock(fd, LOCK_EX | LOCK_NB) == 0);
	for (int place = 0; place < 2; place++) {
		rig_lock_path(rig, 0, place, path, sizeof(path));
		if (access(path, F_OK) == 0)
			fail_msg("%s is still there", path);
	}
	assert_int_equal(waitpid(rig->daemon, NULL, 0), rig->daemon);
	(void)close(fd);
	rig->daemon = 0;
	rig->nvml->hang = 0;
}

#define STRANGER 1001

/* A child as another user opens and locks whatever it may, and stays. Returns how many it has
 * locked. */
static unsigned int lock_as_stranger(
	const char *const *paths, unsigned int count, int flags, pid_t *child)
{
	unsigned int locked = 0;
	int answer[2];

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	*child = fork();
	if (*child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
			_exit(1);
		for (unsigned int i = 0; i < count; i++) {
			int fd = open(paths[i], flags, 0666);

			locked += fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		}
		(void)!write(answer[1], &locked, sizeof(locked));
		for (;;)
			(void)pause();
	}
	(void)close(answer[1]);
	assert_int_equal(read(answer[0], &locked, sizeof(locked)), sizeof(locked));
	(void)close(answer[0]);
	return locked;
}

static void end_stranger(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The lock files that a process has open. */
static unsigned int lock_files_of(pid_t pid, char paths[][160], unsigned int room)
{
	unsigned int count = 0;
	char folder[32];
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir)) && count < room;) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, paths[count], 159);

		if (n < 5 || memcmp(paths[count] + n - 5, ".lock", 5) != 0)
			continue;
		paths[count++][n] = '\0';
	}
	(void)closedir(dir);
	return count;
}

/* A process that can open a file can lock it: a stranger's locks stop no daemon, and ours
 * cannot be opened. */
static void strangers_locks_count_for_nothing(void **state)
{
	struct rig *rig = *state;
	char beside[176], run[96], tmp[96], paths[8][160];
	const char *before[] = {beside, run, tmp}, *after[8];
	unsigned int count;
	pid_t child;

	if (geteuid() != 0)
		skip();
	/* As in /tmp: every user may put files there. */
	assert_int_equal(chmod(rig->dir, 01777), 0);
	(void)snprintf(beside, sizeof(beside), "%s.lock", rig->socket);
	(void)snprintf(
		run, sizeof(run), "/run/lock/sluice-%s.lock", rig->nvml->gpus[0].uuid);
	(void)snprintf(tmp, sizeof(tmp), "/tmp/sluice-%s.lock", rig->nvml->gpus[0].uuid);
	assert_true(lock_as_stranger(before, 3, O_RDWR | O_CREAT, &child) >= 2);
	rig_start(rig, NULL);
	assert_int_equal(rig_gpu(rig).gpu, 0); /* it manages it */
	assert_true(rig_log_has(rig, "is no file of user 0 alone, and locks nothing"));
	rig_stop(rig);
	end_stranger(child);
	for (size_t i = 0; i < 3; i++)
		(void)unlink(before[i]);
	/* Nor can a stranger lock our files. */
	(void)umask(0);
	rig_start(rig, NULL);
	count = lock_files_of(rig->daemon, paths, 8);
	assert_true(count >= 2); /* the socket's and the GPU's */
	for (unsigned int i = 0; i < count; i++) {
		struct stat file;

		after[i] = paths[i];
		assert_int_equal(stat(paths[i], &file), 0);
		assert_int_equal(file.st_mode & 07777, 0600);
	}
	assert_int_equal(lock_as_stranger(after, count, O_RDONLY, &child), 0);
	rig_kill_daemon(rig);
	/* Nor after it has died. */
	end_stranger(child);
	assert_int_equal(lock_as_stranger(after, count, O_RDONLY, &child), 0);
	rig_start(rig, NULL);
	rig_stop(rig);
	end_stranger(child);
	(void)umask(022);
	assert_int_equal(chmod(rig->dir, 0755), 0);
}

/* The folder's owner decides which files count. */
static void a_strangers_folder_is_refused(void **state)
{
	struct rig *rig = *state, other = *rig;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(rig->dir, STRANGER, STRANGER), 0);
	assert_int_equal(rig_start_fails(&other, NULL), 1);
	assert_true(
		rig_log_has(&other, "belongs to user 1001, who decides what lies there"));
	assert_int_equal(chown(rig->dir, 0, 0), 0);
}

static void what_is_no_socket_of_ours_is_left_alone(void **state)
{
	struct rig *rig = *state;
	struct stat stat_now;
	char saved[160];

	assert_int_equal(sl_file_replace(rig->socket, "text", 4, false), 0);
	assert_int_equal(rig_start_fails(rig, NULL), 1);
	assert_true(rig_log_has(rig, "exists and is not a socket"));
	assert_int_equal(stat(rig->socket, &stat_now), 0);
	assert_int_equal(stat_now.st_size, 4);
	assert_int_equal(unlink(rig->socket), 0);
	/* 108 bytes are one too many, 107 are not. */
	memcpy(saved, rig->socket, sizeof(saved));
	(void)memset(rig->socket, 'a', 108);
	(void)memcpy(rig->socket, rig->dir, strlen(rig->dir));
	rig->socket[strlen(rig->dir)] = '/';
	rig->socket[108] = '\0';
	assert_int_equal(rig_start_fails(rig, NULL), 1);
	assert_true(
		rig_log_has(rig, "has 108 bytes, and a Unix socket's path may have 107"));
	rig->socket[107] = '\0';
	rig_start(rig, NULL);
	rig_stop(rig);
	memcpy(rig->socket, saved, sizeof(saved));
}

/* One daemon per GPU. */
static void gpus_of_another_daemon_are_not_managed(void **state)
{
	struct rig *rig = *state, second;
	char uuid[48], config[128];
	struct sl_msg_status_row status;

	(void)snprintf(uuid, sizeof(uuid), "%s", rig->nvml->gpus[0].uuid);
	(void)snprintf(config, sizeof(config), "gpus: [%s]\n", uuid);
	rig_start(rig, config);
	assert_true(rig_log_has(rig, ", 1 GPU"));
	second = *rig;
	(void)snprintf(second.socket, sizeof(second.socket), "%s/s2", rig->dir);
	(void)snprintf(second.log, sizeof(second.log), "%s/log2", rig->dir);
	(void)snprintf(second.config, sizeof(second.config), "%s/config2", rig->dir);
	rig_start(&second, "gpus: all\n");
	status = rig_status(&second);
	assert_int_equal(status.gpus, 1);
	assert_int_equal(status.nvml_ok, 1);
	assert_non_null(strstr(status.nvml_text, "another sluiced"));
	/* Without any GPU left the second would be no use. */
	rig_stop(&second);
	assert_int_equal(rig_start_fails(&second, config), 1);
	assert_true(rig_log_has(&second, "no GPU is left to manage"));
	assert_true(rig_log_has(&second, "another sluiced"));
	rig_start(&second, "gpus: all\n");
	/* When the first is gone the second takes over. */
	rig_stop(rig);
	rig_until(rig_status(&second).gpus == 2);
	rig_stop(&second);
}

static void unshareable_gpus_are_explained(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	union sl_msg msg;

	rig->nvml->gpus[0].mig = 1;
	rig->nvml->gpus[1].exclusive = 1;
	rig_start(rig, NULL);
	assert_true(rig_log_has(rig, ", 0 GPUs"));
	assert_true(rig_log_has(rig, "nvidia-smi -mig 0"));
	assert_true(rig_log_has(rig, "nvidia-smi -c DEFAULT"));
	peer = rig_peer(rig);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	rig_send_run(&peer, RIG_GIB, 0, 1, "", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "MIG"));
	rig->nvml->gpus[0].mig = 0; /* the administrator obeys */
	rig_until(rig_status(rig).gpus == 1);
	rig_peer_end(&peer);
	rig_stop(rig);
	rig->nvml->gpus[1].exclusive = 0;
}

static void without_nvml_it_runs_and_says_so(void **state)
{
	struct rig *rig = *state;
	char saved[128];
	struct sl_msg_status_row status;
	struct rig_peer peer;
	union sl_msg msg;

	(void)snprintf(saved, sizeof(saved), "%s", getenv("LD_LIBRARY_PATH"));
	(void)setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	rig_start(rig, NULL);
	(void)setenv("LD_LIBRARY_PATH", saved, 1);
	status = rig_status(rig);
	assert_int_equal(status.nvml_ok, 0);
	assert_int_equal(status.gpus, 0);
	assert_non_null(strstr(status.nvml_text, "libnvidia-ml.so.1"));
	peer = rig_peer(rig);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	rig_send_run(&peer, RIG_GIB, 0, 1, "", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "install the driver"));
	rig_peer_end(&peer);
	rig_stop(rig);
}

static void the_driver_may_come_later(void **state)
{
	struct rig *rig = *state;

	rig->nvml->broken = 1;
	rig_start(rig, NULL);
	assert_int_equal(rig_status(rig).nvml_ok, 0);
	rig->nvml->broken = 0;
	rig_until(rig_status(rig).gpus == 2);
	assert_int_equal(rig_status(rig).nvml_ok, 1);
	assert_string_equal(rig_status(rig).driver, "535.0-fake");
	rig_stop(rig);
}

/* A driver that fails in the middle: opened anew, no client is lost. */
static void the_driver_may_fail_and_come_back(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run, a;
	union sl_msg msg;

	rig_start(rig, "measure_interval: 50ms\n");
	run = rig_run(rig, RIG_GIB, RIG_GIB);
	a = rig_join(rig, &run);
	rig->nvml->broken = 1;
	rig_until(rig_status(rig).nvml_ok == 0);
	rig_ask(&a, 1, RIG_GIB / 2);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig->nvml->broken = 0;
	rig_until(rig_status(rig).nvml_ok == 1);
	rig_peer_end(&a);
	rig_peer_end(&run);
	rig_until(rig_gpu(rig).dying_bytes == 0);
	rig_stop(rig);
}

static void the_reserve_is_scaled_down(void **state)
{
	struct rig *rig = *state;

	rig_start(rig, NULL);
	assert_int_equal(rig_gpu(rig).reserve_bytes, 2 * RIG_GIB); /* of 16 GiB */
	rig_stop(rig);
	rig_start(rig, "context_reserve: 100MiB\n");
	assert_int_equal(rig_gpu(rig).reserve_bytes, 100 << 20);
	rig_stop(rig);
	/* It would leave nothing to share. */
	rig_start(rig, "context_reserve: 16GiB\n");
	assert_int_equal(rig_gpu(rig).reserve_bytes, 2 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).condition, SL_GPU_RESERVE);
	assert_true(rig_log_has(rig, "context_reserve is 16 GiB, and GPU-"));
	rig_stop(rig);
}

static void a_bad_configuration_is_refused_and_the_old_one_kept(void **state)
{
	struct rig *rig = *state;
	static const char bad[] = "max_clients: 5\nlogg_level: info\n";
	static const char good[] =
		"max_clients: 6\nlog_level: warning\nsocket_mode: 0600\n";
	struct stat socket_is;

	assert_int_equal(rig_start_fails(rig, "head_pass: soon\n"), 2);
	assert_true(rig_log_has(rig, "line 1"));
	assert_true(rig_log_has(rig, "head_pass"));
	rig_start(rig, "max_clients: 7\n");
	assert_int_equal(sl_file_replace(rig->config, bad, strlen(bad), false), 0);
	assert_int_equal(kill(rig->daemon, SIGHUP), 0);
	assert_true(rig_log_gets(rig, "the old configuration stays"));
	assert_true(rig_log_has(
		rig, "line 2: unknown key 'logg_level'; did you mean 'log_level'"));
	assert_int_equal(sl_file_replace(rig->config, good, strlen(good), false), 0);
	assert_int_equal(kill(rig->daemon, SIGHUP), 0);
	assert_true(rig_log_gets(rig, "anew"));
	assert_int_equal(stat(rig->socket, &socket_is), 0);
	assert_int_equal(socket_is.st_mode & 0777, 0600);
	rig_stop(rig);
}

static void too_many_clients_are_told(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peers[4];
	union sl_msg msg;

	rig_start(rig, "max_clients: 3\n");
	for (int i = 0; i < 3; i++) {
		peers[i] = rig_peer(rig);
		rig_hello(&peers[i], SL_ROLE_CONTROL, 0);
		rig_expect(&peers[i], SL_MSG_WELCOME, &msg);
	}
	peers[3] = rig_peer(rig);
	rig_expect(&peers[3], SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_FULL);
	assert_non_null(strstr(msg.reject.text, "raise max_clients"));
	rig_peer_end(&peers[0]);
	sl_clock_sleep(20 * SL_MS);
	rig_reconnect(rig, &peers[3]);
	rig_hello(&peers[3], SL_ROLE_CONTROL, 0);
	rig_expect(&peers[3], SL_MSG_WELCOME, &msg);
	for (int i = 1; i < 4; i++)
		rig_peer_end(&peers[i]);
	rig_stop(rig);
}

/* Workloads and clients need no connection to stay. */
static void what_outlives_connections_is_bounded_too(void **state)
{
	enum { MOST = 3 };
	struct rig *rig = *state;
	struct rig_peer runs[MOST + 1], clients[MOST + 1];
	union sl_msg msg;

	rig_start(rig, "max_clients: 3\n");
	for (int i = 0; i < MOST; i++) {
		runs[i] = rig_run(rig, 0, RIG_GIB);
		sl_closep(&runs[i].fd);
		rig_until(rig_status(rig).workloads == (unsigned int)i + 1);
	}
	runs[MOST] = rig_peer(rig);
	rig_hello(&runs[MOST], SL_ROLE_CONTROL, 0);
	rig_expect(&runs[MOST], SL_MSG_WELCOME, &msg);
	rig_send_run(&runs[MOST], 0, RIG_GIB, 1, "", NULL);
	rig_expect(&runs[MOST], SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "no place for another workload"));
	sl_closep(&runs[MOST].fd);
	for (int i = 0; i < MOST; i++) {
		clients[i] = rig_join(rig, &runs[i]);
		sl_closep(&clients[i].fd);
		rig_until(rig_status(rig).clients == (unsigned int)i + 1);
	}
	clients[MOST] = rig_peer(rig);
	memcpy(clients[MOST].token, runs[0].token, sizeof(runs[0].token));
	rig_hello(&clients[MOST], SL_ROLE_CLIENT, 0);
	rig_expect(&clients[MOST], SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_FULL);
	assert_non_null(strstr(msg.reject.text, "no place for another process"));
	/* A user with a place keeps it. */
	rig_reconnect(rig, &clients[0]);
	rig_join_as(&clients[0], &runs[0], 1);
	for (int i = 0; i <= MOST; i++) {
		rig_peer_end(&clients[i]);
		rig_peer_end(&runs[i]);
	}
	rig_stop(rig);
}

/* Connections of another user, all kept for a moment. */
static int connect_as_nobody(const struct rig *rig, int count)
{
	int status = 0, got = 0;
	pid_t child = fork();

	if (child > 0) {
		assert_int_equal(waitpid(child, &status, 0), child);
		return WEXITSTATUS(status);
	}
	if (setgid(65534) || setuid(65534))
		_exit(100);
	for (int i = 0; i < count; i++) {
		struct rig_peer peer = {.fd = sl_wire_connect(rig->socket, NULL)};
		union sl_msg msg;

		sl_wire_init(&msg, SL_MSG_HELLO);
		msg.hello.role = SL_ROLE_CONTROL;
		(void)!sl_wire_send(peer.fd, &msg);
		if (rig_receive(&peer, 5000, &msg) == SL_WIRE_OK)
			got += msg.head.type == SL_MSG_WELCOME;
	}
	_exit(got);
}

static void one_user_leaves_room_for_others(void **state)
{
	struct rig *rig = *state;

	if (geteuid() != 0)
		skip();
	rig_start(rig, "max_clients: 8\n");
	assert_int_equal(connect_as_nobody(rig, 8), 6);
	rig_stop(rig);
}

static void without_descriptors(struct rig *rig, rlim_t most)
{
	enum { COUNT = 40 };
	struct rlimit low = {most, most};
	struct rig_peer peers[COUNT];
	unsigned int full = 0, welcome = 0;
	union sl_msg msg;

	rig_start(rig, NULL);
	assert_int_equal(prlimit(rig->daemon, RLIMIT_NOFILE, &low, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		peers[i] = rig_peer(rig);
		/* A peer that is turned away may not get its HELLO out. */
		sl_wire_init(&msg, SL_MSG_HELLO);
		msg.hello.role = SL_ROLE_CONTROL;
		(void)!sl_wire_send(peers[i].fd, &msg);
		assert_int_equal(rig_receive(&peers[i], 5000, &msg), SL_WIRE_OK);
		welcome += msg.head.type == SL_MSG_WELCOME;
		full += msg.head.type == SL_MSG_REJECT &&
			msg.reject.reason == SL_REJECT_FULL;
	}
	assert_int_equal(full + welcome, COUNT);
	assert_true(full > 0 && welcome > 0);
	for (int i = 0; i < COUNT; i++)
		rig_peer_end(&peers[i]);
	/* And all is well again. */
	rig_until(rig_status(rig).pid == (unsigned int)rig->daemon);
	rig_stop(rig);
}

/* A peer takes two descriptors: one short of either. */
static void without_descriptors_peers_are_told(void **state)
{
	without_descriptors(*state, 48);
	without_descriptors(*state, 49);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_and_ends_cleanly),
		cmocka_unit_test(it_tells_that_its_loop_goes_round),
		cmocka_unit_test(a_live_daemon_is_left_alone_and_a_dead_one_replaced),
		cmocka_unit_test(the_socket_is_locked_to_the_last),
		cmocka_unit_test(strangers_locks_count_for_nothing),
		cmocka_unit_test(a_strangers_folder_is_refused),
		cmocka_unit_test(what_is_no_socket_of_ours_is_left_alone),
		cmocka_unit_test(gpus_of_another_daemon_are_not_managed),
		cmocka_unit_test(unshareable_gpus_are_explained),
		cmocka_unit_test(without_nvml_it_runs_and_says_so),
		cmocka_unit_test(the_driver_may_come_later),
		cmocka_unit_test(the_driver_may_fail_and_come_back),
		cmocka_unit_test(the_reserve_is_scaled_down),
		cmocka_unit_test(a_bad_configuration_is_refused_and_the_old_one_kept),
		cmocka_unit_test(too_many_clients_are_told),
		cmocka_unit_test(what_outlives_connections_is_bounded_too),
		cmocka_unit_test(one_user_leaves_room_for_others),
		cmocka_unit_test(without_descriptors_peers_are_told),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
