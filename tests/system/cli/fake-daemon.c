/*
 * fake-daemon SOCKET MODE: answers as a daemon should not, or with lists made up
 *
 * What users meet on the first day (another version, a daemon that hangs, a stranger's socket) must
 * be told apart by the command line, and none of it can be had from the real daemon at will.
 * Serves one connection after the other until it is killed.
 */
#include "base/sl.h"
#include "policy/node.h"
#include "wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define USER_NOBODY 65534

static const char *mode;

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static void send_msg(int fd, const union sl_msg *msg)
{
	if (sl_wire_send(fd, msg) < 0)
		perror("fake-daemon: send");
}

static void reject(int fd, enum sl_reject reason, uint32_t version, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REJECT);
	msg.head.version = version;
	msg.reject.reason = reason;
	msg.reject.daemon_version = version;
	sl_wire_str(msg.reject.text, sizeof(msg.reject.text), text);
	send_msg(fd, &msg);
}

static void welcome(int fd, uint32_t version)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.head.version = version;
	sl_wire_str(msg.welcome.version, sizeof(msg.welcome.version), "0.1.0");
	send_msg(fd, &msg);
}

/* The reply tells what was asked in its name, so that scripts can look at it. */
static void run_reply(int fd, const struct sl_msg_run *run)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN_REPLY);
	if (is("refuse")) {
		msg.run_reply.reason = SL_REASON_REQUESTS_TAKEN;
		sl_wire_str(msg.run_reply.text, sizeof(msg.run_reply.text),
			"request 8 GiB does not fit: 14 GiB shareable, 10 GiB requested "
			"by others");
		send_msg(fd, &msg);
		return;
	}
	fprintf(stderr,
		"RUN request=%u:%llu limit=%u:%llu gpus=%u priority=%d visible=%s%s "
		"name=%s "
		"project=%s command=%s\n",
		run->request_kind, (unsigned long long)run->request_value,
		run->limit_kind, (unsigned long long)run->limit_value, run->gpu_count,
		(int)(run->priority_biased - SL_PRIORITY_BIAS),
		run->flags & SL_RUN_VISIBLE_SET ? "set:" : "unset", run->visible,
		run->name, run->project, run->command);
	msg.run_reply.ok = 1;
	msg.run_reply.workload = 7;
	memset(msg.run_reply.token, 0xab, sizeof(msg.run_reply.token));
	msg.run_reply.request_bytes = SL_GIB;
	msg.run_reply.limit_bytes = 2 * SL_GIB;
	sl_wire_str(msg.run_reply.name, sizeof(msg.run_reply.name), "w7");
	sl_wire_str(msg.run_reply.visible_out, sizeof(msg.run_reply.visible_out), "1,3");
	send_msg(fd, &msg);
}

static void use_row(int fd, unsigned int i)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_USE_ROW);
	msg.use_row.workload = i + 1;
	/* The last one's GPU is on no list any more. */
	msg.use_row.gpu = i == 2 ? 9 : i;
	msg.use_row.pid = 100 + i;
	msg.use_row.clients = 1;
	msg.use_row.priority_biased = SL_PRIORITY_BIAS - 5 + i;
	msg.use_row.state = i % SL_STATES;
	msg.use_row.waiting = i == SL_STATE_WAITING;
	msg.use_row.waiting_bytes = msg.use_row.waiting * 300 * SL_MIB;
	msg.use_row.request_bytes = 4 * SL_GIB;
	msg.use_row.limit_bytes = 12 * SL_GIB;
	msg.use_row.backing_bytes = 3 * SL_GIB;
	msg.use_row.hidden_bytes = SL_GIB / 4;
	msg.use_row.age_ms = 65000;
	snprintf(msg.use_row.name, sizeof(msg.use_row.name), "a-model-server-%u", i);
	sl_wire_str(
		msg.use_row.project, sizeof(msg.use_row.project), "research-and-more");
	sl_wire_str(msg.use_row.command, sizeof(msg.use_row.command),
		"python3 serve.py --model /models/llama-3-8b-instruct --port 8000 "
		"\033[31m");
	send_msg(fd, &msg);
}

