/*
 * The identity of a peer, with a pidfd of its process from the kernel, and as on a kernel that
 * gives none (before Linux 6.5). The thief is a process that sends its messages, leaves its socket
 * to a child and exits; the victim is another user's process that gets its number.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rig.h"

#define THIEF  1001
#define VICTIM 1002
#define SWITCH "SLUICE_NO_PEERPIDFD"

static const char *const kernels[] = {"with SO_PEERPIDFD", "without"};

static void start(struct rig *rig, size_t kernel)
{
	char config[160];

	if (kernel)
		assert_int_equal(setenv(SWITCH, "1", 1), 0);
	rig_init(rig, 1, 16 * RIG_GIB);
	(void)snprintf(
		config, sizeof(config), "context_reserve: 0\npage: %s/page\n", rig->dir);
	rig_start(rig, config);
	assert_int_equal(unsetenv(SWITCH), 0);
}

/* All of its threads: what connects now is accepted later. */
static void stop_daemon(const struct rig *rig)
{
	int status;

	assert_int_equal(kill(rig->daemon, SIGSTOP), 0);
	assert_int_equal(waitpid(rig->daemon, &status, WUNTRACED), rig->daemon);
	assert_true(WIFSTOPPED(status));
}

static void become(uid_t uid)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (uid && (setgid(uid) < 0 || setuid(uid) < 0))
		_exit(10);
}

/* --- a process that speaks for itself --------------------------------------------------------- */

/* The type of the next message within 5 s; answers the daemon's CHALLENGE first. 0: no message, or
 * the connection has ended. */
static uint32_t hear(int fd, union sl_msg *msg)
{
	for (;;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		union sl_msg proof;

		if (poll(&ready, 1, 5000) != 1 ||
			sl_wire_recv(fd, SL_FROM_DAEMON, msg, NULL) != SL_WIRE_OK)
			return 0;
		if (msg->head.type != SL_MSG_CHALLENGE)
			return msg->head.type;
		sl_wire_proof(&proof, msg);
		if (sl_wire_send(fd, &proof) != SL_WIRE_OK)
			return 0;
	}
}

static void say_hello(int fd, enum sl_role role, const uint8_t *token)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = role;
	if (token)
		memcpy(msg.hello.token, token, sizeof(msg.hello.token));
	if (sl_wire_send(fd, &msg) != SL_WIRE_OK)
		_exit(11);
}

struct owner {
	pid_t pid;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
};

static void owner_main(const struct rig *rig, int answer)
{
	int fd = sl_wire_connect(rig->socket, NULL);
	struct rig_peer self = {.fd = fd};
	union sl_msg msg;

	say_hello(fd, SL_ROLE_CONTROL, NULL);
	if (hear(fd, &msg) != SL_MSG_WELCOME)
		_exit(12);
	rig_send_run(&self, RIG_GIB, 0, 1, "", NULL);
	if (hear(fd, &msg) != SL_MSG_RUN_REPLY || !msg.run_reply.ok)
		_exit(13);
	(void)!write(answer, msg.run_reply.token, SL_WIRE_TOKEN_BYTES);
	fd = sl_wire_connect(rig->socket, NULL);
	say_hello(fd, SL_ROLE_CLIENT, msg.run_reply.token);
	if (hear(fd, &msg) != SL_MSG_WELCOME)
		_exit(14);
	(void)!write(answer, "w", 1);
	(void)close(fd);
	for (;;)
		(void)pause();
}

/* A workload of the thief's own, whose first process is a client, too. */
static struct owner make_owner(const struct rig *rig)
{
	struct owner owner;
	int answer[2];
	char byte;

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	owner.pid = fork();
	if (owner.pid == 0) {
		become(THIEF);
		owner_main(rig, answer[1]);
	}
	(void)close(answer[1]);
	assert_int_equal(
		read(answer[0], owner.token, sizeof(owner.token)), sizeof(owner.token));
	assert_int_equal(read(answer[0], &byte, 1), 1);
	(void)close(answer[0]);
	return owner;
}

static void end_process(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void honest_processes_are_served(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(kernels); i++) {
		struct rig rig;
		struct owner owner;

		start(&rig, i);
		owner = make_owner(&rig);
		assert_int_equal(rig_uses(&rig, NULL, 0), 1);
		end_process(owner.pid);
		rig_until(rig_uses(&rig, NULL, 0) == 0);
		rig_fini(&rig);
	}
}

