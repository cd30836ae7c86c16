/*
 * ledger - who has how many bytes on which GPU, and what was promised to whom
 *
 * Pure bookkeeping: no clock, no I/O, no locks. Sizes are backing bytes. Three levels hold the
 * same numbers (a cell): a client (holding), its workload (account) and the GPU (sum); a
 * change goes through all three at once, and the derived sums of a GPU are kept up to date so
 * that every question is O(1). All amounts from outside are clamped to SL_LEDGER_BYTES_MAX, so
 * that no sum can wrap.
 *
 *   shareable   capacity - reserve - unmanaged
 *   paid        of what was measured of a client (context, code, stacks), what the reserve pays:
 *               first come, first paid; hidden is the rest, and paid <= reserve - driver
 *   use(w)      backing + granted + hidden of the workload's living clients, wherever they are:
 *               what its limit holds for
 *   here(w)     what of it is on the GPU, or has its room kept there: use - evicted + returning
 *   resident    sum of here + dying
 *   free        shareable - resident
 *   unclaimed   max(0, request(w) - here(w))
 *   fixed(w)    hidden + held; held is the part of backing that must not be evicted
 *   claims      sum over workloads of max(request, fixed); I1: claims <= shareable
 *
 * What is fixed is part of here: I1 says that all that was promised can be had by taking back what
 * is above requests and not fixed. So overlap <= here above max(request, fixed) + dying, wherever
 * I1 holds.
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
	uint64_t
		hidden_bytes; /* measured, not asked for through us, beyond what is paid */
	uint64_t
		paid_bytes; /* measured too; the reserve pays them, so they count nowhere */
	uint64_t held_bytes;    /* of backing: must not be evicted */
	uint64_t holding_bytes; /* of backing and granted: will be held once committed */
	uint64_t dying_bytes;   /* of dead clients, until the device shows them gone */
	uint64_t evicted_bytes; /* of backing: on the host */
	uint64_t
		returning_bytes; /* of evicted: being restored; their room on the GPU is kept */
	/* Of backing on the GPU: being evicted; on the GPU until they are gone */
	uint64_t leaving_bytes;
};

/* One workload. Zero-initialise; then sl_ledger_bind. */
struct sl_ledger_account {
	uint64_t request_bytes, limit_bytes; /* per GPU of gpu_mask */
	uint32_t gpu_mask;
	uint32_t touched; /* GPUs whose cell may be other than zero */
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
	uint64_t driver_bytes; /* of the reserve: the driver's own */
	uint64_t requests_bytes, unclaimed_bytes, claims_bytes; /* sums over workloads */
	uint32_t workloads, burstable; /* bound here; those with limit > request */
	struct sl_ledger_cell sum;
};

struct sl_ledger {
	struct sl_ledger_gpu gpu[SL_LEDGER_GPUS_MAX];
	uint64_t evicted_bytes,
		leaving_bytes; /* of all GPUs: what the host pool is for */
};

/* --- changes --- */

/* Makes the GPU known, or changes its size. */
void sl_ledger_set_gpu(struct sl_ledger *ledger, uint32_t gpu, uint64_t capacity_bytes,
	uint64_t reserve_bytes, uint64_t driver_bytes);
void sl_ledger_set_unmanaged(struct sl_ledger *ledger, uint32_t gpu, uint64_t bytes);
/* Books request and limit on every GPU of gpu_mask. No check of I1: that is admit's. */
void sl_ledger_bind(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint32_t gpu_mask, uint64_t request_bytes, uint64_t limit_bytes);
/* Other numbers for a bound account, on the same GPUs. No check of I1: that is the caller's. */
void sl_ledger_change(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint64_t request_bytes, uint64_t limit_bytes);
/* Gives request and limit up; what its clients hold stays booked. */
void sl_ledger_unbind(struct sl_ledger *ledger, struct sl_ledger_account *account);

