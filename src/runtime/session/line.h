/*
 * line - the connection to the daemon
 *
 * Sends never block. Messages that the socket does not take at once are kept in order for
 * sl_line_flush, with their descriptors open. No lock here: the session's lock guards a line; only
 * sl_line_recv belongs to the agent.
 */
#ifndef SL_RUNTIME_SESSION_LINE_H
#define SL_RUNTIME_SESSION_LINE_H

#include "runtime/process/fd.h"
#include "wire/wire.h"

struct sl_line {
	struct sl_fd socket;
	unsigned char *kept; /* unsent messages, end to end */
	size_t kept_bytes, kept_room;
	int *kept_fds; /* of the unsent messages, in order */
	size_t kept_fd_count, kept_fd_room;
	bool crowded; /* too many descriptors of this user are in flight */
};

#define SL_LINE_NONE                 \
	{                            \
		.socket = SL_FD_NONE \
	}

enum { SL_LINE_OK = 0, SL_LINE_UNTRUSTED /* an untrusted process listens there */ };

/* Connects to path. Negative errno or one of the above; on all but OK, err names path and
 * remedy. */
SL_MUST_CHECK int sl_line_open(
	struct sl_line *line, const char *path, struct sl_error *err);
/* Drops unsent messages. Harmless when closed. */
void sl_line_close(struct sl_line *line);
bool sl_line_is_open(const struct sl_line *line);

/* Sends or keeps msg. False: the line is lost, so close it. Keeps errno. */
bool sl_line_send(struct sl_line *line, union sl_msg *msg);
/* The same with count descriptors, at most SL_WIRE_FDS_MAX. Takes them over, also on failure. */
bool sl_line_send_fds(
	struct sl_line *line, union sl_msg *msg, const int *fds, uint32_t count);
/* Declares the line lost although both ends are open: once the messages that have arrived are read,
 * sl_line_recv reports the loss. */
void sl_line_break(const struct sl_line *line);
/* Sends kept messages as far as the socket takes them. False: the line is lost. */
bool sl_line_flush(struct sl_line *line);
bool sl_line_has_kept(const struct sl_line *line);
/* The kept messages do not wait for the socket, but until other processes have received
 * descriptors. No event says when to flush them. */
bool sl_line_is_crowded(const struct sl_line *line);
/* One message from the daemon. SL_WIRE_OK, SL_WIRE_AGAIN, or anything else: the line is lost. The
 * caller owns the descriptors in *fds. */
SL_MUST_CHECK int sl_line_recv(const struct sl_line *line, union sl_msg *out,
	struct sl_wire_fds *fds, struct sl_error *err);

#endif
