/*
 * units - GPU memory as a device plugin offers it: in units that the kubelet counts
 *
 * A unit is SL_UNIT_BYTES of one GPU. The kubelet sees it as a device, UUID-NUMBER. The kubelet
 * stores all names of devices and sends them in messages of at most 4 MiB. Units of 1 MiB would be
 * too many: at 256 MiB, eight GPUs of 288 GiB already have 9,216 units in 500 kB. Units of one GPU
 * are interchangeable; a container's units must be of one GPU.
 *
 * A container's key names its workload in sluiced: its GPU, its lowest unit, and its number of
 * units. No two containers share a unit, so no two have the same key at a time. The key derives
 * from what the kubelet stores, so nothing else is stored. Pure but for memory.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_UNITS_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_UNITS_H

#include "base/error.h"

/* The resource that pods ask for. */
#define SL_UNITS_RESOURCE "sluice.dev/memory"

#define SL_UNIT_BYTES (256 * SL_MIB)
/* Per GPU: 1 TiB. */
#define SL_UNITS_MAX      4096u
#define SL_UNITS_GPUS_MAX 64
#define SL_UNITS_UUID_MAX 41
#define SL_UNITS_ID_MAX   (SL_UNITS_UUID_MAX + 5)
#define SL_UNITS_KEY_MAX  48

struct sl_units_gpu {
	char uuid[SL_UNITS_UUID_MAX];
	uint32_t count; /* number of set bits */
	bool has[SL_UNITS_MAX];
};

/* A set of units. */
struct sl_units {
	struct sl_units_gpu *gpus;
	size_t gpu_count;
};

/* "GPU-...-12". Returns buf. */
const char *sl_units_id(const char *uuid, uint32_t unit, char buf[SL_UNITS_ID_MAX]);
/* Adds a unit by its name, of `size` bytes. False: not a unit, too many GPUs, or out of memory. */
SL_MUST_CHECK bool sl_units_add(struct sl_units *units, const char *id, size_t size);
void sl_units_fini(struct sl_units *units);

/* Number of units on all GPUs. */
uint32_t sl_units_count(const struct sl_units *units);
/* The GPU that has all units; NULL if they are on several, and err has the remedy. */
const struct sl_units_gpu *sl_units_one_gpu(
	const struct sl_units *units, struct sl_error *err);
/* The key of units of one GPU. Returns buf. */
const char *sl_units_key(const struct sl_units_gpu *gpu, char buf[SL_UNITS_KEY_MAX]);
/* Is it a key of units? Keys of claims never are. */
bool sl_units_is_key(const char *key);

/* Chooses `count` of the available units, including those of `must`, all on one GPU: the one with
 * the most available units, where bursts have most space. Chooses its lowest numbers.
 * sl_units_one_gpu() of *out is that GPU. -ENOSPC (err, with the remedy): no GPU has as many;
 * -ENOMEM. */
SL_MUST_CHECK int sl_units_choose(const struct sl_units *available,
	const struct sl_units *must, uint32_t count, struct sl_units *out,
	struct sl_error *err);

#endif
