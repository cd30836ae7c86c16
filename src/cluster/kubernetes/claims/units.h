/*
 * units - GPU memory as a device plugin offers it: in pieces that the kubelet counts
 *
 * A unit is SL_UNIT_BYTES of one GPU, and a device to the kubelet: UUID-NUMBER. The kubelet keeps
 * and sends each device by its name, 4 MiB at most, so a unit of 1 MiB would be too small: eight
 * GPUs of 288 GiB have 9,216 units in 500 kB as it is. Any of a GPU's units are as good as others;
 * those of a container must be of one GPU.
 *
 * A container's key names its workload in sluiced: its GPU, its lowest unit, and how many it has.
 * No two containers have a unit in common, so no two have one key at a time; and it follows from
 * what the kubelet keeps, so nothing else has to be kept. Pure but for memory.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_UNITS_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_UNITS_H

#include "base/error.h"

/* What pods ask for. */
#define SL_UNITS_RESOURCE "sluice.dev/memory"

#define SL_UNIT_BYTES (256 * SL_MIB)
/* Of a GPU: 1 TiB. */
#define SL_UNITS_MAX      4096u
#define SL_UNITS_GPUS_MAX 64
#define SL_UNITS_UUID_MAX 41
#define SL_UNITS_ID_MAX   (SL_UNITS_UUID_MAX + 5)
#define SL_UNITS_KEY_MAX  48

struct sl_units_gpu {
	char uuid[SL_UNITS_UUID_MAX];
	uint32_t count; /* how many are set */
	bool has[SL_UNITS_MAX];
};

/* A set of units. */
struct sl_units {
	struct sl_units_gpu *gpus;
	size_t gpu_count;
};

/* "GPU-...-12". Returns buf. */
const char *sl_units_id(const char *uuid, uint32_t unit, char buf[SL_UNITS_ID_MAX]);
/* Adds a unit by its name, of `size` bytes. False: it is none, of too many GPUs, or no memory. */
SL_MUST_CHECK bool sl_units_add(struct sl_units *units, const char *id, size_t size);
void sl_units_fini(struct sl_units *units);

/* How many units: of all GPUs. */
uint32_t sl_units_count(const struct sl_units *units);
/* The one GPU that has all of them; NULL, and err says what to do, where it is not one. */
const struct sl_units_gpu *sl_units_one_gpu(
	const struct sl_units *units, struct sl_error *err);
/* Of units of one GPU. Returns buf. */
const char *sl_units_key(const struct sl_units_gpu *gpu, char buf[SL_UNITS_KEY_MAX]);
/* Whether a workload's key is one of these; those of claims never are. */
bool sl_units_is_key(const char *key);

/* Chooses `count` of the available units, with those of `must` among them: on the GPU that has most
 * of them, where there is most room to burst; the lowest numbers. *out holds them: its GPU is
 * sl_units_one_gpu(). -ENOSPC (err, with the remedy): no GPU has as many; -ENOMEM. */
SL_MUST_CHECK int sl_units_choose(const struct sl_units *available,
	const struct sl_units *must, uint32_t count, struct sl_units *out,
	struct sl_error *err);

#endif
