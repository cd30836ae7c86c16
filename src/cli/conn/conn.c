/*
 * The usual failures of the first day are a missing daemon, an old daemon and another user's
 * socket. So each error names the socket and says what to type.
 *
 * The listener's user is checked before anything is sent (base/trust.h).
 */
#include "cli/conn/conn.h"

#include "base/file.h"
#include "base/sl.h"
#include "base/trust.h"
#include "cli/line/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_MS_DEFAULT 10000

/* Turns a negative errno of this machine into an exit status, with text. */
static int system_failure(struct sl_error *err, int negative_errno, const char *doing)
{
	if (negative_errno == -EMFILE || negative_errno == -ENFILE)
		sl_error_set(err,
			"no descriptors left while %s: close some files, or raise the "
			"limit "
			"(ulimit -n)",
			doing);
	else
		sl_error_set(err, "%s: %s", doing, strerror(-negative_errno));
	return SL_EXIT_SYSTEM;
}

static int not_running(struct sl_error *err, const char *socket, const char *how)
{
	sl_error_set(err,
		"no daemon answers at %.108s (%s). Start one: 'sluiced &' for yourself, "
		"or "
		"'systemctl start sluiced' as root for all users; SLUICE_SOCKET names "
		"another socket",
		socket, how);
	return SL_EXIT_NO_DAEMON;
}

/* For a plain file connect() reports only that nothing listens there. */
static bool is_no_socket(const char *path, struct sl_error *err)
{
	struct stat st;

	if (stat(path, &st) || S_ISSOCK(st.st_mode))
		return false;
	sl_error_set(err,
		"%.108s is a %s, not a socket; set SLUICE_SOCKET to sluiced's socket, or "
		"unset it",
		path, S_ISDIR(st.st_mode) ? "folder" : "file");
	return true;
}

static int open_failure(struct sl_error *err, int negative_errno, const char *socket)
{
	if (is_no_socket(socket, err))
		return SL_EXIT_USAGE;
	switch (-negative_errno) {
	case ENOENT: return not_running(err, socket, "there is no such socket");
	case ECONNREFUSED: return not_running(err, socket, "nothing listens there");
	case EAGAIN: return not_running(err, socket, "its queue is full");
	case ENOTDIR: return not_running(err, socket, "its folder is not a folder");
	case ENOTSOCK:
	case EPROTOTYPE:
		sl_error_set(err,
			"%.108s is not a socket of sluiced; check SLUICE_SOCKET", socket);
		return SL_EXIT_USAGE;
	case EACCES:
	case EPERM:
		sl_error_set(err,
			"no permission to use the socket %.108s; ask its owner to let "
			"you in, or "
			"start a daemon of your own: SLUICE_SOCKET=/tmp/my.sock sluiced "
			"&",
			socket);
		return SL_EXIT_DENIED;
	default: return system_failure(err, negative_errno, "connecting to the daemon");
	}
}

static uint64_t timeout_ms(void)
{
	const char *text = getenv("SLUICE_TIMEOUT");
	struct sl_error err;
	sl_ns span;

	if (!text || sl_duration_parse(text, &span, &err) || span < SL_MS)
		return TIMEOUT_MS_DEFAULT;
	return span / SL_MS;
}

static int set_timeout(int fd, uint64_t ms)
{
	struct timeval span = {.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof(span)) < 0)
		return -errno;
	return 0;
}

static int other_version(
	const struct sl_conn *conn, uint32_t theirs, struct sl_error *err)
{
	sl_error_set(err,
		"the daemon at %s speaks protocol version %u, this sluice (%s) version "
		"%u. "
		"Use the sluice that came with that daemon, or restart the daemon from "
		"this "
		"installation",
		conn->socket, theirs, SL_VERSION, SL_PROTOCOL_VERSION);
	return SL_EXIT_PROTOCOL;
}

static int not_sluiced(const struct sl_conn *conn, const char *what, struct sl_error *err)
{
	sl_error_set(err, "what answers at %s is not sluiced (%s); check SLUICE_SOCKET",
		conn->socket, what);
	return SL_EXIT_PROTOCOL;
}

static int rejected(
	struct sl_conn *conn, const struct sl_msg_reject *reject, struct sl_error *err)
{
	switch (reject->reason) {
	case SL_REJECT_VERSION: return other_version(conn, reject->daemon_version, err);
	case SL_REJECT_FULL:
		sl_error_set(err, "the daemon at %s has no room: %s. Try again later",
			conn->socket, reject->text);
		return SL_EXIT_NO_DAEMON;
	case SL_REJECT_PROTOCOL:
		sl_error_set(err, "the daemon at %s did not understand: %s", conn->socket,
			reject->text);
		return SL_EXIT_PROTOCOL;
	default:
		sl_error_set(
			err, "the daemon at %s refuses: %s", conn->socket, reject->text);
		return SL_EXIT_DENIED;
	}
}

