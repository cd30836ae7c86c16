/*
 * journal - facts about this daemon's workloads and clients for a later daemon
 *
 * Records of run.db. They are identities and promises, never bytes held: clients report those
 * themselves. After a reboot they are useless, because the processes they name are gone. A struct
 * sl_journal owns its arrays. Loop only.
 */
#ifndef SL_DAEMON_STORE_JOURNAL_H
#define SL_DAEMON_STORE_JOURNAL_H

#include "base/amount.h"
#include "base/error.h"
#include "daemon/store/store.h"
#include "policy/node.h"
#include "wire/wire.h"

/* RESUMING: resumed, but its request is not claimed again yet. */
enum sl_park_state {
	SL_PARK_NOT = 0,
	SL_PARK_PARKED,
	SL_PARK_RESUMING,
	SL_PARK_DETACHED,
	SL_PARK_MOVING, /* parked for `sluice move`: it resumes on GPUs that it was told */
	SL_PARK_STATES
};

struct sl_journal_gpu {
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char name[64], pci[32];
	uint64_t pci_key, capacity_bytes, reserve_bytes;
};

struct sl_journal_workload {
	uint64_t id;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	uint32_t uid;
	int32_t root_pid;
	uint64_t root_start; /* 0: the root is dead, clients live on */
	char name[64], project[64], command[128];
	char entry[64]; /* key of its own socket; "": none */
	struct sl_amount request, limit;
	uint64_t request_bytes, limit_bytes, born;
	int32_t priority;
	uint32_t flags;        /* SL_WORKLOAD_* */
	uint64_t wait_max;     /* nanoseconds; 0: the configured one */
	uint64_t warm_after;   /* nanoseconds; 0: never */
	uint64_t detach_after; /* nanoseconds; 0: never */
	uint64_t idle_grace;   /* nanoseconds; 0: none */
	uint32_t compute_request_pm, compute_limit_pm; /* 0: not set */
	uint32_t park;                                 /* enum sl_park_state */
	uint32_t by_queue; /* `sluice run`: parked for others; resumes by itself */
	uint32_t leaving;  /* likewise, but not all of it had reached the host */
	uint64_t kill_at;  /* when it is killed; 0: not being stopped */
	/* An earlier, larger limit, which its memory may still reach; 0: none. */
	uint64_t former_limit_bytes;
	uint32_t gpu_count;
	uint8_t gpus[SL_NODE_GPUS_MAX][SL_WIRE_UUID_BYTES];  /* by ordinal */
	uint8_t first[SL_NODE_GPUS_MAX][SL_WIRE_UUID_BYTES]; /* when it began */
	uint8_t reach[SL_NODE_GPUS_MAX]
		     [SL_WIRE_UUID_BYTES]; /* in any order, then zeros */
};

struct sl_journal_client {
	uint64_t id, workload;
	int32_t pid;
	uint32_t swaps; /* known to the policy */
	uint64_t start_ticks;
	uint64_t away_bytes; /* it is off its GPUs, or may be; 0: it is there */
	/* By ordinal: the GPU that it left, or is on */
	uint8_t home[SL_NODE_GPUS_MAX][SL_WIRE_UUID_BYTES];
};

struct sl_journal {
	char boot[40]; /* the machine's boot: pids of another one mean nothing */
	uint64_t next_workload, next_client;
	struct sl_journal_gpu *gpus;
	struct sl_journal_workload *workloads;
	struct sl_journal_client *clients;
	size_t gpu_count, workload_count, client_count;
	size_t gpu_room, workload_room, client_room;
};

void sl_journal_fini(struct sl_journal *journal);
/* Makes room and sets the counts. New room is zeroed; old room is reused as it is, so that a writer
 * seldom allocates. -ENOMEM: the journal is empty. */
SL_MUST_CHECK int sl_journal_reserve(
	struct sl_journal *journal, size_t gpus, size_t workloads, size_t clients);
/* Reads into a zeroed journal. SL_STORE_*: a damaged record is left out, and so are clients of a
 * workload that is left out. SL_STORE_BAD: the journal is empty. */
SL_MUST_CHECK int sl_journal_load(
	struct sl_store *store, struct sl_journal *journal, struct sl_error *err);
/* The change from one journal to the next, whose lists it sorts by id. before NULL: the change
 * replaces whatever is stored. Returns NULL without memory. */
struct sl_store_change *sl_journal_change(
	const struct sl_journal *before, struct sl_journal *now);

#endif