void sl_ledger_grant(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Turns a grant of granted_bytes into used_bytes (<= granted_bytes) of backing; the rest, all
 * of it for 0, goes back. */
void sl_ledger_commit(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t granted_bytes, uint64_t used_bytes);
/* Bytes that were granted, or are there, are to become held. */
void sl_ledger_hold(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Of so many bytes that were to become held, used_bytes (<= holding_bytes) are; after
 * sl_ledger_commit. */
void sl_ledger_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t holding_bytes, uint64_t used_bytes);
/* All that is held. More than backing counts as that: also when backing shrinks later. */
void sl_ledger_set_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Returns the bytes really taken off: less than asked where the account had less. */
SL_MUST_CHECK uint64_t sl_ledger_free(struct sl_ledger *ledger,
	struct sl_ledger_holding *holding, uint32_t gpu, uint64_t bytes);
void sl_ledger_set_backing(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Measured: so many bytes that nobody asked for through us. The reserve pays them as far as it has
 * room; what was paid stays paid while it is measured. */
void sl_ledger_set_hidden(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Of its backing so many bytes are on the host. More than backing counts as that: also when backing
 * shrinks. */
void sl_ledger_set_evicted(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* Room for so many of its evicted bytes is kept on the GPU. */
void sl_ledger_set_returning(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* So many of its bytes on the GPU were told to leave. */
void sl_ledger_set_leaving(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes);
/* As sl_ledger_free, of bytes that are on the host. */
SL_MUST_CHECK uint64_t sl_ledger_free_evicted(struct sl_ledger *ledger,
	struct sl_ledger_holding *holding, uint32_t gpu, uint64_t bytes);
/* Everything the client has on any GPU, uncommitted grants and hidden bytes too, is dying; what
 * the reserve pays it pays until that is released. */
void sl_ledger_die(struct sl_ledger *ledger, struct sl_ledger_holding *holding);
/* At most remaining_bytes are still there, paid ones first; never makes them more. */
void sl_ledger_release(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t remaining_bytes);

/* --- questions --- */

uint64_t sl_ledger_shareable(const struct sl_ledger *ledger, uint32_t gpu);
uint64_t sl_ledger_resident(const struct sl_ledger *ledger, uint32_t gpu);
uint64_t sl_ledger_free_bytes(const struct sl_ledger *ledger, uint32_t gpu);
/* resident + unclaimed - shareable, or 0: what stands on requests nobody has claimed yet. */
uint64_t sl_ledger_overlap(const struct sl_ledger *ledger, uint32_t gpu);
/* What the reserve can still pay. */
uint64_t sl_ledger_reserve_room(const struct sl_ledger *ledger, uint32_t gpu);
/* hidden + paid: what was measured. */
uint64_t sl_ledger_measured(const struct sl_ledger_cell *cell);
/* The GPU's measured state breaks I1. More resident than can be shared is not that: what somebody's
 * contexts have grown by while he holds all there is can be taken back from him, and until then
 * nothing is free. */
bool sl_ledger_is_degraded(const struct sl_ledger *ledger, uint32_t gpu);
/* By how much. */
uint64_t sl_ledger_excess(const struct sl_ledger *ledger, uint32_t gpu);
/* backing - evicted + returning + granted + hidden: on the GPU, or with its room kept there */
uint64_t sl_ledger_live(const struct sl_ledger_cell *cell);
/* backing + granted + hidden, wherever they are */
uint64_t sl_ledger_all(const struct sl_ledger_cell *cell);
/* What an EVICT could move: backing on the GPU that is not held. */
uint64_t sl_ledger_evictable(const struct sl_ledger_cell *cell);
/* The same on all GPUs of the mask together; cell is an account's or a holding's array. */
uint64_t sl_ledger_evictable_on(const struct sl_ledger_cell *cell, uint32_t mask);
/* hidden + held, with what is about to be held: what only the end of a process gives back. */
uint64_t sl_ledger_fixed(const struct sl_ledger_cell *cell);
uint64_t sl_ledger_use(const struct sl_ledger_account *account, uint32_t gpu);
uint64_t sl_ledger_here(const struct sl_ledger_account *account, uint32_t gpu);
/* The account's request on this GPU: 0 outside its mask. */
uint64_t sl_ledger_request(const struct sl_ledger_account *account, uint32_t gpu);
uint64_t sl_ledger_unclaimed(const struct sl_ledger_account *account, uint32_t gpu);
/* What promise I1 counts for the account on this GPU: the larger of request and fixed. */
uint64_t sl_ledger_claim(const struct sl_ledger_account *account, uint32_t gpu);

/* --- audit: recomputes what the changes above kept up to date --- */

struct sl_ledger_audit {
	const struct sl_ledger *ledger;
	const struct sl_ledger_account *account; /* the open one */
	struct sl_ledger_cell mine[SL_LEDGER_GPUS_MAX];
	struct sl_ledger_gpu gpu[SL_LEDGER_GPUS_MAX];
};

/* Open one account after the other, give each its holdings, then end. Each returns 0, or 1
 * with the first difference in err. */
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
