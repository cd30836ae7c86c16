/*
 * listener - the socket
 *
 * A lock file beside it (PATH.lock) tells a live daemon's socket from a dead one's: the first is
 * left alone, the second replaced. A lock file of another user's is ignored. What is not a socket
 * is never touched. When descriptors run out a spare one is given up for the moment it takes to
 * say so to the peer.
 */
#ifndef SL_DAEMON_LINK_LISTENER_H
#define SL_DAEMON_LINK_LISTENER_H

#include "daemon/state/daemon.h"

/* A folder of neither root's nor ours, which exists: its owner could replace what we put there.
 * option: of the command line, by which to choose another. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_check_folder(
	const char *folder, const char *option, struct sl_error *err);
/* Locks the path and clears away what a dead daemon left. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_lock(struct sl_daemon *daemon, struct sl_error *err);
/* Binds and listens. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_open(struct sl_daemon *daemon, struct sl_error *err);
/* Gives the socket the group and mode of the configuration. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_permit(
	const struct sl_daemon *daemon, struct sl_error *err);
/* Makes a socket at path, which is free, without anyone getting in yet. 0 or negative errno
 * (err). */
SL_MUST_CHECK int sl_listener_bind(const char *path, int *fd, struct sl_error *err);
/* Lets them in: handler calls sl_listener_take. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_start(struct sl_daemon *daemon, const char *path, int fd,
	sd_event_io_handler_t handler, void *context, sd_event_source **io,
	struct sl_error *err);
/* Takes a turn's worth of what connects; workload: see sl_peer_accept. */
void sl_listener_take(struct sl_daemon *daemon, int listen_fd, uint64_t workload);
/* Unlinks the socket if it is open. The lock stays: the next daemon must not start yet. */
void sl_listener_close(struct sl_daemon *daemon);
/* The last thing of all, when journal and GPUs are another's to take. */
void sl_listener_unlock(struct sl_daemon *daemon);

#endif
