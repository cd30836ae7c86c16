/*
 * gpu_loss - GPUs that fall off the bus or report an error that ends all work on them
 *
 * A managed GPU is lost when NVML says so (GPU_IS_LOST, a reset is required), or when NVML finds it
 * neither in its list nor by its UUID. An Xid that is fatal for the whole GPU (xid.def) means the
 * same. The policy gets GPU_LOST and tells the clients. While a GPU is lost, NVML is asked about it
 * every few seconds, now and then through a new session. The GPU is back (GPU_ADD) when NVML lists
 * it, it answers, and either it had stopped answering or no process is left on it: only an unused
 * GPU can have been reset. Loop's thread.
 */
#ifndef SL_DAEMON_CLIENTS_GPU_LOSS_H
#define SL_DAEMON_CLIENTS_GPU_LOSS_H

#include "daemon/state/daemon.h"

struct sl_measure_answer;

#define SL_GPU_LOSS_ASK_NS    (3 * SL_S)
#define SL_GPU_LOSS_REOPEN_NS (30 * SL_S)

/* An Xid from the watching thread. */
void sl_gpu_loss_xid(struct sl_daemon *daemon, const struct sl_measure_answer *answer);
/* A sample failed because the GPU is lost or unknown. Returns when to ask again. */
SL_MUST_CHECK sl_ns sl_gpu_loss_unanswered(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample);
/* A sample of a GPU that counts as lost: true if it is back. */
SL_MUST_CHECK bool sl_gpu_loss_answered(
	struct sl_daemon *daemon, const struct sl_measure_answer *sample);

#endif
