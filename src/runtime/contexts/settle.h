/*
 * settle - waits until all work of a context is complete
 *
 * Takes as long as that work does. Does not wait while a stream capture is open.
 */
#ifndef SL_RUNTIME_CONTEXTS_SETTLE_H
#define SL_RUNTIME_CONTEXTS_SETTLE_H

#include "runtime/contexts/space.h"

enum sl_settle_outcome {
	SL_SETTLED = 0, /* work submitted before is complete, or the context is gone */
	SL_SETTLE_CAPTURING, /* a capture is open: not now */
	SL_SETTLE_BROKEN, /* the context has a sticky error: its work has ended, perhaps
			   * unfinished */
	SL_SETTLE_FAILED, /* the driver failed otherwise, or shuts down: work may go on */
};

/* *result is the driver's answer. The context is made current for the call if it is not. */
SL_MUST_CHECK int sl_settle(const struct sl_space *space, CUresult *result);
SL_MUST_CHECK int sl_settle_context(CUcontext ctx, CUresult *result);

#endif
