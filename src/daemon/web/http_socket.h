/*
 * http_socket - the socket at which metrics, or the page, are asked for: TCP, or a path
 *
 * Loop's thread; nothing blocks but one connect(2) to a socket that may be stale.
 */
#ifndef SL_DAEMON_WEB_HTTP_SOCKET_H
#define SL_DAEMON_WEB_HTTP_SOCKET_H

#include <stdarg.h>

#include "daemon/config/config.h"

struct sl_http_socket {
	int fd;             /* -1: not open */
	const char *option; /* of the configuration, for messages */
	struct sl_config_address address;
	uint64_t device, inode; /* of the path that we made */
};

/* Whether only this machine reaches it; a path, too. */
bool sl_http_socket_is_loopback(const struct sl_config_address *address);
/* Listens, non-blocking. A stale socket at the path is replaced, one that answers is not. On an
 * error err names the address and the remedy. 0 or negative errno. */
SL_MUST_CHECK int sl_http_socket_open(struct sl_http_socket *out, const char *option,
	const struct sl_config_address *address, struct sl_error *err);
/* Sets mode and group (SL_CONFIG_GROUP_NONE: our own) of a path; nothing to do for TCP. */
SL_MUST_CHECK int sl_http_socket_permit(const struct sl_http_socket *listener,
	unsigned int mode, uint32_t group, struct sl_error *err);
/* Closes, and unlinks the path if it still is the socket that we made. */
void sl_http_socket_close(struct sl_http_socket *listener);
/* For libmicrohttpd: what it has to say, at debug level. part: a string, what it serves. */
void sl_http_log(void *part, const char *format, va_list args);

#endif
