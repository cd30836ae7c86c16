/*
 * serving - opens metrics and page, and retries until it succeeds
 *
 * GPUs are shared whether or not HTTP works: if an address is in use or a file cannot be read, only
 * that part is missing. It is retried every SL_SERVING_RETRY_NS, and `sluice doctor` says what is
 * wrong. Only a configuration that contradicts itself (-EINVAL) keeps the daemon from starting.
 * Loop's thread.
 */
#ifndef SL_DAEMON_WEB_SERVING_H
#define SL_DAEMON_WEB_SERVING_H

#include "daemon/state/part.h"

struct sl_daemon;

#define SL_SERVING_RETRY_NS (5 * SL_S)

/* Opens both. -EINVAL: err says what is wrong in the configuration. 0 or negative errno. */
SL_MUST_CHECK int sl_serving_open(struct sl_daemon *daemon, struct sl_error *err);
/* Sets mode and group again, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_serving_permit(struct sl_daemon *daemon, struct sl_error *err);
/* Closes both. */
void sl_serving_close(struct sl_daemon *daemon);

/* For `sluice doctor`: path is the address, "" if it is not served. */
void sl_serving_metrics_part(const struct sl_daemon *daemon, struct sl_part *part);
void sl_serving_page_part(const struct sl_daemon *daemon, struct sl_part *part);

#endif