/* Receives one message of type want or alt; anything else becomes an exit status. fds NULL: no
 * descriptors are expected. */
static int receive_with(struct sl_conn *conn, uint32_t want, uint32_t alt,
	union sl_msg *msg, struct sl_wire_fds *fds, struct sl_error *err)
{
	struct sl_error detail = {0};
	int r = fds ? sl_wire_recv_fds(conn->fd, SL_FROM_DAEMON, msg, fds, &detail)
		    : sl_wire_recv(conn->fd, SL_FROM_DAEMON, msg, &detail);

	if (r < 0)
		return system_failure(err, r, "reading the daemon's answer");
	switch (r) {
	case SL_WIRE_OK: break;
	case SL_WIRE_CLOSED:
		sl_error_set(err,
			"the daemon at %s ended the connection; it may have stopped or "
			"been "
			"restarted. Try again",
			conn->socket);
		return SL_EXIT_NO_DAEMON;
	case SL_WIRE_AGAIN:
		sl_error_set(err,
			"the daemon at %s did not answer within %llu ms; it may hang. "
			"Look at its "
			"log, or restart it (running programs survive that)",
			conn->socket, (unsigned long long)conn->timeout_ms);
		return SL_EXIT_NO_DAEMON;
	case SL_WIRE_OTHER_VERSION:
		/* REJECT has the same layout in every version, so an unknown message comes from
		 * another program. */
		if (!sl_wire_size(msg->head.type))
			return not_sluiced(conn, detail.text, err);
		return other_version(conn, msg->head.version, err);
	default: return not_sluiced(conn, detail.text, err);
	}
	if (msg->head.type == SL_MSG_REJECT)
		return rejected(conn, &msg->reject, err);
	if (msg->head.type == want || msg->head.type == alt)
		return SL_EXIT_OK;
	sl_error_set(err, "the daemon at %s answered %s instead of %s", conn->socket,
		sl_wire_name(msg->head.type), sl_wire_name(want));
	return SL_EXIT_PROTOCOL;
}

static int receive(struct sl_conn *conn, uint32_t want, uint32_t alt, union sl_msg *msg,
	struct sl_error *err)
{
	return receive_with(conn, want, alt, msg, NULL, err);
}

/* file: a descriptor to send along, or -1. */
static int transmit_with(
	struct sl_conn *conn, const union sl_msg *msg, int file, struct sl_error *err)
{
	int r = file < 0 ? sl_wire_send(conn->fd, msg)
			 : sl_wire_send_fds(conn->fd, msg, &file, 1);

	if (r < 0)
		return system_failure(err, r, "sending to the daemon");
	/* On CLOSED a queued REJECT may give the reason, so go on to read. */
	if (r == SL_WIRE_AGAIN) {
		sl_error_set(err, "the daemon at %s takes no messages; it may hang",
			conn->socket);
		return SL_EXIT_NO_DAEMON;
	}
	return SL_EXIT_OK;
}

static int transmit(struct sl_conn *conn, const union sl_msg *msg, struct sl_error *err)
{
	return transmit_with(conn, msg, -1, err);
}

/* *msg is the daemon's CHALLENGE; becomes its WELCOME. */
static int prove(struct sl_conn *conn, union sl_msg *msg, struct sl_error *err)
{
	union sl_msg proof;
	int r;

	sl_wire_proof(&proof, msg);
	r = transmit(conn, &proof, err);
	return r ? r : receive(conn, SL_MSG_WELCOME, SL_MSG_WELCOME, msg, err);
}

static int hello(struct sl_conn *conn, struct sl_error *err)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CONTROL;
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	return transmit(conn, &msg, err);
}

int sl_conn_await(struct sl_conn *conn, struct sl_error *err)
{
	union sl_msg msg;
	int r = receive(conn, SL_MSG_WELCOME, SL_MSG_CHALLENGE, &msg, err);

	if (!r && msg.head.type == SL_MSG_CHALLENGE)
		r = prove(conn, &msg, err);
	if (r)
		return r;
	conn->welcome = msg.welcome;
	return SL_EXIT_OK;
}

static int begin_within(struct sl_conn *conn, uint64_t ms, struct sl_error *err)
{
	int r;

	*conn = (struct sl_conn){.fd = -1, .timeout_ms = ms};
	if (sl_paths_socket(conn->socket, sizeof(conn->socket), err))
		return SL_EXIT_USAGE;
	conn->fd = sl_wire_connect(conn->socket, NULL);
	if (conn->fd < 0)
		return open_failure(err, conn->fd, conn->socket);
	if (sl_trust_daemon(conn->fd, conn->socket, err) != SL_TRUST_OK)
		return SL_EXIT_DENIED;
	r = set_timeout(conn->fd, conn->timeout_ms);
	if (r)
		return system_failure(err, r, "setting a time limit");
	return hello(conn, err);
}

