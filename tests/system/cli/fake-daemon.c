/*
 * fake-daemon SOCKET MODE: answers as a daemon should not, or with made-up lists
 *
 * The command line must tell apart what users meet on the first day: another version, a daemon that
 * hangs, a stranger's socket. The real daemon cannot be made to cause these. Serves one connection
 * after the other until it is killed.
 */
#include "fake-jobs.h"

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
static uint32_t connections;

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static void send_with(int fd, const union sl_msg *made, int file)
{
	if ((file < 0 ? sl_wire_send(fd, made) : sl_wire_send_fds(fd, made, &file, 1)) <
		0)
		perror("fake-daemon: send");
}

static void send_msg(int fd, const union sl_msg *made)
{
	send_with(fd, made, -1);
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
	msg.welcome.daemon_epoch = 1000 + connections;
	sl_wire_str(msg.welcome.version, sizeof(msg.welcome.version), "0.1.0");
	send_msg(fd, &msg);
}

/* The reply has the question in its name, so that scripts can look at it. */
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
		"RUN request=%u:%llu limit=%u:%llu gpus=%u priority=%d flags=%u wait=%u "
		"warm=%llu grace=%llu visible=%s%s name=%s project=%s command=%s\n",
		run->request_kind, (unsigned long long)run->request_value,
		run->limit_kind, (unsigned long long)run->limit_value, run->gpu_count,
		(int)(run->priority_biased - SL_PRIORITY_BIAS),
		run->flags & ~SL_RUN_VISIBLE_SET, run->longest_wait_ms,
		(unsigned long long)run->warm_after_ms,
		(unsigned long long)run->idle_grace_ms,
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

/* The last PARK, and how often it has been looked at since. */
static bool is_parked;
static unsigned int looks;

/* The second workload is the one that is parked: a gibibyte per look, but for held memory. */
static uint64_t evicted_bytes(void)
{
	uint64_t most = 5 * SL_GIB / 2, bytes = looks * SL_GIB;

	if (is("stuck"))
		return 0;
	bytes = bytes < most ? bytes : most;
	return is_parked ? bytes : most - bytes;
}

static void add_residency(struct sl_msg_use_row *row, unsigned int i)
{
	row->residency = SL_WIRE_BOUND;
	if (i == 1 && (is_parked || looks)) {
		row->residency = is_parked         ? SL_WIRE_PARKED
				 : is("stuck")     ? SL_WIRE_RESUMING
				 : evicted_bytes() ? SL_WIRE_RETURNING
						   : SL_WIRE_BOUND;
		row->evicted_bytes = evicted_bytes();
		row->out_bytes = is_parked ? evicted_bytes() : 0;
		row->in_bytes = is_parked ? 0 : 5 * SL_GIB / 2 - evicted_bytes();
		looks += !!is("park");
	}
	if (is("swap")) {
		row->residency = i;
		row->evicted_bytes = i > SL_WIRE_BOUND ? 2 * SL_GIB : 0;
		row->returning_bytes = i == SL_WIRE_RETURNING ? SL_GIB : 0;
		row->longest_wait_ms = i == SL_WIRE_EVICTED  ? 12000
				       : i == SL_WIRE_PARKED ? UINT64_MAX
							     : 0;
		row->endless = i == SL_WIRE_PARKED ? SL_WIRE_ENDLESS_HOST : 0;
		row->turns = i;
	}
	if (is("jobs-parked") && i != 1) {
		row->residency = SL_WIRE_PARKED;
		row->evicted_bytes = 2 * SL_GIB;
	}
}

