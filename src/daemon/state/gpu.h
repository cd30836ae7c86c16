/*
 * gpu - one GPU, as NVML shows it and as the policy knows it
 *
 * The loop owns it. inventory.c finds it, asking.c says when it is measured, reconcile.c uses the
 * answers.
 */
#ifndef SL_DAEMON_STATE_GPU_H
#define SL_DAEMON_STATE_GPU_H

#include "base/clock.h"
#include "daemon/core/lock.h"
#include "wire/wire.h"

/* Bytes moved over the link for a workload on one GPU; clean_bytes were spared because the host
 * still had a valid copy. */
struct sl_moved {
	uint64_t out_bytes, in_bytes, clean_bytes;
};

/* One GPU, by UUID. Its index in sl_daemon.gpus is its number in the policy and never changes. */
struct sl_gpu {
	bool known;   /* this place is taken */
	bool present; /* in NVML's latest list */
	bool managed; /* the policy has it */
	bool taken;   /* another daemon has its lock */
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char name[64], pci[32];
	int node; /* its NUMA node; -1: none, or not known */
	uint64_t pci_key;
	uint32_t rank;  /* CUDA's number with CUDA_DEVICE_ORDER=PCI_BUS_ID */
	uint32_t group; /* of gpu_groups, from 1; 0: of none (gpu/groups.c) */
	uint64_t capacity_bytes, reserve_bytes;
	bool reserve_is_ours; /* context_reserve is larger than the GPU: the default is used */
	uint64_t
		driver_bytes; /* the driver's own part of the reserve, as NVML last said */
	char why_not[160];    /* why it is not managed, or lost */
	bool lost;            /* as told to the policy; clients/gpu_loss.c */
	bool unreachable;     /* lost, and NVML could not answer about it */
	sl_ns reopen_at;      /* lost: when to try a new NVML session */
	int lock_fds[SL_LOCK_DIRS_MAX];
	/* measuring (reconcile.c) */
	bool asked;
	sl_ns asked_at, due, pause; /* next question; interval between urgent ones */
	sl_ns hurried_at;
	sl_ns measured_at, full_at; /* 0: never */
	sl_ns counted_at;           /* when the look that found unmanaged_bytes began */
	sl_ns look_from; /* a message waits for a look that begins no earlier; 0: none does */
	uint64_t used_bytes, unmanaged_bytes, overhead_bytes, overhead_before;
	bool unsure;
	uint32_t utilisation_pct;
	bool by_process;       /* NVML reports the use per process, as of full_at */
	uint32_t busy_sum_pct; /* of all processes */
	bool complained;
	/* Smoothed bytes per second of past orders, and as told to the policy; 0: unknown. */
	struct sl_link_rate {
		uint64_t measured, told;
	} link_out, link_in;
	struct sl_moved moved; /* of all workloads so far */
};

#endif