int sl_conn_begin(struct sl_conn *conn, struct sl_error *err)
{
	return begin_within(conn, timeout_ms(), err);
}

int sl_conn_open_within(struct sl_conn *conn, uint64_t ms, struct sl_error *err)
{
	int r = begin_within(conn, ms, err);

	return r ? r : sl_conn_await(conn, err);
}

int sl_conn_open(struct sl_conn *conn, struct sl_error *err)
{
	return sl_conn_open_within(conn, timeout_ms(), err);
}

void sl_conn_close(struct sl_conn *conn)
{
	sl_closep(&conn->fd);
	conn->fd = -1;
}

int sl_conn_call(struct sl_conn *conn, const union sl_msg *ask, uint32_t want,
	union sl_msg *answer, struct sl_error *err)
{
	int r = transmit(conn, ask, err);

	return r ? r : receive(conn, want, want, answer, err);
}

int sl_conn_call_giving(struct sl_conn *conn, const union sl_msg *ask, int file,
	uint32_t want, union sl_msg *answer, struct sl_error *err)
{
	int r = transmit_with(conn, ask, file, err);

	return r ? r : receive(conn, want, want, answer, err);
}

int sl_conn_call_taking(struct sl_conn *conn, const union sl_msg *ask, uint32_t want,
	uint32_t else_want, union sl_msg *answer, int *file, struct sl_error *err)
{
	struct sl_wire_fds fds;
	int r = transmit(conn, ask, err);

	*file = -1;
	if (r)
		return r;
	r = receive_with(conn, want, else_want, answer, &fds, err);
	if (!r && fds.count) {
		*file = fds.fd[0];
		fds.fd[0] = fds.fd[--fds.count];
	} else if (!r && answer->head.type == want) {
		r = system_failure(err, -EMFILE, "taking the daemon's answer");
	}
	sl_wire_fds_close(&fds);
	return r;
}

int sl_conn_receive(
	struct sl_conn *conn, uint32_t want, union sl_msg *msg, struct sl_error *err)
{
	return receive(conn, want, want, msg, err);
}

int sl_conn_receive_or(struct sl_conn *conn, uint32_t want, uint32_t else_want,
	union sl_msg *msg, struct sl_error *err)
{
	return receive(conn, want, else_want, msg, err);
}

int sl_conn_send(struct sl_conn *conn, const union sl_msg *msg, struct sl_error *err)
{
	return transmit(conn, msg, err);
}

int sl_conn_next(
	struct sl_conn *conn, uint32_t row_type, union sl_msg *row, struct sl_error *err)
{
	return receive(conn, row_type, SL_MSG_LIST_END, row, err);
}

int sl_conn_rows(struct sl_conn *conn, const union sl_msg *ask, uint32_t row_type,
	sl_conn_row_fn fn, void *context, struct sl_error *err)
{
	union sl_msg msg;
	int r = transmit(conn, ask, err);

	while (!r) {
		r = receive(conn, row_type, SL_MSG_LIST_END, &msg, err);
		if (r || msg.head.type == SL_MSG_LIST_END)
			break;
		fn(context, &msg);
	}
	return r;
}

int sl_conn_list(struct sl_conn *conn, enum sl_list_what what, sl_conn_row_fn fn,
	void *context, struct sl_error *err)
{
	static const uint32_t row_types[SL_LISTS] = {
		[SL_LIST_POOL] = SL_MSG_POOL_ROW,
		[SL_LIST_JOBS] = SL_MSG_JOB_ROW,
		[SL_LIST_RESOURCES] = SL_MSG_RESOURCE_ROW,
		[SL_LIST_QUEUE] = SL_MSG_QUEUE_ROW,
		[SL_LIST_PARTS] = SL_MSG_PART_ROW,
		[SL_LIST_PROJECTS] = SL_MSG_PROJECT_ROW,
		[SL_LIST_ENTRIES] = SL_MSG_ENTRY_ROW,
		[SL_LIST_USES] = SL_MSG_USE_ROW,
		[SL_LIST_GPUS] = SL_MSG_GPU_ROW,
		[SL_LIST_STATUS] = SL_MSG_STATUS_ROW,
		[SL_LIST_CLIENTS] = SL_MSG_CLIENT_ROW,
	};
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_LIST);
	ask.list.what = what;
	return sl_conn_rows(conn, &ask, row_types[what], fn, context, err);
}
