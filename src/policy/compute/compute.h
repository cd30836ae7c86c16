/*
 * compute - which workload may give its GPUs work now
 *
 * Workloads with compute shares take turns of some milliseconds, called slices here; the memory of
 * all of them stays where it is. A slice belongs to a workload, so all its processes may submit. It
 * ends when each of them reports that its gate is closed and its work has ended. The time from the
 * start to that report is charged, so a kernel that outlasts its slice is paid by its own workload.
 *
 * The next slice goes to the waiting workload with the least charged time by weight (stride
 * scheduling). Its weight is its request, or an equal part of what the requests leave. A workload
 * that waits for several GPUs keeps later ones from starting on them.
 *
 * A workload that has been alone for a second has its GPUs without an end until another wants them.
 * What it uses alone is not charged. A GPU is metered only while it has two workloads and one of
 * them has a share, or a strict limit. On other GPUs nothing is gated.
 *
 * Pure: no clock, no I/O, no allocation; the caller owns the structs. Shares are thousandths of a
 * GPU's time, 0: not set. Steps cost O(workloads^2).
 */
#ifndef SL_POLICY_COMPUTE_COMPUTE_H
#define SL_POLICY_COMPUTE_COMPUTE_H

#include "base/clock.h"
#include "base/list.h"

#define SL_COMPUTE_WHOLE 1000u

enum sl_compute_mode {
	/* The limit holds while others want the GPU */
	SL_COMPUTE_FAIR = 0,
	/* It always holds */
	SL_COMPUTE_STRICT,
};

enum sl_compute_order {
	SL_COMPUTE_OFF,   /* submit as you like; no answer */
	SL_COMPUTE_SHUT,  /* end the slice, or stay shut; answered by an end */
	SL_COMPUTE_SLICE, /* submit for span; an end follows */
	SL_COMPUTE_OPEN,  /* submit until SHUT */
};

struct sl_compute_workload;

struct sl_compute_client {
	struct sl_link link; /* of its workload */
	struct sl_compute_workload *workload;
	uint64_t order; /* number of the last order */
	bool metered;   /* it got an order other than OFF */
	bool open;      /* it has not reported the end of its last order */
	bool wants;
};

struct sl_compute_workload {
	struct sl_link link, clients;
	uint32_t gpu_mask;
	uint32_t request_pm, limit_pm;
	sl_ns passed; /* charged time, divided by the weight */
	bool metered, runs, endless;
	sl_ns since;     /* the slice is charged from here on */
	sl_ns shut_by;   /* the slice is taken away then; SL_NS_NEVER: it has no end */
	sl_ns rivals_at; /* when another workload last wanted a GPU of it */
	int64_t credit;  /* what the limit leaves, nanoseconds */
	sl_ns credit_at;
	/* For people: time in slices, now and in the last whole period. */
	sl_ns period_at, period_used, used;
	/* So far: time in slices that end, and in endless ones, which competed with nothing. */
	sl_ns had, had_alone;
	bool fresh; /* has not been compared with the others since it began to want */
};

struct sl_compute_node {
	struct sl_link workloads;
	enum sl_compute_mode mode;
	sl_ns slice;    /* length */
	sl_ns patience; /* how long an end may be late */
	uint64_t orders;
	/* Called in sl_compute_step(), which it must not call. span: of a SLICE. */
	void (*send)(void *context, struct sl_compute_client *client,
		enum sl_compute_order order, sl_ns span);
	void *context;
};

void sl_compute_init(struct sl_compute_node *compute);
/* gpu_mask and shares are set; they may be changed before any step. */
void sl_compute_add(
	struct sl_compute_node *compute, struct sl_compute_workload *workload);
/* Its clients have left. Does nothing if it was not added. */
void sl_compute_remove(struct sl_compute_workload *workload);
void sl_compute_join(
	struct sl_compute_workload *workload, struct sl_compute_client *client);
/* It died, or its connection is lost, which opens its gate. Does nothing if it has not joined. */
void sl_compute_leave(struct sl_compute_client *client);
/* It wants to submit. */
void sl_compute_want(struct sl_compute_client *client);
/* Its work of that order has ended. wants: it would have gone on. */
void sl_compute_end(struct sl_compute_client *client, uint64_t order, bool wants);
/* Decides. Returns when to step again at the latest, SL_NS_NEVER: after an event only. */
sl_ns sl_compute_step(struct sl_compute_node *compute, sl_ns now);
/* Do others' requests of a GPU's time leave less than that? Without a request: no. */
static inline bool sl_compute_is_full(uint32_t others_pm, uint32_t request_pm)
{
	return request_pm && others_pm + request_pm > SL_COMPUTE_WHOLE;
}
/* What it used lately, thousandths of the time; UINT32_MAX: not metered. */
uint32_t sl_compute_used_pm(const struct sl_compute_workload *workload, sl_ns now);
/* `had` and `had_alone`, the running slice included. */
sl_ns sl_compute_had(const struct sl_compute_workload *workload, bool alone, sl_ns now);

#endif
