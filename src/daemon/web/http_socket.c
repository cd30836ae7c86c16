/*
 * http_socket - bind, listen, clean up
 */
#include "daemon/web/http_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define BACKLOG 128

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un path;
};

static socklen_t fill(union any_address *out, const struct sl_config_address *address)
{
	memset(out, 0, sizeof(*out));
	switch (address->kind) {
	case SL_CONFIG_IPV4:
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons((uint16_t)address->port);
		memcpy(&out->v4.sin_addr, address->host, sizeof(out->v4.sin_addr));
		return sizeof(out->v4);
	case SL_CONFIG_IPV6:
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons((uint16_t)address->port);
		memcpy(&out->v6.sin6_addr, address->host, sizeof(out->v6.sin6_addr));
		return sizeof(out->v6);
	default:
		out->path.sun_family = AF_UNIX;
		sl_wire_str(
			out->path.sun_path, sizeof(out->path.sun_path), address->text);
		return sizeof(out->path);
	}
}

bool sl_http_socket_is_loopback(const struct sl_config_address *address)
{
	if (address->kind == SL_CONFIG_IPV4)
		return address->host[0] == 127;
	if (address->kind == SL_CONFIG_IPV6)
		return memcmp(address->host, &in6addr_loopback, 16) == 0;
	return true;
}

static int clear_stale(const char *option, const char *path, struct sl_error *err)
{
	int r = sl_file_clear_socket(path);

	if (r == -EEXIST)
		sl_error_set(err,
			"%s: %.107s exists and is not a socket; move it away, or "
			"choose "
			"another path",
			option, path);
	else if (r == -EADDRINUSE)
		sl_error_set(err,
			"%s: another program listens on %.107s; choose another path",
			option, path);
	else if (r < 0)
		sl_error_set(err, "%s: cannot remove the stale socket %.107s: %s", option,
			path, strerror(-r));
	return r;
}

static int remember_path(struct sl_http_socket *listener)
{
	struct stat stat = {0};

	if (lstat(listener->address.text, &stat) < 0)
		return sl_err_origin(-errno);
	listener->device = stat.st_dev;
	listener->inode = stat.st_ino;
	return 0;
}

static int bind_and_listen(int fd, const struct sl_config_address *address,
	const union any_address *any, socklen_t size)
{
	int on = 1;

	/* The daemon's previous run leaves its port in TIME_WAIT for a minute. */
	if (address->kind != SL_CONFIG_SOCKET)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->kind == SL_CONFIG_IPV6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &any->any, size) < 0 || listen(fd, BACKLOG) < 0)
		return sl_err_origin(-errno);
	return 0;
}

/* Notes the port that the kernel chose. */
static void note_port(int fd, struct sl_config_address *address)
{
	union any_address any;
	socklen_t size = sizeof(any);
	char *colon = strrchr(address->text, ':');

	if (!colon || getsockname(fd, &any.any, &size) < 0)
		return;
	address->port = ntohs(
		address->kind == SL_CONFIG_IPV4 ? any.v4.sin_port : any.v6.sin6_port);
	(void)snprintf(colon, sizeof(address->text) - (size_t)(colon - address->text),
		":%u", address->port);
}

int sl_http_socket_open(struct sl_http_socket *out, const char *option,
	const struct sl_config_address *address, struct sl_error *err)
{
	bool is_path = address->kind == SL_CONFIG_SOCKET;
	sl_cleanup(sl_closep) int fd = -1;
	union any_address any;
	socklen_t size = fill(&any, address);
	int r = 0;

	*out = (struct sl_http_socket){.fd = -1, .option = option, .address = *address};
	if (is_path)
		r = clear_stale(option, address->text, err);
	if (r < 0)
		return r;
	fd = socket(any.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? sl_err_origin(-errno) : bind_and_listen(fd, address, &any, size);
	if (r == 0 && is_path)
		r = remember_path(out);
	if (r < 0) {
		sl_error_set(err,
			"%s: cannot listen on %.107s: %s; choose another address", option,
			address->text, strerror(-r));
		return r;
	}
	if (!is_path && !address->port)
		note_port(fd, &out->address);
	out->fd = sl_steal_fd(&fd);
	return 0;
}

int sl_http_socket_permit(const struct sl_http_socket *listener, unsigned int mode,
	uint32_t group, struct sl_error *err)
{
	const char *path = listener->address.text;

	if (listener->address.kind != SL_CONFIG_SOCKET)
		return 0;
	if (chown(path, (uid_t)-1, group == SL_CONFIG_GROUP_NONE ? getegid() : group) <
			0 ||
		chmod(path, mode) < 0) {
		sl_error_set(err, "%s: cannot open %.107s to its users: %s",
			listener->option, path, strerror(errno));
		return sl_err_origin(-errno);
	}
	return 0;
}

void sl_http_socket_close(struct sl_http_socket *listener)
{
	const char *path = listener->address.text;
	struct stat stat = {0};

	if (listener->fd < 0)
		return;
	sl_closep(&listener->fd);
	if (listener->address.kind != SL_CONFIG_SOCKET || lstat(path, &stat) < 0 ||
		stat.st_dev != listener->device || stat.st_ino != listener->inode)
		return;
	if (unlink(path) < 0)
		sl_warning("cannot remove %s: %s", path, strerror(errno));
}