/* --- the theft of a number ------------------------------------------------------------------- */

struct theft {
	enum sl_role role;
	bool accepted; /* the daemon sees the thief alive; else only the process with its number
		        * then */
	uid_t uid;
	const uint8_t *token;
};

/* What the daemon says to the thief's child. */
static void child_main(const struct theft *theft, int fd, int go, int answer)
{
	union sl_msg msg = {0};
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)!read(go, &byte, 1);
	if (theft->accepted)
		say_hello(fd, theft->role, theft->token);
	(void)hear(fd, &msg);
	(void)!write(answer, &msg.head.type, sizeof(msg.head.type));
	_exit(0);
}

static void thief_main(
	const struct rig *rig, const struct theft *theft, int go, int answer)
{
	int fd = sl_wire_connect(rig->socket, NULL);

	if (!theft->accepted)
		say_hello(fd, theft->role, theft->token);
	else
		sl_clock_sleep(200 * SL_MS);
	if (fork() == 0)
		child_main(theft, fd, go, answer);
	_exit(0);
}

static pid_t make_victim(pid_t pid, uid_t uid)
{
	pid_t victim = rig_fork_with_pid(pid);

	if (victim == 0) {
		become(uid);
		for (;;)
			(void)pause();
	}
	return victim;
}

/* What the thief's child was told in the end; UINT32_MAX: no number can be chosen here. */
static uint32_t steal(const struct rig *rig, const struct theft *theft)
{
	uint32_t told = 0;
	int go[2], answer[2], status;
	pid_t thief, victim;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	if (!theft->accepted)
		stop_daemon(rig);
	thief = fork();
	if (thief == 0) {
		become(theft->uid);
		thief_main(rig, theft, go[0], answer[1]);
	}
	assert_int_equal(waitpid(thief, &status, 0), thief);
	assert_int_equal(status, 0);
	victim = make_victim(thief, VICTIM);
	sl_clock_sleep(50 * SL_MS);
	(void)kill(rig->daemon, SIGCONT);
	(void)close(answer[1]);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(read(answer[0], &told, sizeof(told)), sizeof(told));
	if (victim < 0)
		told = UINT32_MAX;
	else
		end_process(victim);
	(void)close(go[0]);
	(void)close(go[1]);
	(void)close(answer[0]);
	return told;
}

static void a_number_is_not_stolen(void **state)
{
	static const struct {
		const char *name;
		enum sl_role role;
		bool accepted, welcome[2];
	} rows[] = {
		{"a client, dead before accept", SL_ROLE_CLIENT, false, {false, false}},
		{"the command line, dead before accept", SL_ROLE_CONTROL, false,
			{false, false}},
		{"a client, dead before HELLO", SL_ROLE_CLIENT, true, {false, false}},
		/* The kernel handed the thief out: it stays the thief, and may ask as its user. */
		{"the command line, dead before HELLO", SL_ROLE_CONTROL, true,
			{true, false}},
	};

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(kernels); i++) {
		struct rig rig;
		struct owner owner;

		start(&rig, i);
		owner = make_owner(&rig);
		for (size_t k = 0; k < SL_ARRAY_LEN(rows); k++) {
			struct theft theft = {.role = rows[k].role,
				.accepted = rows[k].accepted,
				.uid = THIEF,
				.token = owner.token};
			uint32_t told = steal(&rig, &theft);

			if (told == UINT32_MAX) {
				print_message("skipped: no pid can be chosen here\n");
				break;
			}
			if ((told == SL_MSG_WELCOME) != rows[k].welcome[i])
				fail_msg("%s, %s: told %s", kernels[i], rows[k].name,
					sl_wire_name(told));
			/* The workload's own process, and no other. */
			assert_int_equal(rig_status(&rig).clients, 1);
		}
		end_process(owner.pid);
		rig_fini(&rig);
	}
}

/* --- answers that prove nothing
 * ----------------------------------------------------------------- */

