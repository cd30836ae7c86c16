/*
 * dump - the whole machine as JSON, for people who look for a mistake
 *
 * Made in slices as the peer reads: SL_DUMP_SLICE objects at most per turn of the loop, so that
 * nobody waits for it, however many clients there are; memory is one slice of text and the ids.
 * What that
 * gives: every object (a GPU, a workload, a client) is of one moment, and each exists or existed
 * while the dump was made; different objects may be some milliseconds apart, so sums over them
 * may differ from sums inside others. All demands are of one moment.
 */
#ifndef SL_DAEMON_CONTROL_DUMP_H
#define SL_DAEMON_CONTROL_DUMP_H

#include "daemon/core/stream.h"
#include "daemon/link/peer.h"

#define SL_DUMP_SLICE 16
/* More demands than that are counted, not shown. */
#define SL_DUMP_DEMANDS 20000

/* Dumps at a time for users other than root and the daemon's own; each has some hundred KiB, also
 * while nobody reads it. */
#define SL_DUMP_MOST 16

/* DUMP came in: sets the peer's stream up. */
void sl_dump_begin(struct sl_peer *peer);
enum sl_stream_outcome sl_dump_next(struct sl_peer *peer, union sl_msg *msg);
/* Frees the state of a dump; NULL is fine. */
void sl_dump_free(void *state);

#endif
