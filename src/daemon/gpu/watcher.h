/*
 * watcher - the thread that waits for Xids
 *
 * It has an NVML session of its own (sl_nvml_watch), which must be closed before NVML can really be
 * reopened; so the watcher can be paused. It may hang inside NVML for good. Then errors are only
 * noticed later, by the measuring thread. If NVML refuses to watch, it is asked again every 30 s.
 */
#ifndef SL_DAEMON_GPU_WATCHER_H
#define SL_DAEMON_GPU_WATCHER_H

#include "daemon/gpu/nvml.h"

struct sl_watcher;

/* Called on the watcher's thread. xid 0: some GPU is lost, uuid_text is "". */
typedef void (*sl_watcher_fn)(void *context, const char *uuid_text, uint64_t xid);

/* Starts the thread, paused. 0 or negative errno. */
SL_MUST_CHECK int sl_watcher_new(
	struct sl_watcher **out, sl_watcher_fn fn, void *context);
/* Closes its session, and waits for that for up to 1 s. Not for the loop's thread. */
void sl_watcher_pause(struct sl_watcher *watcher);
void sl_watcher_resume(struct sl_watcher *watcher);
/* Ends it. False: it hangs inside NVML, is abandoned, and may still call fn. Accepts NULL. */
SL_MUST_CHECK bool sl_watcher_free(struct sl_watcher *watcher);

#endif
