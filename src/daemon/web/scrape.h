/*
 * scrape - GET /metrics for Prometheus (option `metrics`; off by default)
 *
 * The loop copies the numbers at one moment, at most every SL_SCRAPE_FRESH_NS and after everything
 * more urgent; the connections' threads (web/http.h) make text of the copy. A hostile or slow
 * client is bounded: 16 connections, 8 KiB of request, one request and 10 s each. When all 16 are
 * taken, those older than a second are closed.
 *
 * Over TCP any client that reaches the address may ask; the Unix socket has the permissions of the
 * daemon's own (socket_mode, socket_group). At a loopback address, requests that name another host
 * are refused, so that no web page can read the numbers through a browser on this machine. All
 * calls are the loop's.
 */
#ifndef SL_DAEMON_WEB_SCRAPE_H
#define SL_DAEMON_WEB_SCRAPE_H

#include "daemon/state/daemon.h"

#define SL_SCRAPE_FRESH_NS (100 * SL_MS)

/* Opens the configured address, if any. On an error err says what is wrong and the remedy, and the
 * caller must call sl_scrape_close. 0 or negative errno. */
SL_MUST_CHECK int sl_scrape_open(struct sl_daemon *daemon, struct sl_error *err);
/* Sets mode and group again, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_scrape_permit(const struct sl_daemon *daemon, struct sl_error *err);
/* Ends all requests. */
void sl_scrape_close(struct sl_daemon *daemon);

#endif
