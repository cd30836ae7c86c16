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

/* Flushes all spaces now. Returns when everything freed before is back, or at end_ns: work that
 * lasts longer may be waiting for the caller itself. If no thread can be started the caller waits
 * for the work, however long that takes. No lock may be held. */
void sl_reclaim_spaces(sl_ns end_ns);

#endif
