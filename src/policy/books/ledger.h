/*
 * ledger - how many bytes each client and workload has on which GPU, and what they were promised
 *
 * Pure bookkeeping: no clock, no I/O, no locks. Sizes are backing bytes. Three levels keep the same
 * numbers (a cell): a client (holding), its workload (account) and the GPU (sum). A change goes
 * through all three at once and keeps the derived sums of the GPU up to date, so every question is
 * O(1). Amounts from outside are clamped to SL_LEDGER_BYTES_MAX, so no sum can wrap.
 *
 *   shareable   capacity - reserve - unmanaged
 *   paid        the part of a client's measured bytes (context, code, stacks) that the reserve
 *               pays, first come, first paid; hidden is the rest, and paid <= reserve - driver
 *   use(w)      backing + granted + hidden of the workload's living clients, wherever these bytes
 *               are; bounded by the limit
 *   here(w)     the part of use that is on the GPU or has room reserved there: use - evicted +
 *               returning
 *   resident    sum of here + dying
 *   free        shareable - resident
 *   unclaimed   max(0, request(w) - here(w))
 *   fixed(w)    hidden + held; held is the part of backing that must not be evicted
 *   claims      sum over workloads of max(request, fixed); I1: claims <= shareable
 *
 * What a process had measured when it left its GPUs is away there. What the reserve has no room to
 * pay of that is its entry.
 *
 * fixed is part of here. Where I1 holds, every promise can be kept by taking back what is above
 * requests and not fixed. So there overlap (below) is at most dying + the sum over workloads of
 * max(0, here - max(request, fixed)).
 */
#ifndef SL_POLICY_BOOKS_LEDGER_H
#define SL_POLICY_BOOKS_LEDGER_H

#include "base/error.h"

#define SL_LEDGER_GPUS_MAX  32
#define SL_LEDGER_BYTES_MAX (1ull << 48)

