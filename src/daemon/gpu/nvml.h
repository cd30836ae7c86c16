/*
 * nvml - NVML, loaded at run time, reduced to the daemon's few questions
 *
 * Every call may block as long as the driver likes, so only the measuring thread (measure.h) calls
 * these. A struct sl_nvml belongs to one thread at a time. Bytes throughout.
 */
#ifndef SL_DAEMON_GPU_NVML_H
#define SL_DAEMON_GPU_NVML_H

#include "base/clock.h"
#include "base/error.h"
#include "wire/wire.h"

#define SL_NVML_DEVICES_MAX 64

struct sl_nvml;

struct sl_nvml_device {
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char uuid_text[41];
	char name[64];
	char pci[32];
	uint64_t pci_key; /* ascends in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID */
	uint64_t capacity_bytes;
	bool mig;       /* split into MIG instances */
	bool exclusive; /* its compute mode admits one process, or none */
};

struct sl_nvml_inventory {
	uint32_t count;
	uint32_t unnamed; /* lost ones that NVML counts without a UUID */
	char driver[32];
	struct sl_nvml_device devices[SL_NVML_DEVICES_MAX]; /* by pci_key */
};

struct sl_nvml_process {
	uint32_t pid;
	uint64_t used_bytes; /* 0 if NVML does not tell */
	uint32_t
		busy_pct; /* recent share of the GPU's processors; only with by_process */
	bool ours;        /* scratch for the code that judges the list */
};

struct sl_nvml_usage {
	uint64_t
		used_bytes; /* of the whole GPU, without the driver's reserve if NVML tells it */
	uint64_t driver_bytes; /* the driver's own; 0 if NVML does not tell */
	uint32_t utilisation_pct;
	bool by_process;       /* NVML tells the use per process */
	uint32_t busy_sum_pct; /* of all processes; may be more than 100 */
	uint32_t count;
	struct sl_nvml_process *processes; /* by pid, each once; the caller frees */
};

enum {
	SL_NVML_OK = 0,
	SL_NVML_FAILED, /* err says what failed and what to do */
	SL_NVML_LOST,   /* this GPU fell off the bus, or waits for a reset; err says so */
	SL_NVML_ABSENT, /* NVML does not know this UUID (any longer) */
	SL_NVML_NONE,   /* no event in time */
};

/* Loads and initialises the library. *out is set only on SL_NVML_OK. */
SL_MUST_CHECK int sl_nvml_open(struct sl_nvml **out, struct sl_error *err);
/* Shuts it down. Accepts NULL; returns NULL. */
struct sl_nvml *sl_nvml_close(struct sl_nvml *nvml);

SL_MUST_CHECK int sl_nvml_list(
	struct sl_nvml *nvml, struct sl_nvml_inventory *out, struct sl_error *err);
/* The memory used on the GPU with this UUID, by process. */
SL_MUST_CHECK int sl_nvml_usage(struct sl_nvml *nvml, const char *uuid_text,
	struct sl_nvml_usage *out, struct sl_error *err);

/*
 * Errors of GPUs (Xids) as NVML reports them. A watch has an NVML session of its own. The library
 * counts sessions, so NVML is really reopened only while no watch is open. SL_NVML_FAILED if the
 * functions are missing or refused.
 */
struct sl_nvml_watch;

SL_MUST_CHECK int sl_nvml_watch_open(struct sl_nvml_watch **out, struct sl_error *err);
/* SL_NVML_OK: *xid of the GPU with this UUID. SL_NVML_LOST: some GPU is lost, ask all of them. */
SL_MUST_CHECK int sl_nvml_watch_wait(struct sl_nvml_watch *watch, unsigned int ms,
	char uuid_text[41], uint64_t *xid, struct sl_error *err);
/* Accepts NULL; returns NULL. */
struct sl_nvml_watch *sl_nvml_watch_close(struct sl_nvml_watch *watch);

#endif
