/*
 * http_socket - the listening socket of metrics or the page: TCP, or a path
 *
 * Loop's thread; blocks only in one connect(2) to a socket that may be stale.
 */
#ifndef SL_DAEMON_WEB_HTTP_SOCKET_H
#define SL_DAEMON_WEB_HTTP_SOCKET_H

#include "daemon/config/config.h"

struct sl_http_socket {
	int fd;             /* -1: not open */
	const char *option; /* its name in the configuration, for messages */
	struct sl_config_address address;
	uint64_t device, inode; /* of the path that it created */
};

/* Whether only this machine reaches it, as with a path. */
bool sl_http_socket_is_loopback(const struct sl_config_address *address);
/* Listens, non-blocking. Replaces a stale socket at the path, but not one that answers. On an error
 * err names the address and the remedy. 0 or negative errno. */
SL_MUST_CHECK int sl_http_socket_open(struct sl_http_socket *out, const char *option,
	const struct sl_config_address *address, struct sl_error *err);
/* Sets mode and group (SL_CONFIG_GROUP_NONE: the daemon's own) of a path; does nothing for TCP. */
SL_MUST_CHECK int sl_http_socket_permit(const struct sl_http_socket *listener,
	unsigned int mode, uint32_t group, struct sl_error *err);
/* Closes it, and unlinks the path if it is still the socket that open created. */
void sl_http_socket_close(struct sl_http_socket *listener);

#endif
