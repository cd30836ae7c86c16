/*
 * listener - the daemon's socket
 *
 * A lock file beside the socket (PATH.lock) tells whether the socket's daemon lives. A live
 * daemon's socket is left alone, a dead one's replaced. A lock file of another user is ignored. A
 * file that is not a socket is never touched. When descriptors run out, a spare one is given up for
 * the moment it takes to turn a peer away with the reason.
 */
#ifndef SL_DAEMON_LINK_LISTENER_H
#define SL_DAEMON_LINK_LISTENER_H

#include "daemon/state/daemon.h"

/* Refuses an existing folder that is neither root's nor ours: its owner could replace the socket.
 * option: the command line's option that chooses another folder, for err. 0 or negative errno
 * (err). */
SL_MUST_CHECK int sl_listener_check_folder(
	const char *folder, const char *option, struct sl_error *err);
/* Locks the path and removes the socket of a dead daemon. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_lock(struct sl_daemon *daemon, struct sl_error *err);
/* Binds and listens. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_open(struct sl_daemon *daemon, struct sl_error *err);
/* Gives the socket the configured group and mode. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_permit(
	const struct sl_daemon *daemon, struct sl_error *err);
/* Makes a socket at path, which is free; nothing can connect yet. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_bind(const char *path, int *fd, struct sl_error *err);
/* Allows connections: handler calls sl_listener_take. 0 or negative errno (err). */
SL_MUST_CHECK int sl_listener_start(struct sl_daemon *daemon, const char *path, int fd,
	sd_event_io_handler_t handler, void *context, sd_event_source **io,
	struct sl_error *err);
/* Accepts a turn's worth of connections; workload: see sl_peer_accept. */
void sl_listener_take(struct sl_daemon *daemon, int listen_fd, uint64_t workload);
/* Unlinks the socket if it is open. Keeps the lock: the next daemon must not start yet. */
void sl_listener_close(struct sl_daemon *daemon);
/* The daemon's last act: from then on another daemon may take journal and GPUs. */
void sl_listener_unlock(struct sl_daemon *daemon);

#endif