static void use_row(int fd, unsigned int i)
{
	static const uint32_t flags[] = {SL_USE_NO_SWAP,
		SL_USE_OOM_FIRST | SL_USE_OVER_LIMIT,
		SL_USE_OVER_LIMIT | SL_USE_UNTAKEABLE,
		SL_USE_OVER_LIMIT | SL_USE_UNTAKEABLE | SL_USE_STOPPING};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_USE_ROW);
	msg.use_row.workload = i + 1;
	/* The last one's GPU is on no list any more. */
	msg.use_row.gpu = i == 2 ? 9 : i;
	msg.use_row.pid = 100 + i;
	msg.use_row.clients = 1;
	msg.use_row.compute_used_pm = UINT32_MAX;
	msg.use_row.priority_biased = SL_PRIORITY_BIAS - 5 + i;
	msg.use_row.state = i % SL_STATES;
	msg.use_row.waiting = i == SL_STATE_WAITING;
	msg.use_row.waiting_bytes = msg.use_row.waiting * 300 * SL_MIB;
	msg.use_row.request_bytes = 4 * SL_GIB;
	msg.use_row.limit_bytes = 12 * SL_GIB;
	msg.use_row.backing_bytes = 3 * SL_GIB;
	msg.use_row.hidden_bytes = SL_GIB / 4;
	msg.use_row.held_bytes = i == 1 ? SL_GIB / 2 : 0;
	msg.use_row.age_ms = 65000;
	if (is("states"))
		msg.use_row.flags = flags[i];
	if (is("swap")) {
		msg.use_row.gpu = 0;
		msg.use_row.state = i ? SL_STATE_BOUND : SL_STATE_RESERVED;
		/* Its place comes before the note that its limit was lowered. */
		msg.use_row.flags = i == SL_WIRE_PARKED ? SL_USE_OVER_LIMIT : 0;
	}
	add_residency(&msg.use_row, i);
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
	msg.gpu_row.condition = i == 1 ? SL_GPU_DEGRADED : 0;
	if (is("states"))
		msg.gpu_row.condition = i;
	msg.gpu_row.measured_age_ms = i == 2 ? 60000 : 10;
	msg.gpu_row.uuid[15] = (uint8_t)i;
	msg.gpu_row.capacity_bytes = 80 * SL_GIB;
	msg.gpu_row.shareable_bytes = 78 * SL_GIB;
	msg.gpu_row.requests_bytes = 40 * SL_GIB;
	if (is("swap") && i == 0)
		msg.gpu_row.backing_bytes = msg.gpu_row.evicted_bytes = 16 * SL_GIB;
	msg.gpu_row.free_bytes = 38 * SL_GIB;
	msg.gpu_row.utilisation_pct = 97;
	sl_wire_str(msg.gpu_row.name, sizeof(msg.gpu_row.name), "NVIDIA H100 80GB HBM3");
	sl_wire_str(msg.gpu_row.pci, sizeof(msg.gpu_row.pci), "00000000:1B:00.0");
	send_msg(fd, &msg);
}

static void client_row(int fd, unsigned int i)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_CLIENT_ROW);
	msg.client_row.client = 10 + i;
	msg.client_row.workload = i + 1;
	msg.client_row.gpu = i == 2 ? 9 : i;
	msg.client_row.pid = 200 + i;
	msg.client_row.condition = i % SL_WIRE_CONDITIONS;
	msg.client_row.flags = i == 0   ? SL_CLIENT_IDLE
			       : i == 1 ? SL_CLIENT_UNTAKEABLE
			       : i == 2 ? SL_CLIENT_WAITS
					: SL_CLIENT_STOPPING | SL_CLIENT_UNTAKEABLE;
	msg.client_row.backing_bytes = SL_GIB;
	msg.client_row.hidden_bytes = SL_GIB / 2;
	msg.client_row.held_bytes = i == 1 ? SL_GIB / 2 : 0;
	msg.client_row.waiting_bytes = i == 2 ? 300 * SL_MIB : 0;
	msg.client_row.idle_ms = i == 0 ? 65000 : 0;
	msg.client_row.busy_ms = i == 1 ? 45000 : 0;
	snprintf(
		msg.client_row.name, sizeof(msg.client_row.name), "a-model-server-%u", i);
	send_msg(fd, &msg);
}

static void pool_row(int fd)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_POOL_ROW);
	msg.pool_row.swap_on = 1;
	msg.pool_row.pool_bytes = 16 * SL_GIB;
	msg.pool_row.slack_bytes = SL_GIB / 4;
	msg.pool_row.evicted_bytes = 12 * SL_GIB;
	msg.pool_row.made_bytes = 13 * SL_GIB;
	msg.pool_row.copies_bytes = SL_GIB;
	msg.pool_row.available_bytes = 60 * SL_GIB;
	send_msg(fd, &msg);
}

static void park_reply(int fd, const struct sl_msg_park *park)
{
	union sl_msg msg;

	fprintf(stderr, "PARK workload=%llu name=%s parked=%u\n",
		(unsigned long long)park->workload, park->name, park->parked);
	sl_wire_init(&msg, SL_MSG_PARK_REPLY);
	msg.park_reply.workload = park->workload;
	sl_wire_str(msg.park_reply.name, sizeof(msg.park_reply.name), park->name);
	if (is("refuse")) {
		msg.park_reply.reason = SL_REASON_PARK_NO_POOL;
		sl_wire_str(msg.park_reply.text, sizeof(msg.park_reply.text),
			"x cannot be parked: its 3 GiB do not fit\033[2J in the 1 GiB "
			"left");
		send_msg(fd, &msg);
		return;
	}
	is_parked = park->parked;
	looks = 1;
	msg.park_reply.ok = 1;
	msg.park_reply.held_bytes = is_parked ? SL_GIB / 2 : 0;
	send_msg(fd, &msg);
}

