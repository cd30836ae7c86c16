/*
 * inventory - which GPUs there are, and which of them are ours
 *
 * NVML's list is merged into sl_daemon.gpus by UUID. A GPU is managed when the configuration
 * lists it, it is whole (no MIG) and open to several processes, and no other daemon has its
 * lock; why not is kept for `sluice doctor` and for refusals.
 */
#ifndef SL_DAEMON_GPU_INVENTORY_H
#define SL_DAEMON_GPU_INVENTORY_H

#include "daemon/state/daemon.h"

struct sl_measure_answer;

/* What a GPU of this capacity keeps for contexts and code where context_reserve says auto: 2 GiB,
 * or 3 % if that is more; below 16 GiB a sixteenth, and a twelfth of what it has above 4 GiB, so
 * that little of a small GPU is gone and the two meet at 16 GiB. */
uint64_t sl_inventory_reserve(uint64_t capacity_bytes);
/* An inventory from the measuring thread. */
void sl_inventory_take(struct sl_daemon *daemon, const struct sl_measure_answer *answer);
/* A GPU that the journal names: in the policy at once, admitting nobody until NVML lists it. Its
 * number, or -1 if there is no place left or another daemon has it. */
int sl_inventory_recall(struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES],
	const char *name, const char *pci, uint64_t pci_key, uint64_t capacity_bytes,
	uint64_t reserve_bytes);
/* Tells the policy of the GPU, or of its size anew. */
void sl_inventory_announce(struct sl_daemon *daemon, const struct sl_gpu *gpu);
/* Number of the GPU with this UUID, or -1. */
int sl_inventory_find(
	const struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* GPUs that a new workload may use (numbers), given CUDA_VISIBLE_DEVICES or NULL. */
uint32_t sl_inventory_usable(const struct sl_daemon *daemon, const char *visible);
/* Nothing is managed because other daemons have what there is; the sentence goes to err. */
SL_MUST_CHECK bool sl_inventory_is_taken(
	const struct sl_daemon *daemon, struct sl_error *err);
/* How many are managed. */
uint32_t sl_inventory_managed(const struct sl_daemon *daemon);
/* Keeps what `sluice doctor` says of GPUs that are not managed, or lost, up to date. */
void sl_inventory_explain(struct sl_daemon *daemon);
/* Unlocks all. */
void sl_inventory_fini(struct sl_daemon *daemon);
/* Handler of inventory_timer: asks again. */
int sl_inventory_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
