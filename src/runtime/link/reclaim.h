/*
 * reclaim - gives back memory that is hoarded
 *
 * Spaces hoard freed memory and empty slabs, pools what they have reserved, passed-through memory
 * the rest of its last grain. All of that goes before an allocation fails. Each context has a
 * thread for the occasion, as the work of one may last for ever.
 */
#ifndef SL_RUNTIME_LINK_RECLAIM_H
#define SL_RUNTIME_LINK_RECLAIM_H

#include "base/clock.h"

/* Flushes all spaces now, and returns when what was freed before is back, or at end_ns: work that
 * lasts longer may be waiting for the caller itself. Where no thread can be had the caller waits
 * for the work, however long that takes. No lock may be held. */
void sl_reclaim_spaces(sl_ns end_ns);

#endif
