/*
 * dump - the state of the whole daemon as JSON, for debugging
 *
 * The dump is made in slices as the peer reads: at most SL_DUMP_SLICE objects per turn of the loop.
 * So other peers do not wait for it, however many clients there are. Memory: one slice of text, and
 * the ids. Each object (a GPU, a workload, a client) shows one moment, and existed at some time
 * during the dump. Different objects may be some milliseconds apart, so sums over them may
 * disagree. All demands show the same moment.
 */
#ifndef SL_DAEMON_CONTROL_DUMP_H
#define SL_DAEMON_CONTROL_DUMP_H

#include "daemon/core/stream.h"
#include "daemon/link/peer.h"

#define SL_DUMP_SLICE 16
/* More demands than this are counted, not shown. */
#define SL_DUMP_DEMANDS 20000

/* Dumps at a time for users other than root and the daemon's own. Each takes some hundred KiB, even
 * while the peer does not read. */
#define SL_DUMP_MOST 16

/* DUMP came in: sets up the peer's stream. */
void sl_dump_begin(struct sl_peer *peer);
enum sl_stream_outcome sl_dump_next(struct sl_peer *peer, union sl_msg *msg);

#endif
