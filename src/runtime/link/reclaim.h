/*
 * reclaim - gives back memory that is hoarded
 *
 * Spaces hoard freed memory and empty slabs, pools their unused reserve, and passed.h the rest of
 * its last grain. All of it goes back before an allocation fails. Each context is flushed by a
 * thread of its own, since its work may last for ever.
 */
#ifndef SL_RUNTIME_LINK_RECLAIM_H
#define SL_RUNTIME_LINK_RECLAIM_H

#include "base/clock.h"

/* Flushes all spaces now. Returns when everything freed before is back, but at end_ns at the
 * latest, since the GPU's work may be waiting for the caller itself. If no thread can be started,
 * the caller waits for the work without a deadline. No lock may be held. */
void sl_reclaim_spaces(sl_ns end_ns);

#endif