/* Each GPU of a mask. */
#define sl_each_gpu(gpu, mask)                                                     \
	for (uint32_t gpu##_left = (mask), gpu;                                    \
		gpu##_left && ((gpu = (uint32_t)__builtin_ctz(gpu##_left)), true); \
		gpu##_left &= gpu##_left - 1)

struct sl_ledger_cell {
	uint64_t backing_bytes; /* created and committed */
	uint64_t granted_bytes; /* granted, not committed yet */
	/* Measured, not asked for through us, beyond what is paid */
	uint64_t hidden_bytes;
	/* Measured, too; paid by the reserve, so it counts nowhere else */
	uint64_t paid_bytes;
	uint64_t
		away_bytes; /* was measured when its process left the GPUs, contexts included */
	uint64_t held_bytes;    /* of backing: must not be evicted */
	uint64_t holding_bytes; /* of backing and granted: will be held once committed */
	uint64_t dying_bytes;   /* of dead clients, until the device shows them gone */
	uint64_t evicted_bytes; /* of backing: on the host */
	/* Of evicted: being restored; room on the GPU is reserved */
	uint64_t returning_bytes;
	/* Of backing on the GPU: being evicted, and there until it has gone */
	uint64_t leaving_bytes;
};

/* One workload. Zero-initialise; then sl_ledger_bind. */
struct sl_ledger_account {
	uint64_t request_bytes, limit_bytes; /* per GPU of gpu_mask */
	uint32_t gpu_mask;
	uint32_t touched; /* GPUs whose cell is not zero */
	bool stays;       /* nothing takes back what it has on a GPU */
	struct sl_ledger_cell cell[SL_LEDGER_GPUS_MAX];
};

/* One client. Zero-initialise and set account. */
struct sl_ledger_holding {
	struct sl_ledger_account *account; /* not owned */
	uint32_t touched;
	struct sl_ledger_cell cell[SL_LEDGER_GPUS_MAX];
};

struct sl_ledger_gpu {
	bool present;
	uint64_t capacity_bytes, reserve_bytes, unmanaged_bytes;
	uint64_t driver_bytes; /* of the reserve: for the driver itself */
	uint64_t requests_bytes, unclaimed_bytes, claims_bytes; /* sums over workloads */
	uint32_t workloads, burstable; /* bound here; of these, with limit > request */
	struct sl_ledger_cell sum;
};

struct sl_ledger {
	struct sl_ledger_gpu gpu[SL_LEDGER_GPUS_MAX];
	uint64_t evicted_bytes, leaving_bytes; /* of all GPUs: what the host pool holds */
	uint32_t fixed_gpus;                   /* nothing leaves these for the host */
};

/* --- changes --- */

/* Makes the GPU known, or changes its size. */
void sl_ledger_set_gpu(struct sl_ledger *ledger, uint32_t gpu, uint64_t capacity_bytes,
	uint64_t reserve_bytes, uint64_t driver_bytes);
void sl_ledger_set_unmanaged(struct sl_ledger *ledger, uint32_t gpu, uint64_t bytes);
/* Books request and limit on every GPU of gpu_mask. Does not check I1; admit does. */
void sl_ledger_bind(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint32_t gpu_mask, uint64_t request_bytes, uint64_t limit_bytes);
/* Changes the numbers of a bound account on the same GPUs. Does not check I1; the caller does. */
void sl_ledger_change(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint64_t request_bytes, uint64_t limit_bytes);
/* Gives up request and limit; what its clients hold stays booked. */
void sl_ledger_unbind(struct sl_ledger *ledger, struct sl_ledger_account *account);

/* Whether what it has on a GPU can be taken back. */
void sl_ledger_set_stays(
	struct sl_ledger *ledger, struct sl_ledger_account *account, bool stays);

void sl_ledger_grant(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Turns a grant of granted_bytes into used_bytes (<= granted_bytes) of backing; the rest goes
 * back. */
void sl_ledger_commit(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t granted_bytes, uint64_t used_bytes);
/* Marks granted or existing bytes as becoming held. */
void sl_ledger_hold(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* After sl_ledger_commit: of holding_bytes that were to become held, used_bytes are now held. */
void sl_ledger_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t holding_bytes, uint64_t used_bytes);
/* Sets all held bytes, clamped to backing, also when that shrinks later. */
void sl_ledger_set_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Returns the bytes actually removed: fewer if the account had fewer. */
SL_MUST_CHECK uint64_t sl_ledger_free(struct sl_ledger *ledger,
	struct sl_ledger_holding *holding, uint32_t gpu, uint64_t bytes);
void sl_ledger_set_backing(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Sets measured bytes that were not asked for through us. The reserve pays as many of them as it
 * has room for, and keeps paying these while they are measured. */
void sl_ledger_set_hidden(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Sets what it had there when its process left the GPUs; 0: it is there. Counts nowhere else. */
void sl_ledger_set_away(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Sets how much of its backing is on the host, clamped to backing, also when that shrinks. */
void sl_ledger_set_evicted(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Reserves room on the GPU for this many of its evicted bytes. */
void sl_ledger_set_returning(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Sets how many of its bytes on the GPU were told to leave. */
void sl_ledger_set_leaving(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Moves all that a living client has on the host, and the place of its contexts, to another GPU;
 * sl_ledger_is_gone on the first one. */
void sl_ledger_move(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t from, uint32_t to);
/* As sl_ledger_free, for bytes on the host. */
SL_MUST_CHECK uint64_t sl_ledger_free_evicted(struct sl_ledger *ledger,
	struct sl_ledger_holding *holding, uint32_t gpu, uint64_t bytes);
/* Marks all memory of the client as dying, on every GPU, uncommitted grants and hidden bytes
 * included. The reserve keeps paying its part until sl_ledger_release. */
void sl_ledger_die(struct sl_ledger *ledger, struct sl_ledger_holding *holding);
/* Lowers dying bytes to at most remaining_bytes, paid ones first; never raises them. */
void sl_ledger_release(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t remaining_bytes);

/* --- questions --- */

uint64_t sl_ledger_shareable(const struct sl_ledger *ledger, uint32_t gpu);
uint64_t sl_ledger_resident(const struct sl_ledger *ledger, uint32_t gpu);
uint64_t sl_ledger_free_bytes(const struct sl_ledger *ledger, uint32_t gpu);
/* max(0, resident + unclaimed - shareable): what stands on unclaimed requests. */
uint64_t sl_ledger_overlap(const struct sl_ledger *ledger, uint32_t gpu);
/* What the reserve can still pay. */
uint64_t sl_ledger_reserve_room(const struct sl_ledger *ledger, uint32_t gpu);
/* Of its away bytes, what the reserve has no room to pay now. */
uint64_t sl_ledger_entry(
	const struct sl_ledger *ledger, const struct sl_ledger_cell *cell, uint32_t gpu);
/* hidden + paid. */
uint64_t sl_ledger_measured(const struct sl_ledger_cell *cell);
/* The measured state breaks I1. More resident than shareable is not enough for that: contexts may
 * grow while a workload holds all there is. Its burst can then be taken back, and nothing is free
 * until it has been. */
bool sl_ledger_is_degraded(const struct sl_ledger *ledger, uint32_t gpu);
/* By how much I1 is broken. */
uint64_t sl_ledger_excess(const struct sl_ledger *ledger, uint32_t gpu);
/* backing - evicted + returning + granted + hidden: on the GPU, or with room reserved there */
uint64_t sl_ledger_live(const struct sl_ledger_cell *cell);
/* backing + granted + hidden, wherever it is */
uint64_t sl_ledger_all(const struct sl_ledger_cell *cell);
/* What an EVICT could move: backing on the GPU that is not held. */
uint64_t sl_ledger_evictable(const struct sl_ledger_cell *cell);
/* Nothing of a living client is on the GPU, and nothing has room reserved there. */
bool sl_ledger_is_gone(const struct sl_ledger_cell *cell);
/* The sum over the GPUs of the mask; cell is the array of an account or a holding. */
uint64_t sl_ledger_evictable_on(const struct sl_ledger_cell *cell, uint32_t mask);
/* hidden + held + holding: only the end of a process frees it. */
uint64_t sl_ledger_fixed(const struct sl_ledger_cell *cell);
uint64_t sl_ledger_use(const struct sl_ledger_account *account, uint32_t gpu);
uint64_t sl_ledger_here(const struct sl_ledger_account *account, uint32_t gpu);
/* The account's request on this GPU: 0 outside its mask. */
uint64_t sl_ledger_request(const struct sl_ledger_account *account, uint32_t gpu);
uint64_t sl_ledger_unclaimed(const struct sl_ledger_account *account, uint32_t gpu);
/* Its fixed bytes there; all that it has there if that stays. */
uint64_t sl_ledger_staying(const struct sl_ledger_account *account, uint32_t gpu);
/* What I1 counts for the account on this GPU: max(request, staying). */
uint64_t sl_ledger_claim(const struct sl_ledger_account *account, uint32_t gpu);
/* It has created memory, or may create some, on one of these GPUs. */
bool sl_ledger_holds(const struct sl_ledger_account *account, uint32_t mask);

/* --- audit: recomputes what the changes above keep up to date --- */

struct sl_ledger_audit {
	const struct sl_ledger *ledger;
	const struct sl_ledger_account *account; /* the open one */
	struct sl_ledger_cell mine[SL_LEDGER_GPUS_MAX];
	struct sl_ledger_gpu gpu[SL_LEDGER_GPUS_MAX];
};

/* Open each account in turn, give it its holdings, close it, then end. Returns 0, or 1 with the
 * first difference in err. */
void sl_ledger_audit_begin(struct sl_ledger_audit *audit, const struct sl_ledger *ledger);
void sl_ledger_audit_open(
	struct sl_ledger_audit *audit, const struct sl_ledger_account *account);
void sl_ledger_audit_holding(
	struct sl_ledger_audit *audit, const struct sl_ledger_holding *holding);
SL_MUST_CHECK int sl_ledger_audit_close(
	struct sl_ledger_audit *audit, struct sl_error *err);
SL_MUST_CHECK int sl_ledger_audit_end(
	struct sl_ledger_audit *audit, struct sl_error *err);

#endif
