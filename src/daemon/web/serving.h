/*
 * serving - metrics and page are opened, or tried again until they can be
 *
 * GPUs are shared whether or not HTTP can be served: an address that is taken, or files that cannot
 * be read, cost that part alone. It is tried again every SL_SERVING_RETRY_NS, and `sluice doctor`
 * says what is in the way. Only a configuration that contradicts itself (-EINVAL) keeps the daemon
 * from starting. Loop's thread.
 */
#ifndef SL_DAEMON_WEB_SERVING_H
#define SL_DAEMON_WEB_SERVING_H

#include "daemon/state/part.h"

struct sl_daemon;

#define SL_SERVING_RETRY_NS (5 * SL_S)

/* Opens both. -EINVAL: err says what is wrong in the configuration. 0 or negative errno. */
SL_MUST_CHECK int sl_serving_open(struct sl_daemon *daemon, struct sl_error *err);
/* Mode and group anew, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_serving_permit(struct sl_daemon *daemon, struct sl_error *err);
/* Ends the tries; metrics and page are closed by their own. */
void sl_serving_close(struct sl_daemon *daemon);

/* For `sluice doctor`: path is the address, "" where it is served nowhere. */
void sl_serving_metrics_part(const struct sl_daemon *daemon, struct sl_part *part);
void sl_serving_page_part(const struct sl_daemon *daemon, struct sl_part *part);

#endif
