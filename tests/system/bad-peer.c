/*
 * bad-peer - talks to sluiced as no good peer would
 *
 * Each case is one connection: another version of the protocol, no HELLO, half a message, too long
 * a message, an unknown number, a message that only the daemon sends. One case is many connections
 * that say nothing. After each the daemon must answer a good HELLO. Prints what came back.
 *
 *   bad-peer SOCKET CASE
 *
 * `floods` prints the kinds of flood. `flood KIND [UID]` is one flood, which ends when it is
 * killed; root may run it as another user.
 */
#include "floods.h"
#include "wire/wire.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror("bad-peer: connect");
		exit(2);
	}
	return fd;
}

/* What the daemon answers within two seconds. */
static const char *answer(int fd)
{
	static char text[400];
	union sl_msg msg, proof;
	struct pollfd ready = {fd, POLLIN, 0};
	ssize_t got;

	if (poll(&ready, 1, 2000) == 0)
		return "silence";
	got = recv(fd, &msg, sizeof(msg), 0);
	if (got < 0)
		return "closed";
	if (got == 0)
		return "closed";
	if (msg.head.type == SL_MSG_CHALLENGE) {
		sl_wire_proof(&proof, &msg);
		return sl_wire_send(fd, &proof) == SL_WIRE_OK ? answer(fd) : "closed";
	}
	if (msg.head.type == SL_MSG_REJECT)
		snprintf(text, sizeof(text), "reject %s", msg.reject.text);
	else if (msg.head.type == SL_MSG_WELCOME)
		snprintf(text, sizeof(text), "welcome");
	else
		snprintf(text, sizeof(text), "message %u", msg.head.type);
	return text;
}

static void hello(union sl_msg *msg)
{
	sl_wire_init(msg, SL_MSG_HELLO);
	msg->hello.role = SL_ROLE_CONTROL;
}

static int flood(const char *path, const char *kind, const char *user)
{
	uid_t uid = user ? (uid_t)strtoul(user, NULL, 10) : 0;

	if (user && (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)) {
		perror("bad-peer: setuid");
		return 2;
	}
	floods_run(path, kind);
	return 2;
}

int main(int argc, char **argv)
{
	union sl_msg msg;
	size_t bytes;
	int fd;

	if (argc >= 4 && !strcmp(argv[2], "flood"))
		return flood(argv[1], argv[3], argv[4]);
	if (argc != 3)
		return 2;
	for (int i = 0; !strcmp(argv[2], "floods") && floods_names[i]; i++)
		puts(floods_names[i]);
	if (!strcmp(argv[2], "floods"))
		return 0;
	fd = dial(argv[1]);
	hello(&msg);
	bytes = sizeof(msg.hello);
	if (!strcmp(argv[2], "good")) {
		/* as it is */
	} else if (!strcmp(argv[2], "version")) {
		msg.head.version += 1000;
	} else if (!strcmp(argv[2], "short")) {
		bytes = 5;
	} else if (!strcmp(argv[2], "half")) {
		bytes /= 2;
	} else if (!strcmp(argv[2], "long")) {
		bytes = sizeof(msg);
	} else if (!strcmp(argv[2], "unknown")) {
		msg.head.type = 9999;
	} else if (!strcmp(argv[2], "no-hello")) {
		sl_wire_init(&msg, SL_MSG_ASK);
		bytes = sizeof(msg.ask);
	} else if (!strcmp(argv[2], "daemons-own")) {
		sl_wire_init(&msg, SL_MSG_GRANT);
		bytes = sizeof(msg.grant);
	} else if (!strcmp(argv[2], "junk")) {
		memset(&msg, 0xa5, sizeof(msg));
	} else if (!strcmp(argv[2], "crowd")) {
		for (int i = 0; i < 200; i++)
			dial(argv[1]);
	} else {
		return 2;
	}
	if (send(fd, &msg, bytes, MSG_NOSIGNAL) < 0)
		printf("send: %s; ", strerror(errno));
	printf("%s\n", answer(fd));
	return 0;
}
