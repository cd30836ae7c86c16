/*
 * listener - bind, listen, accept
 */
#include "daemon/link/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/trust.h"
#include "daemon/core/lock.h"
#include "daemon/link/bundle.h"
#include "daemon/link/peer.h"
#include "daemon/link/places.h"
#include "daemon/link/share.h"

/* Connections accepted before other events get their turn. */
#define ACCEPT_BUDGET 16

struct sl_listener {
	int fd, lock_fd, spare_fd;
	sd_event_source *io;
};

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int check_path(const char *path, struct sl_error *err)
{
	if (path[0] != '/') {
		sl_error_set(err,
			"the socket path '%.100s' is not absolute; begin it with /",
			path);
		return sl_err_origin(-EINVAL);
	}
	if (strlen(path) < SL_SOCKET_PATH_MAX)
		return 0;
	sl_error_set(err,
		"the socket path %.120s has %zu bytes, and a Unix socket's path may have "
		"%d; choose "
		"a shorter one with --socket",
		path, strlen(path), SL_SOCKET_PATH_MAX - 1);
	return sl_err_origin(-ENAMETOOLONG);
}

int sl_listener_check_folder(const char *folder, const char *option, struct sl_error *err)
{
	uid_t owner;

	if (sl_trust_folder(folder, &owner))
		return 0;
	sl_error_set(err,
		"the folder %.200s belongs to user %u, who decides what lies there; "
		"choose "
		"another with --%s",
		folder, (unsigned int)owner, option);
	return sl_err_origin(-EPERM);
}

static int make_folder(const char *path, struct sl_error *err)
{
	char folder[SL_PATH_MAX];
	char *slash;
	int r;

	sl_wire_str(folder, sizeof(folder), path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = '\0';
	r = sl_file_make_dirs(folder, 0755);
	if (r < 0) {
		sl_error_set(err,
			"cannot make the folder %.200s for the socket: %s; choose "
			"another "
			"with --socket",
			folder, strerror(-r));
		return r;
	}
	return sl_listener_check_folder(folder, "socket", err);
}

/* We hold the lock, so a program that listens there is not sluiced. */
static int clear_stale(const char *path, struct sl_error *err)
{
	int r = sl_file_clear_socket(path);

	if (r == -EEXIST)
		sl_error_set(err,
			"%.200s exists and is not a socket; move it away, or choose "
			"another path with --socket",
			path);
	else if (r == -EADDRINUSE)
		sl_error_set(err,
			"another program listens on %.200s; choose another path with "
			"--socket",
			path);
	else if (r < 0)
		sl_error_set(err, "cannot remove the stale socket %.200s: %s", path,
			strerror(-r));
	return r;
}

static void lock_path(const struct sl_daemon *daemon, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s.lock", daemon->socket_path);
}

int sl_listener_lock(struct sl_daemon *daemon, struct sl_error *err)
{
	char path[SL_PATH_MAX + 8];
	int holder = 0;
	int r = check_path(daemon->socket_path, err);

	daemon->listener = malloc(sizeof(*daemon->listener));
	if (!daemon->listener)
		return sl_err_origin(-ENOMEM);
	*daemon->listener = (struct sl_listener){.fd = -1, .lock_fd = -1, .spare_fd = -1};
	if (r == 0)
		r = make_folder(daemon->socket_path, err);
	if (r < 0)
		return r;
	lock_path(daemon, path, sizeof(path));
	r = sl_lock_take(path, &daemon->listener->lock_fd, &holder);
	if (r == SL_LOCK_BUSY) {
		sl_error_set(err,
			"sluiced is already running on %.200s, pid %d; stop it, or "
			"choose "
			"another path with --socket",
			daemon->socket_path, holder);
		return sl_err_origin(-EADDRINUSE);
	}
	if (r == SL_LOCK_FOREIGN)
		sl_warning(
			"ignoring %s: it is no file of user %u alone, and locks nothing",
			path, (unsigned int)geteuid());
	if (r < 0) {
		sl_error_set(err,
			"cannot lock %.200s: %s; choose another path with --socket", path,
			strerror(-r));
		return r;
	}
	return clear_stale(daemon->socket_path, err);
}

/* --- accepting ---------------------------------------------------------------------------- */

/* Descriptors ran out: gives up the spare one while it turns the peer away. */
static void turn_one_away(struct sl_daemon *daemon, int listen_fd)
{
	int fd;

	sl_closep(&daemon->listener->spare_fd);
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		sl_peer_turn_away(fd, SL_REJECT_FULL,
			"sluiced has no descriptors left; try again, or raise its limit "
			"(LimitNOFILE=)");
		sl_closep(&fd);
	}
	daemon->listener->spare_fd = open_spare();
}

