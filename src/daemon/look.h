/*
 * look - a request that is judged by what others use waits for a fresh look at the GPUs
 *
 * What processes without us hold is counted once per measure_interval. Where there was any, it may
 * be gone
 * since: whoever ends such a program and then says `sluice run --limit 1.0` means the whole GPU,
 * and would have what was beside the dead one, for as long as it runs. So RUN, and SET of an
 * amount, are judged after the GPUs concerned have been counted anew. GPUs that nobody else was
 * seen on are not looked at, and nobody waits for NVML longer than SL_LOOK_NS, nor at all where it
 * does not answer. Loop's thread.
 */
#ifndef SL_DAEMON_LOOK_H
#define SL_DAEMON_LOOK_H

#include "daemon/daemon.h"

#define SL_LOOK_NS (2 * SL_S)

/* True: the message was copied and will be given to sl_control_take; until then nothing more is
 * read from the peer. False: it need not wait. */
SL_MUST_CHECK bool sl_look_first(struct sl_peer *peer, const union sl_msg *msg);
/* A GPU was counted, or could not be: who waited for no other goes on. */
void sl_look_seen(struct sl_daemon *daemon);
/* The peer is gone. */
void sl_look_forget(struct sl_peer *peer);
/* Handler of look_timer. */
int sl_look_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
