/*
 * journal - what a later daemon must know of this one's workloads and clients
 *
 * One file of records, each with a checksum, replaced whole. It holds identities and promises,
 * never bytes held: those the clients report themselves. Not fsynced: it outlives the daemon, not
 * the machine, because the processes it names do not either. A struct sl_journal owns its
 * arrays.
 */
#ifndef SL_DAEMON_STORE_JOURNAL_H
#define SL_DAEMON_STORE_JOURNAL_H

#include "base/amount.h"
#include "base/error.h"
#include "policy/node.h"
#include "wire/wire.h"

#define SL_JOURNAL_BYTES_MAX (256u << 20)
#define SL_JOURNAL_FORMAT    2
/* Of a record's checksum and size, and all that comes before its object. */
#define SL_JOURNAL_DIGITS 8
#define SL_JOURNAL_FRAME  18

/* RESUMING: resumed, and its request is not claimed again yet. */
enum sl_park_state { SL_PARK_NOT = 0, SL_PARK_PARKED, SL_PARK_RESUMING, SL_PARK_STATES };

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
	char entry[64]; /* key of its own socket, "": it has none */
	struct sl_amount request, limit;
	uint64_t request_bytes, limit_bytes, born;
	int32_t priority;
	uint32_t flags;      /* SL_WORKLOAD_* */
	uint64_t wait_max;   /* nanoseconds, 0: the configuration's */
	uint64_t warm_after; /* nanoseconds, 0: never */
	uint64_t idle_grace; /* nanoseconds, 0: none */
	uint32_t park;       /* enum sl_park_state */
	uint32_t by_queue;   /* of `sluice run`: parked for others, who bring it back */
	uint32_t leaving;    /* the same, and not all of it was on the host yet */
	uint64_t kill_at;    /* it is being stopped, and is killed then; 0: it is not */
	/* A larger limit that what it has may be of, 0: none. It was lowered since, which takes
	 * nothing away. */
	uint64_t former_limit_bytes;
	uint32_t gpu_count;
	uint8_t gpus[SL_NODE_GPUS_MAX][SL_WIRE_UUID_BYTES]; /* by ordinal */
};

struct sl_journal_client {
	uint64_t id, workload;
	int32_t pid;
	uint32_t swaps; /* the policy counts on it */
	uint64_t start_ticks;
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

enum {
	SL_JOURNAL_OK = 0,
	SL_JOURNAL_NONE, /* no file: a first start */
	/* Some of it is damaged, and left out: err says what, and how much is missing */
	SL_JOURNAL_PARTLY,
	SL_JOURNAL_BAD, /* not a journal; err says why. The file was put aside */
};

void sl_journal_fini(struct sl_journal *journal);
/* Room for so many; counts are set. New room is zeroed, room that was there is used again as it is,
 * so that a writer need not ask for memory each time. -ENOMEM: the journal is empty. */
SL_MUST_CHECK int sl_journal_reserve(
	struct sl_journal *journal, size_t gpus, size_t workloads, size_t clients);
/* *text is the caller's to free, NUL-terminated. 0 or negative errno. */
SL_MUST_CHECK int sl_journal_encode(
	const struct sl_journal *journal, char **text, size_t *size);
/* SL_JOURNAL_OK, _PARTLY or _BAD; *journal must be zeroed and is empty on BAD. A record with a
 * wrong checksum, or that says what none may, is left out, and so is a client of a workload that
 * is. An id that comes twice is BAD. */
SL_MUST_CHECK int sl_journal_decode(
	const char *text, size_t size, struct sl_journal *journal, struct sl_error *err);

/* Replaces the file, or leaves the old one as it is. 0 or negative errno. */
SL_MUST_CHECK int sl_journal_write(const char *path, const struct sl_journal *journal);
/* Removes what writers left beside it that were killed on the way. */
void sl_journal_sweep(const char *path);
/* Reads it. A damaged one is kept as PATH.bad-N, N being the first free number; a bad one is no
 * longer there as PATH. Negative errno: the file cannot be read. */
SL_MUST_CHECK int sl_journal_read(
	const char *path, struct sl_journal *journal, struct sl_error *err);

#endif
