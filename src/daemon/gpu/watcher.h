/*
 * watcher - the thread that waits for Xids
 *
 * It has an NVML session of its own (sl_nvml_watch), which must be closed for NVML to be opened
 * anew in earnest; so it can be paused. It may hang inside NVML for good, and nobody is the worse
 * for that but for hearing of errors later, from the measuring thread. An NVML that tells no events
 * is tried again now and then.
 */
#ifndef SL_DAEMON_GPU_WATCHER_H
#define SL_DAEMON_GPU_WATCHER_H

#include "daemon/gpu/nvml.h"

struct sl_watcher;

/* xid 0: some GPU is lost, uuid_text is "". On the watcher's thread. */
typedef void (*sl_watcher_fn)(void *context, const char *uuid_text, uint64_t xid);

/* Starts the thread, paused. 0 or negative errno. */
SL_MUST_CHECK int sl_watcher_new(
	struct sl_watcher **out, sl_watcher_fn fn, void *context);
/* Closes its session; waits for that for up to a second. Not from the loop's thread. */
void sl_watcher_pause(struct sl_watcher *watcher);
void sl_watcher_resume(struct sl_watcher *watcher);
/* Ends it; false: it hangs inside NVML, is left behind, and may still call fn one day. NULL is
 * fine. */
SL_MUST_CHECK bool sl_watcher_free(struct sl_watcher *watcher);

#endif