static void gpu_row(int fd, unsigned int i)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_GPU_ROW);
	msg.gpu_row.gpu = i;
	msg.gpu_row.condition = i == 1;
	msg.gpu_row.measured_age_ms = i == 2 ? 60000 : 10;
	msg.gpu_row.uuid[15] = (uint8_t)i;
	msg.gpu_row.capacity_bytes = 80 * SL_GIB;
	msg.gpu_row.shareable_bytes = 78 * SL_GIB;
	msg.gpu_row.requests_bytes = 40 * SL_GIB;
	msg.gpu_row.free_bytes = 38 * SL_GIB;
	msg.gpu_row.utilisation_pct = 97;
	sl_wire_str(msg.gpu_row.name, sizeof(msg.gpu_row.name), "NVIDIA H100 80GB HBM3");
	sl_wire_str(msg.gpu_row.pci, sizeof(msg.gpu_row.pci), "00000000:1B:00.0");
	send_msg(fd, &msg);
}

static void list(int fd, uint32_t what)
{
	union sl_msg msg;

	for (unsigned int i = 0; i < 3 && what == SL_LIST_USES; i++)
		use_row(fd, i);
	for (unsigned int i = 0; i < 3 && what == SL_LIST_GPUS; i++)
		gpu_row(fd, i);
	if (what == SL_LIST_STATUS) {
		sl_wire_init(&msg, SL_MSG_STATUS_ROW);
		msg.status_row.pid = (uint32_t)getpid();
		msg.status_row.nvml_ok = 1;
		sl_wire_str(
			msg.status_row.version, sizeof(msg.status_row.version), "0.1.0");
		sl_wire_str(
			msg.status_row.driver, sizeof(msg.status_row.driver), "535.1");
		send_msg(fd, &msg);
	}
	if (is("half"))
		return;
	sl_wire_init(&msg, SL_MSG_LIST_END);
	msg.list_end.rows = 3;
	send_msg(fd, &msg);
}

/* What comes before any question. False: done with this peer. */
static bool open_with(int fd)
{
	if (is("version"))
		reject(fd, SL_REJECT_VERSION, SL_PROTOCOL_VERSION + 1, "another version");
	else if (is("full"))
		reject(fd, SL_REJECT_FULL, SL_PROTOCOL_VERSION, "no descriptors left");
	else if (is("denied"))
		reject(fd, SL_REJECT_DENIED, SL_PROTOCOL_VERSION,
			"you are not on the list");
	else if (is("newer"))
		welcome(fd, SL_PROTOCOL_VERSION + 6);
	else if (is("garbage"))
		(void)!send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
	else if (is("silent"))
		pause();
	else if (!is("close")) {
		welcome(fd, SL_PROTOCOL_VERSION);
		return true;
	}
	return false;
}

static void serve(int fd)
{
	union sl_msg msg;
	struct sl_error err;

	if (sl_wire_recv(fd, SL_FROM_CONTROL, &msg, &err) || !open_with(fd))
		return;
	while (!sl_wire_recv(fd, SL_FROM_CONTROL, &msg, &err)) {
		if (is("wrong-answer"))
			welcome(fd, SL_PROTOCOL_VERSION);
		else if (msg.head.type == SL_MSG_RUN && !is("half"))
			run_reply(fd, &msg.run);
		else if (msg.head.type == SL_MSG_LIST)
			list(fd, msg.list.what);
		if (is("half"))
			return;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path) || listener < 0)
		return 64;
	mode = argv[2];
	strcpy(address.sun_path, argv[1]);
	/* The kernel notes who listens when listen() is called. */
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chmod(argv[1], 0666) < 0 || (is("stranger") && setuid(USER_NOBODY) < 0) ||
		listen(listener, 16) < 0) {
		perror("fake-daemon");
		return 1;
	}
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		serve(fd);
		close(fd);
	}
}
