/*
 * groups - which group of gpu_groups a GPU belongs to
 *
 * Decided once, when the GPU is first managed: a number counts then, by PCI bus order as nvidia-smi
 * shows it. One thread.
 */
#ifndef SL_DAEMON_GPU_GROUPS_H
#define SL_DAEMON_GPU_GROUPS_H

#include "daemon/state/daemon.h"

/* Has the model's name all words of `words`? "h100", "nvidia-h100"; in any case. */
bool sl_groups_is_model(const char *model, const char *words, size_t length);
/* Finds the group of a GPU: the first that names it. */
void sl_groups_join(struct sl_daemon *daemon, struct sl_gpu *gpu);
/* "" if it belongs to none. */
const char *sl_groups_name(const struct sl_daemon *daemon, const struct sl_gpu *gpu);
/* Of these GPUs, those that are free of swapping. */
uint32_t sl_groups_fixed(const struct sl_daemon *daemon, uint32_t gpus);

#endif