static void a_proof_is_checked(void **state)
{
	struct rig rig;
	struct rig_peer peer, other;
	union sl_msg msg, proof;

	start(&rig, 1);
	/* Another process answers: this one, and not the child that connected. */
	peer = rig_peer(&rig);
	other = peer;
	other.order = -1;
	rig_hello(&other, SL_ROLE_CONTROL, 0);
	rig_expect(&other, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
	assert_non_null(strstr(msg.reject.text, "not the one that answers"));
	rig_peer_end(&peer);
	/* An answer from before the question. */
	peer = rig_peer(&rig);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	sl_wire_init(&proof, SL_MSG_PROOF);
	rig_send(&peer, &proof);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_PROTOCOL);
	rig_peer_end(&peer);
	/* Another message in place of the answer. */
	peer = rig_peer(&rig);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_PROTOCOL);
	assert_non_null(strstr(msg.reject.text, "HELLO instead of an answer"));
	rig_peer_end(&peer);
	rig_fini(&rig);
}

/* A program that takes on another user's rights inherits the socket. */
static void another_user_proves_nothing(void **state)
{
	struct rig rig;
	int status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	start(&rig, 1);
	child = fork();
	if (child == 0) {
		int fd = sl_wire_connect(rig.socket, NULL);
		union sl_msg msg;

		become(THIEF);
		say_hello(fd, SL_ROLE_CONTROL, NULL);
		_exit(hear(fd, &msg) == SL_MSG_REJECT &&
					msg.reject.reason == SL_REJECT_DENIED
				? 0
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rig_fini(&rig);
}

/* --- the page
 * ---------------------------------------------------------------------------------- */

static int dial_page(const struct rig *rig)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/page", rig->dir);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		_exit(15);
	return fd;
}

static void ask_page(int fd)
{
	static const char body[] = "{\"command\": [\"true\"], \"request\": \"32MiB\"}";
	char text[300];
	int size = snprintf(text, sizeof(text),
		"POST /api/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		sizeof(body) - 1, body);

	if (write(fd, text, (size_t)size) != size)
		_exit(16);
}

/* The whole answer goes to the test. */
static void hear_page(int fd, int answer)
{
	char text[4096] = "";
	size_t size = 0;
	ssize_t n;

	while (size < sizeof(text) - 1 &&
		(n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	(void)!write(answer, text, size);
	_exit(0);
}

/* dies: the one that asked, and its number becomes that of a process outside. */
static void page_main(const struct rig *rig, bool contained, bool dies, int answer)
{
	int fd;

	if (contained && unshare(CLONE_NEWNS) < 0)
		_exit(17);
	fd = dial_page(rig);
	ask_page(fd);
	if (!dies || fork() == 0)
		hear_page(fd, answer);
	_exit(0);
}

static void containers_do_not_submit_by_the_page(void **state)
{
	static const struct {
		const char *name;
		bool contained, dies;
		const char *want[2];
	} rows[] = {
		{"outside", false, false, {"HTTP/1.1 200", "before Linux 6.5"}},
		{"inside", true, false, {"is in a container", "before Linux 6.5"}},
		{"inside, with the number of one outside", true, true,
			{"it has ended", "before Linux 6.5"}},
	};

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < SL_ARRAY_LEN(kernels); i++) {
		struct rig rig;

		start(&rig, i);
		for (size_t k = 0; k < SL_ARRAY_LEN(rows); k++) {
			char text[4096] = "";
			int answer[2];
			pid_t asker, victim = 0;

			assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
			stop_daemon(&rig);
			asker = fork();
			if (asker == 0)
				page_main(
					&rig, rows[k].contained, rows[k].dies, answer[1]);
			if (rows[k].dies) {
				assert_int_equal(waitpid(asker, NULL, 0), asker);
				victim = make_victim(asker, 0);
			}
			(void)close(answer[1]);
			assert_int_equal(kill(rig.daemon, SIGCONT), 0);
			assert_true(read(answer[0], text, sizeof(text) - 1) > 0);
			(void)close(answer[0]);
			if (!strstr(text, rows[k].want[i]))
				fail_msg("%s, %s: %s", kernels[i], rows[k].name, text);
			if (!rows[k].dies)
				assert_int_equal(waitpid(asker, NULL, 0), asker);
			if (victim > 0)
				end_process(victim);
		}
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_processes_are_served),
		cmocka_unit_test(a_number_is_not_stolen),
		cmocka_unit_test(a_proof_is_checked),
		cmocka_unit_test(another_user_proves_nothing),
		cmocka_unit_test(containers_do_not_submit_by_the_page),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