/* Takes ownership of the descriptor. */
static void take_one(struct sl_daemon *daemon, int fd, uint64_t workload)
{
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 &&
		!(workload ? sl_places_entry_full(daemon, workload)
			   : sl_places_peers_full(daemon, cred.uid))) {
		sl_peer_accept(daemon, fd, workload);
		return;
	}
	sl_peer_turn_away(fd, SL_REJECT_FULL,
		"no place for another connection; close some, or raise "
		"max_clients in sluiced's configuration");
	sl_bundle_hang_up(fd);
}

void sl_listener_take(struct sl_daemon *daemon, int listen_fd, uint64_t workload)
{
	struct sl_share_turn turn = sl_share_begin();

	for (int i = 0; i < ACCEPT_BUDGET && !sl_share_turn_is_over(turn.begin); i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			take_one(daemon, fd, workload);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE)
			turn_one_away(daemon, listen_fd);
		else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR &&
			 sl_peer_may_log(daemon, SL_LOG_WARNING))
			sl_warning("accepting a connection: %s", strerror(errno));
		break;
	}
	daemon->up->settle(daemon);
	sl_share_note(daemon, SL_SHARE_ACCEPT, &turn);
}

static int on_connection(
	sd_event_source *source, int listen_fd, uint32_t events, void *context)
{
	sl_listener_take(context, listen_fd, 0);
	return 0;
}

int sl_listener_permit(const struct sl_daemon *daemon, struct sl_error *err)
{
	const char *path = daemon->socket_path;

	/* Without a configured group it is the daemon's own, even after a SIGHUP removed one. */
	if (chown(path, (uid_t)-1,
		    daemon->config.socket_group == SL_CONFIG_GROUP_NONE
			    ? getegid()
			    : daemon->config.socket_group) < 0 ||
		chmod(path, daemon->config.socket_mode) < 0) {
		sl_error_set(err, "cannot open %.200s to its users: %s", path,
			strerror(errno));
		return sl_err_origin(-errno);
	}
	return 0;
}

int sl_listener_bind(const char *path, int *out, struct sl_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sl_cleanup(sl_closep) int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		sl_error_set(err, "cannot make a socket: %s", strerror(errno));
		return sl_err_origin(-errno);
	}
	memcpy(address.sun_path, path, strlen(path));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		sl_error_set(
			err, "cannot make the socket %.200s: %s", path, strerror(errno));
		return sl_err_origin(-errno);
	}
	*out = sl_steal_fd(&fd);
	return 0;
}

int sl_listener_start(struct sl_daemon *daemon, const char *path, int fd,
	sd_event_io_handler_t handler, void *context, sd_event_source **io,
	struct sl_error *err)
{
	int r;

	if (listen(fd, SOMAXCONN) < 0) {
		sl_error_set(err, "cannot listen on %.200s: %s", path, strerror(errno));
		return sl_err_origin(-errno);
	}
	r = sd_event_add_io(daemon->loop, io, fd, EPOLLIN, handler, context);
	if (r < 0) {
		sl_error_set(err, "cannot listen on %.200s: %s", path, strerror(-r));
		return sl_err_origin(r);
	}
	(void)sd_event_source_set_priority(*io, SL_PRIORITY_ACCEPT);
	return 0;
}

int sl_listener_open(struct sl_daemon *daemon, struct sl_error *err)
{
	const char *path = daemon->socket_path;
	int r = sl_listener_bind(path, &daemon->listener->fd, err);

	if (r < 0)
		return r;
	r = sl_listener_permit(daemon, err);
	if (r == 0)
		r = sl_listener_start(daemon, path, daemon->listener->fd, on_connection,
			daemon, &daemon->listener->io, err);
	if (r == 0)
		daemon->listener->spare_fd = open_spare();
	return r;
}

void sl_listener_close(struct sl_daemon *daemon)
{
	if (!daemon->listener)
		return;
	daemon->listener->io = sd_event_source_disable_unref(daemon->listener->io);
	if (daemon->listener->fd >= 0 && unlink(daemon->socket_path) < 0 &&
		errno != ENOENT)
		sl_warning("cannot remove %s: %s", daemon->socket_path, strerror(errno));
	sl_closep(&daemon->listener->fd);
	sl_closep(&daemon->listener->spare_fd);
}

void sl_listener_unlock(struct sl_daemon *daemon)
{
	char path[SL_PATH_MAX + 8];

	if (!daemon->listener)
		return;
	lock_path(daemon, path, sizeof(path));
	sl_lock_drop(path, &daemon->listener->lock_fd);
	free(sl_steal(&daemon->listener));
}
