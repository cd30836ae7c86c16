/*
 * line - the connection to the daemon
 *
 * Sends never block: messages that the socket does not take at once are kept in order for
 * sl_line_flush, and descriptors that go with them are kept open. No lock here: the session's lock
 * guards a line; sl_line_recv alone belongs to the agent.
 */
#ifndef SL_RUNTIME_SESSION_LINE_H
#define SL_RUNTIME_SESSION_LINE_H

#include "runtime/process/fd.h"
#include "wire/wire.h"

struct sl_line {
	struct sl_fd socket;
	uint32_t version;    /* of the protocol, that is spoken on it */
	unsigned char *kept; /* messages end to end */
	size_t kept_bytes, kept_room;
	int *kept_fds; /* of the kept messages, in order */
	size_t kept_fd_count, kept_fd_room;
	bool crowded; /* too many descriptors of this user are on their way */
};

#define SL_LINE_NONE                 \
	{                            \
		.socket = SL_FD_NONE \
	}

enum { SL_LINE_OK = 0, SL_LINE_UNTRUSTED /* a stranger listens there */ };

/* Connects to path. Also negative errno; err names path and remedy on all but OK. */
SL_MUST_CHECK int sl_line_open(
	struct sl_line *line, const char *path, struct sl_error *err);
/* Forgets what was kept. Harmless when closed. */
void sl_line_close(struct sl_line *line);
bool sl_line_is_open(const struct sl_line *line);

/* Sends or keeps msg, in the line's version; what that does not know is left out. False if the line
 * is
 * lost: close it. Keeps errno. */
bool sl_line_send(struct sl_line *line, union sl_msg *msg);
/* The same with count descriptors, at most SL_WIRE_FDS_MAX, which it takes in every case. */
bool sl_line_send_fds(
	struct sl_line *line, union sl_msg *msg, const int *fds, uint32_t count);
/* The line is lost although both ends are open: sl_line_recv says so, too, after what has come. */
void sl_line_break(const struct sl_line *line);
/* Sends what was kept, as far as the socket takes it. False if the line is lost. */
bool sl_line_flush(struct sl_line *line);
bool sl_line_has_kept(const struct sl_line *line);
/* What is kept waits for others to take descriptors, not for the socket: nothing tells when to
 * flush. */
bool sl_line_is_crowded(const struct sl_line *line);
/* One message from the daemon: SL_WIRE_OK, SL_WIRE_AGAIN, or anything else: the line is lost.
 * Descriptors that came with it are in *fds, and the caller's. */
SL_MUST_CHECK int sl_line_recv(const struct sl_line *line, union sl_msg *out,
	struct sl_wire_fds *fds, struct sl_error *err);

#endif
