/*
 * recount - messages judged by what the driver shows wait for a fresh sample of the GPUs
 *
 * NVML's figures of processes are read once per measure_interval. Two kinds of message need current
 * ones:
 *   - RUN, and SET of an amount, where unmanaged processes were seen: these may have ended since. A
 *     user ends such a program, then types `sluice run --limit 1.0` and means the whole GPU.
 *     Without a fresh sample the workload would be limited for life to what that program left free.
 *   - the first REPORT of a process that outlived a daemon: the report is believed as far as NVML
 *     lists the process's memory (claim.h), and the last sample may be older than that memory.
 * Nothing waits for NVML longer than SL_RECOUNT_NS, nor at all if it does not answer. Loop's
 * thread.
 */
#ifndef SL_DAEMON_CONTROL_RECOUNT_H
#define SL_DAEMON_CONTROL_RECOUNT_H

#include "daemon/state/daemon.h"

#define SL_RECOUNT_NS (2 * SL_S)

/* True: the message was copied, and sl_recount_next returns it later; until then nothing more is
 * read from the peer. False: the message need not wait. */
SL_MUST_CHECK bool sl_recount_first(struct sl_peer *peer, const union sl_msg *msg);
/* The next peer whose message is ready: its GPUs were sampled, or could not be. NULL: none. */
struct sl_peer *sl_recount_next(struct sl_daemon *daemon, sl_ns now, union sl_msg *msg);
/* Sets the timer to the end of the longest wait; call after the last sl_recount_next. */
void sl_recount_arm(struct sl_daemon *daemon);
/* The peer is gone. */
void sl_recount_forget(struct sl_peer *peer);
/* late: called when the longest wait is over. 0 or negative errno. */
SL_MUST_CHECK int sl_recount_open(struct sl_daemon *daemon, sd_event_time_handler_t late);
/* After the peers. */
void sl_recount_close(struct sl_daemon *daemon);

#endif
