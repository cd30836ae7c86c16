/*
 * recount - a message that is judged by what the driver shows waits for a fresh look at the GPUs
 *
 * What processes hold is read from NVML once per measure_interval, and two kinds of message need to
 * know it as it is now:
 *   - RUN, and SET of an amount, where processes without us were seen: they may be gone since. Who
 *	ends such a program and then says `sluice run --limit 1.0` means the whole GPU, and would
 *	have what was beside the dead one, for as long as it runs.
 *   - the first REPORT of a process that outlived a daemon: it is believed as far as NVML lists its
 *	memory (claim.h), and there may be no sample yet, or one from before its memory came back.
 * Nothing waits for NVML longer than SL_RECOUNT_NS, nor at all where it does not answer. Loop's
 * thread.
 */
#ifndef SL_DAEMON_CONTROL_RECOUNT_H
#define SL_DAEMON_CONTROL_RECOUNT_H

#include "daemon/state/daemon.h"

#define SL_RECOUNT_NS (2 * SL_S)

/* True: the message was copied and comes back by sl_recount_next; until then nothing more is read
 * from the peer. False: it need not wait. */
SL_MUST_CHECK bool sl_recount_first(struct sl_peer *peer, const union sl_msg *msg);
/* The next peer whose message waits no longer: its GPUs were counted, or could not be. NULL:
 * there is none. */
struct sl_peer *sl_recount_next(struct sl_daemon *daemon, sl_ns now, union sl_msg *msg);
/* Sets the timer to the end of the longest wait; after the last sl_recount_next. */
void sl_recount_arm(struct sl_daemon *daemon);
/* The peer is gone. */
void sl_recount_forget(struct sl_peer *peer);
/* late: called when the longest wait is over. 0 or negative errno. */
SL_MUST_CHECK int sl_recount_open(struct sl_daemon *daemon, sd_event_time_handler_t late);
/* After the peers. */
void sl_recount_close(struct sl_daemon *daemon);

#endif
