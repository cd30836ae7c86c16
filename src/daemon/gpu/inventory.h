/*
 * inventory - which GPUs exist, and which of them this daemon manages
 *
 * NVML's list is merged into sl_daemon.gpus by UUID. A GPU is managed if the configuration lists
 * it, it is whole (no MIG), open to several processes, and not locked by another daemon. The reason
 * why one is not managed is kept for `sluice doctor` and for refusals.
 */
#ifndef SL_DAEMON_GPU_INVENTORY_H
#define SL_DAEMON_GPU_INVENTORY_H

#include "daemon/state/daemon.h"

struct sl_measure_answer;

/* The part of a GPU's capacity that is reserved for contexts and code with context_reserve auto.
 * From 16 GiB: 2 GiB, or 3 % if that is more. Below: a sixteenth, plus a twelfth of the capacity
 * above 4 GiB. So a small GPU loses little, and both rules give 2 GiB at 16 GiB. */
uint64_t sl_inventory_reserve(uint64_t capacity_bytes);
/* Takes an inventory from the measuring thread. */
void sl_inventory_take(struct sl_daemon *daemon, const struct sl_measure_answer *answer);
/* Adds a GPU that the journal names to the policy, which admits no workload to it until NVML lists
 * it. Returns the GPU's number, or -1: the table of GPUs is full, or another daemon has this
 * GPU. */
int sl_inventory_recall(struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES],
	const char *name, const char *pci, uint64_t pci_key, uint64_t capacity_bytes,
	uint64_t reserve_bytes);
/* Tells the policy of the GPU, or of its new size. */
void sl_inventory_announce(struct sl_daemon *daemon, const struct sl_gpu *gpu);
/* Number of the GPU with this UUID, or -1. */
int sl_inventory_find(
	const struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES]);
/* Mask of the GPUs that a new workload may use, given CUDA_VISIBLE_DEVICES or NULL. */
uint32_t sl_inventory_usable(const struct sl_daemon *daemon, const char *visible);
/* Is nothing managed because other daemons have the GPUs? err gets the sentence. */
SL_MUST_CHECK bool sl_inventory_is_taken(
	const struct sl_daemon *daemon, struct sl_error *err);
/* The number of managed GPUs. */
uint32_t sl_inventory_managed(const struct sl_daemon *daemon);
/* Updates what `sluice doctor` says of GPUs that are lost or not managed. */
void sl_inventory_explain(struct sl_daemon *daemon);
/* Unlocks all. */
void sl_inventory_fini(struct sl_daemon *daemon);
/* Handler of inventory_timer: asks for the list again. */
int sl_inventory_timer(sd_event_source *source, uint64_t usec, void *context);

#endif
