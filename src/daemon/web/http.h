/*
 * http - GET /metrics, from within the loop
 *
 * One door for Prometheus (option `metrics`; off by default), TCP or a Unix socket. The
 * loop's thread does it all: libmicrohttpd waits in an epoll descriptor that the loop watches, and
 * gets a turn when nothing more urgent is ready. A turn renders one block of text per connection at
 * most. What a hostile or slow reader can have is bounded: 16 connections, 8 KiB of request, one
 * request and 10 s each; when all are taken, one that is older than a second gives way. Numbers are
 * copied at most every 100 ms, whoever asks how often.
 *
 * Over TCP everybody may ask who reaches the address; the Unix socket has the permissions of the
 * daemon's own (socket_mode, socket_group). At a loopback address, requests that name another host
 * are refused, so that no web page can read the numbers through a browser of this machine.
 */
#ifndef SL_DAEMON_WEB_HTTP_H
#define SL_DAEMON_WEB_HTTP_H

#include "daemon/state/daemon.h"

#define SL_HTTP_CONNECTIONS   16
#define SL_HTTP_REQUEST_BYTES 8192
#define SL_HTTP_LIFE_NS       (10 * SL_S)
#define SL_HTTP_GIVE_WAY_NS   (1 * SL_S)
#define SL_HTTP_FRESH_NS      (100 * SL_MS)

/* Opens what the configuration says; without it nothing. On error err says what and the remedy. 0
 * or negative errno. */
SL_MUST_CHECK int sl_http_open(struct sl_daemon *daemon, struct sl_error *err);
/* Mode and group anew, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_http_permit(const struct sl_daemon *daemon, struct sl_error *err);
/* Ends all connections; also after a failed open. */
void sl_http_close(struct sl_daemon *daemon);

/* Whether a Host header of a request over TCP names this machine's loopback: localhost, 127.0.0.0/8
 * or [::1], with or without a port. */
bool sl_http_is_local_host(const char *host);

#endif
