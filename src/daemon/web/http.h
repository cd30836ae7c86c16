/*
 * http - GET /metrics, served by the loop
 *
 * One listener for Prometheus (option `metrics`; off by default), TCP or a Unix socket, all in the
 * loop's thread. libmicrohttpd waits in an epoll descriptor that the loop watches, and gets a turn
 * when nothing more urgent is ready. A turn renders at most one block of text per connection. A
 * hostile or slow client is bounded: 16 connections, 8 KiB of request, one request and 10 s each.
 * When all 16 are taken, one older than a second is closed. Numbers are copied at most every 100
 * ms, however often they are asked for.
 *
 * Over TCP any client that reaches the address may ask; the Unix socket has the permissions of the
 * daemon's own (socket_mode, socket_group). At a loopback address, requests that name another host
 * are refused, so that no web page can read the numbers through a browser on this machine.
 */
#ifndef SL_DAEMON_WEB_HTTP_H
#define SL_DAEMON_WEB_HTTP_H

#include "daemon/state/daemon.h"

#define SL_HTTP_CONNECTIONS   16
#define SL_HTTP_REQUEST_BYTES 8192
#define SL_HTTP_LIFE_NS       (10 * SL_S)
#define SL_HTTP_GIVE_WAY_NS   (1 * SL_S)
#define SL_HTTP_FRESH_NS      (100 * SL_MS)

/* Opens the configured listener, if any. On an error err says what is wrong and the remedy. 0 or
 * negative errno. */
SL_MUST_CHECK int sl_http_open(struct sl_daemon *daemon, struct sl_error *err);
/* Sets mode and group again, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_http_permit(const struct sl_daemon *daemon, struct sl_error *err);
/* Ends all connections; also after a failed open. */
void sl_http_close(struct sl_daemon *daemon);

/* Whether a Host header of a request over TCP names this machine's loopback: localhost, 127.0.0.0/8
 * or [::1], with or without a port. */
bool sl_http_is_local_host(const char *host);

#endif