static void end_list(int fd, uint32_t rows)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST_END);
	msg.list_end.rows = rows;
	send_msg(fd, &msg);
}

static bool is_about_jobs(void)
{
	return !strncmp(mode, "jobs", strlen("jobs"));
}

static void list(int fd, uint32_t what)
{
	unsigned int workloads = is("states") ? 4 : is("swap") ? SL_WIRE_RESIDENCIES : 3;
	union sl_msg msg;

	for (unsigned int i = 0; i < workloads && what == SL_LIST_USES; i++)
		use_row(fd, i);
	for (unsigned int i = 0; i < 3 && what == SL_LIST_GPUS; i++)
		gpu_row(fd, i);
	for (unsigned int i = 0; i < workloads && what == SL_LIST_CLIENTS; i++)
		client_row(fd, i);
	if (what == SL_LIST_POOL)
		pool_row(fd);
	if (what == SL_LIST_JOBS && is_about_jobs())
		fake_jobs_list(fd, send_with);
	if (what == SL_LIST_QUEUE && is_about_jobs())
		fake_jobs_queue(fd, send_with);
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
	if (!is("half"))
		end_list(fd, 3);
}

/* --- changing, stopping and explaining --- */

static void set_reply(int fd, const struct sl_msg_set *set)
{
	union sl_msg msg;

	fprintf(stderr,
		"SET workload=%llu name=%s which=%u flags=%u request=%u:%llu "
		"limit=%u:%llu "
		"priority=%d wait=%u warm=%llu grace=%llu\n",
		(unsigned long long)set->workload, set->name, set->which, set->flags,
		set->request_kind, (unsigned long long)set->request_value,
		set->limit_kind, (unsigned long long)set->limit_value,
		(int)(set->priority_biased - SL_PRIORITY_BIAS), set->longest_wait_ms,
		(unsigned long long)set->warm_after_ms,
		(unsigned long long)set->idle_grace_ms);
	sl_wire_init(&msg, SL_MSG_SET_REPLY);
	if (is("refuse")) {
		msg.set_reply.reason = SL_REASON_BOUND_LIMIT;
		sl_wire_str(msg.set_reply.text, sizeof(msg.set_reply.text),
			"a limit of 64 GiB exceeds\033[2J what the administrator allows");
		send_msg(fd, &msg);
		return;
	}
	msg.set_reply.ok = 1;
	msg.set_reply.workload = set->workload;
	msg.set_reply.request_bytes = SL_GIB;
	msg.set_reply.limit_bytes = 2 * SL_GIB;
	msg.set_reply.over_bytes = set->which & SL_SET_LIMIT ? 5 * SL_GIB / 4 : 0;
	msg.set_reply.priority_biased = set->priority_biased;
	msg.set_reply.flags = set->flags;
	sl_wire_str(msg.set_reply.name, sizeof(msg.set_reply.name), set->name);
	send_msg(fd, &msg);
}

static void stop_reply(int fd, const struct sl_msg_stop *stop)
{
	union sl_msg msg;

	fprintf(stderr, "STOP workload=%llu name=%s grace=%u\n",
		(unsigned long long)stop->workload, stop->name, stop->grace_ms);
	sl_wire_init(&msg, SL_MSG_STOP_REPLY);
	if (is("refuse")) {
		msg.stop_reply.reason = SL_REASON_UNKNOWN_WORKLOAD;
		sl_wire_str(msg.stop_reply.text, sizeof(msg.stop_reply.text),
			"it has just ended");
	} else {
		msg.stop_reply.ok = 1;
		msg.stop_reply.processes = 2;
	}
	msg.stop_reply.workload = stop->workload;
	sl_wire_str(msg.stop_reply.name, sizeof(msg.stop_reply.name), stop->name);
	send_msg(fd, &msg);
}

static void event(int fd, uint64_t serial, uint32_t reason, bool current)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVENT_ROW);
	msg.event_row.serial = serial;
	msg.event_row.realtime_ms = 1700000000123 + serial;
	msg.event_row.reason = reason;
	msg.event_row.current = current;
	msg.event_row.workload = 3;
	msg.event_row.other = 2;
	msg.event_row.bytes = 300 * SL_MIB;
	msg.event_row.available_bytes = 100 * SL_MIB;
	msg.event_row.other_bytes = 2 * SL_GIB;
	msg.event_row.span_ms = 12500;
	msg.event_row.pid = 77;
	msg.event_row.lost = serial == 41 ? 7 : 0;
	sl_wire_str(msg.event_row.name, sizeof(msg.event_row.name), "srv\033[31m");
	sl_wire_str(msg.event_row.other_name, sizeof(msg.event_row.other_name),
		"note\xe2\x80\xae"
		"book\xff");
	send_msg(fd, &msg);
}

static void events(int fd, const struct sl_msg_events *ask)
{
	fprintf(stderr, "EVENTS after=%llu last=%u flags=%u name=%s\n",
		(unsigned long long)ask->after, ask->last, ask->flags, ask->name);
	event(fd, 41, SL_REASON_STARTED, false);
	event(fd, 42, SL_REASON_STOP_PRIORITY, false);
	event(fd, 43, 9999, false);
	if (is("half"))
		return;
	end_list(fd, 3);
	if (ask->flags & SL_EVENTS_FOLLOW)
		event(fd, 44, SL_REASON_ENDED, false);
}

static void why(int fd, const struct sl_msg_why *ask)
{
	uint32_t rows = 0;

	if (ask->workload == 3 && !is("jobs-parked")) {
		event(fd, 0, SL_REASON_BURST_WAITS, true);
		rows++;
	}
	if (ask->workload == 3 || !strcmp(ask->name, "ended")) {
		event(fd, 40, SL_REASON_WAITED_TOO_LONG, false);
		rows++;
	}
	end_list(fd, rows);
}

static void no_history(int fd, const struct sl_msg_history *asked)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HISTORY_REPLY);
	msg.history_reply.what = asked->what;
	sl_wire_str(msg.history_reply.text, sizeof(msg.history_reply.text),
		"no history is written");
	send_msg(fd, &msg);
}

static void dump(int fd)
{
	static const char *const pieces[] = {
		"{\"gpus\": [1, ", "2], \"more\": ", "true}"};
	union sl_msg msg;

	for (size_t i = 0; i < SL_ARRAY_LEN(pieces); i++) {
		sl_wire_init(&msg, SL_MSG_DUMP_ROW);
		msg.dump_row.size = (uint32_t)strlen(pieces[i]);
		memcpy(msg.dump_row.text, pieces[i], strlen(pieces[i]));
		if (!is("bad-dump") || i != 1)
			send_msg(fd, &msg);
	}
	if (!is("half"))
		end_list(fd, 3);
}

/* Before any question. False: done with this peer. */
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

static void answer(int fd, const union sl_msg *msg, const struct sl_wire_fds *fds)
{
	if (is("wrong-answer")) {
		welcome(fd, SL_PROTOCOL_VERSION);
		return;
	}
	if (fake_jobs_answer(fd, msg, fds, is("jobs-refuse"), send_with))
		return;
	switch (msg->head.type) {
	case SL_MSG_RUN:
		if (!is("half"))
			run_reply(fd, &msg->run);
		break;
	case SL_MSG_LIST: list(fd, msg->list.what); break;
	case SL_MSG_SET: set_reply(fd, &msg->set); break;
	case SL_MSG_PARK: park_reply(fd, &msg->park); break;
	case SL_MSG_STOP: stop_reply(fd, &msg->stop); break;
	case SL_MSG_EVENTS: events(fd, &msg->events); break;
	case SL_MSG_WHY: why(fd, &msg->why); break;
	case SL_MSG_DUMP: dump(fd); break;
	case SL_MSG_HISTORY: no_history(fd, &msg->history); break;
	default: fprintf(stderr, "fake-daemon: %s\n", sl_wire_name(msg->head.type));
	}
}

static void serve(int fd)
{
	union sl_msg msg;
	struct sl_wire_fds fds;
	struct sl_error err;

	connections++;
	if (sl_wire_recv(fd, SL_FROM_CONTROL, &msg, &err))
		return;
	if (!open_with(fd))
		return;
	while (!sl_wire_recv_fds(fd, SL_FROM_CONTROL, &msg, &fds, &err)) {
		/* As a daemon that is restarted while a client waits. */
		if (is("jobs-restart") && msg.head.type == SL_MSG_JOB_WAIT &&
			connections % 2)
			return;
		answer(fd, &msg, &fds);
		sl_wire_fds_close(&fds);
		if (is("half") || (is("restart") && msg.head.type == SL_MSG_EVENTS))
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
	/* The kernel notes the listening process when listen() is called. */
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
