/*
 * shadow - a second set of books and rules, kept from the node's events and actions
 *
 * It never sees the node's state, and shares no code with src/policy. Written to be plainly
 * right: arrays, loops, sums from scratch. It judges every action when it is emitted and
 * the whole state after every event. Sizes are bytes. One thread.
 *
 * Where the contract leaves the node a choice (when exactly a refused creation is retried,
 * which of several helpers goes first) the shadow checks bounds instead.
 */
#ifndef SL_SIM_SHADOW_H
#define SL_SIM_SHADOW_H

#include <stdio.h>

#include "policy/node.h"

/* More than the simulated world ever has; GPUs may have any number below. */
#define SHADOW_GPUS      8
#define SHADOW_WORKLOADS 48
#define SHADOW_CLIENTS   128
#define SHADOW_DEMANDS   256
#define SHADOW_STRANGERS 8

struct shadow_gpu {
	bool present, degraded, noted_degraded, lost, noted_lost;
	uint64_t capacity, reserve, unmanaged;
};

struct shadow_workload {
	bool used, leaving;
	uint64_t id, request, limit;
	uint32_t mask, flags, compute_pm;
	uint32_t repaid, repaid_told; /* GPUs whose reserve pays more of it now */
	int32_t priority;
	sl_ns wait_max;
	bool stop_asked, stop_told, stop_killed; /* by a person */
	sl_ns kill_at;
};

struct shadow_stranger {
	uint64_t id, bytes[SHADOW_GPUS];
	bool told, killed;
	sl_ns term_at, grace;
};

struct shadow_client {
	bool used, alive, expected;
	/* As last reported. */
	enum sl_client_condition condition;
	sl_ns condition_since, troubled_since; /* this one; the first without a break */
	bool busy, idle_proven;
	sl_ns pulse_at, busy_for, idle_for; /* as of pulse_at */
	enum sl_probe probe;
	sl_ns probed_at; /* told so */
	bool noted_untakeable;
	bool oom_told,
		oom_waits; /* told, and granted nothing since; and no burst since */
	/* Being stopped by `priority` or the last resort. */
	uint32_t stop_reason, stop_gpu;
	uint64_t stop_order;
	bool killed;
	sl_ns spared_until;    /* its stop was revoked */
	sl_ns unreached_until; /* could not be signalled: not again before */
	sl_ns term_at, kill_at, grace;
	uint64_t term_step; /* the event that it was told to end at */
	uint64_t id;
	struct shadow_workload *workload;
	sl_ns active;
	/* paid: measured bytes that the reserve pays; hidden: the rest */
	uint64_t backing[SHADOW_GPUS], hidden[SHADOW_GPUS], paid[SHADOW_GPUS],
		dying[SHADOW_GPUS];
	uint64_t held[SHADOW_GPUS]; /* of backing: held, must not be evicted */
};

struct shadow_demand {
	bool used, granted, entitled, over_limit;
	bool noted_entitled, noted_burst, refused_ever, released_since, cancelled;
	struct shadow_client *client;
	uint64_t ask, epoch, bytes, order;
	uint32_t gpu;
	sl_ns arrived, burst_since, refused_at, refused_first;
	bool was_entitled; /* at any time since it came */
	bool is_void;      /* granted on a GPU that was lost since */
	bool held, there;  /* as asked for */
};

/* What became of the demands that were within their workload's request at any time. */
struct shadow_outcomes {
	uint64_t demands, granted, denied[SL_REASONS];
	uint64_t fell; /* answered as a burst: siblings or measurement took the request */
	uint64_t died; /* with their process, unanswered */
	uint64_t wait; /* until now */
};

struct shadow {
	sl_ns now, wait_max, head_pass, idle_wait, recover_wait, recover_until, wake;
	uint32_t chain;
	sl_ns stop_idle, stop_grace, untakeable_after;
	enum sl_last_resort last_resort;
	enum sl_placement placement;
	enum sl_unmanaged unmanaged;
	struct shadow_stranger stranger[SHADOW_STRANGERS];
	struct shadow_gpu gpu[SHADOW_GPUS];
	struct shadow_workload workload[SHADOW_WORKLOADS];
	struct shadow_client client[SHADOW_CLIENTS];
	struct shadow_demand demand[SHADOW_DEMANDS];
	uint64_t next_order, last_epoch, last_action;
	uint32_t clients_top, demands_top; /* slots ever used */

	/* Of the running event. */
	uint64_t steps; /* events until now */
	struct sl_event event;
	bool answered;  /* ADMIT, REFUSE or SET_DONE seen */
	uint32_t views; /* seen, per GPU, of the event's workload */
	uint32_t views_expected;
	uint64_t view_workload;
	uint64_t left_client,
		left_bytes; /* a LEFT is expected for this client; 0: none */
	uint32_t notes[SL_REASONS];
	uint32_t notes_expected[SL_REASONS];

	/* For the promise that memory grows only when something is added. */
	uint32_t workloads, clients, demands, demands_begun;
	uint32_t most_workloads, most_clients, most_demands, most_strangers;
	size_t arena_bytes;

	struct shadow_outcomes outcomes;
	char failed[400]; /* empty while all is well; the first failure stays */
};

/* Forgets all but nothing else: a fresh node. Sizes come by CONFIG and GPU_ADD. */
void shadow_init(struct shadow *shadow);
/* Before the node steps, each action as it comes, after it has stepped. */
void shadow_before(struct shadow *shadow, sl_ns now, const struct sl_event *event);
void shadow_action(struct shadow *shadow, const struct sl_action *action);
/* Of a dead client so much is left there; its reserve pays others. */
void shadow_release(struct shadow *shadow, struct shadow_client *client, uint32_t gpu,
	uint64_t remaining_bytes);
void shadow_after(struct shadow *shadow, const struct sl_node *node, size_t arena_bytes);

/* As of now; demands that wait are counted as such, and grants that are open as granted. */
struct shadow_outcomes shadow_outcomes(const struct shadow *shadow);

/* The books in words, for the reader of a failure (shadow_print.c). */
void shadow_print(const struct shadow *shadow, FILE *out);

/* --- the books, for the rules and for the world --- */
/* Do the demand's bytes count as the client's? */
bool shadow_is_charged(const struct shadow_demand *d);
/* Is this an ASK that may be granted: of a living client, for bytes on a GPU of its workload? */
bool shadow_knows_ask(const struct shadow_client *c, const struct sl_event *e);
struct shadow_client *shadow_client(struct shadow *shadow, uint64_t id);
struct shadow_workload *shadow_workload(struct shadow *shadow, uint64_t id);
uint64_t shadow_shareable(const struct shadow *shadow, uint32_t gpu);
uint64_t shadow_free(const struct shadow *shadow, uint32_t gpu);
uint64_t shadow_held(
	const struct shadow *shadow, const struct shadow_client *client, uint32_t gpu);
uint64_t shadow_use(
	const struct shadow *shadow, const struct shadow_workload *w, uint32_t gpu);
/* hidden and held bytes, with grants of held memory */
uint64_t shadow_fixed(
	const struct shadow *shadow, const struct shadow_workload *w, uint32_t gpu);
bool shadow_is_recovering(const struct shadow *shadow);
void shadow_fail(struct shadow *shadow, const char *format, ...) SL_PRINTF(2, 3);

/* Updates which GPUs are degraded and which demands entitled, after the books changed
 * within a step. */
void shadow_refresh(struct shadow *shadow);

/* --- the rules (shadow_rules.c) --- */
/* The node is woken at `at` at the latest. */
void shadow_check_wake(struct shadow *shadow, sl_ns at, const char *what);
bool shadow_is_before(const struct shadow_demand *a, const struct shadow_demand *b);
/* The bytes are there for it by the rules of entitled and burst; its limit is not checked. */
bool shadow_fits(const struct shadow *shadow, const struct shadow_demand *demand);
/* The demand is for held memory, and others' requests leave no room for it. If its bytes exist
 * already, all claims of others count. */
bool shadow_is_over_promise(
	const struct shadow *shadow, const struct shadow_demand *demand);
/* The demand with all bytes that wait before it, and not entitled if siblings do. */
struct shadow_demand shadow_behind(
	const struct shadow *shadow, const struct shadow_demand *demand);
/* Certainly also when all that wait before it have got theirs. */
bool shadow_fits_behind(const struct shadow *shadow, const struct shadow_demand *demand);
/* It is not tried again yet, after the driver refused it. sure: certainly; otherwise: possibly. */
bool shadow_backs_off(
	const struct shadow *shadow, const struct shadow_demand *demand, bool sure);
bool shadow_counts_as_waiting(
	const struct shadow *shadow, const struct shadow_client *client);
/* Marks (by slot) the clients of the hopeless set; returns how many. */
uint32_t shadow_hopeless(
	const struct shadow *shadow, bool stuck[SHADOW_CLIENTS], bool sure);
/* The victim that the rule picks among the hopeless; NULL if none may be denied. */
const struct shadow_demand *shadow_victim(
	const struct shadow *shadow, const bool stuck[SHADOW_CLIENTS]);
/* Whether free bytes may be kept from this demand for another one. */
bool shadow_may_be_kept(const struct shadow *shadow, const struct shadow_demand *demand);
void shadow_check_grant(struct shadow *shadow, const struct shadow_demand *demand);
void shadow_check_deny(
	struct shadow *shadow, const struct shadow_demand *demand, enum sl_reason reason);
void shadow_check_waits(struct shadow *shadow, const struct sl_action *note);
void shadow_check_state(struct shadow *shadow);
/* --- for shadow_action.c (shadow.c) --- */
struct shadow_demand *shadow_find_ask(struct shadow *s, uint64_t client, uint64_t ask);
void shadow_count_end(
	struct shadow *s, const struct shadow_demand *d, enum sl_reason reason);
void shadow_refresh_degraded(struct shadow *s);
void shadow_drop(struct shadow *s, struct shadow_demand *d);
/* --- stopping (shadow_stop.c) --- */
bool shadow_has_resolver(const struct shadow *shadow, enum sl_resolver resolver);
sl_ns shadow_wait_max(const struct shadow *shadow, const struct shadow_demand *demand);
/* The borrower may stand on the owner's unclaimed request: it can be stopped for it. */
bool shadow_lends(const struct shadow *shadow, const struct shadow_workload *borrower,
	const struct shadow_workload *owner);
/* The same for this demand. */
bool shadow_lends_to(const struct shadow *shadow, const struct shadow_demand *demand,
	const struct shadow_workload *owner);
/* Processes that have memory there are being stopped. */
bool shadow_is_stopping(const struct shadow *s, uint32_t gpu);
/* With dying memory, or also with that of processes being stopped, the demand would fit. */
bool shadow_comes_back(const struct shadow *shadow, const struct shadow_demand *demand,
	enum sl_reason reason);
/* Whether this client was told to end by the resolvers, and may still be counted on: for 10 s after
 * SIGKILL. */
bool shadow_is_going(const struct shadow *shadow, const struct shadow_client *client);
bool shadow_stops_for(const struct shadow *shadow, const struct shadow_demand *demand);
bool shadow_is_untakeable(
	const struct shadow *shadow, const struct shadow_client *client);
bool shadow_may_be_untakeable(
	const struct shadow *shadow, const struct shadow_client *client);
bool shadow_has_untakeable(
	const struct shadow *shadow, const struct shadow_workload *w, bool sure);
void shadow_check_untakeable(struct shadow *shadow, const struct shadow_demand *demand);
void shadow_check_untakeable_note(struct shadow *shadow, const struct sl_action *note);
void shadow_check_stop(struct shadow *shadow, const struct sl_action *action);
void shadow_check_revoked(struct shadow *shadow, const struct sl_action *note);
void shadow_check_probe(struct shadow *shadow, const struct sl_action *action);
void shadow_check_stopping(struct shadow *shadow);
/* --- changes, lost GPUs, strangers (shadow_change.c) --- */
void shadow_check_set_refused(struct shadow *shadow, const struct sl_action *action);
void shadow_set_done(struct shadow *shadow, const struct sl_action *action);
void shadow_lose(struct shadow *shadow, uint32_t gpu);
void shadow_on_stranger(struct shadow *shadow, const struct sl_event *event);
/* Strangers that were told to end, and are spared if the settings change. */
void shadow_let_off(struct shadow *shadow);
void shadow_check_stop_stranger(struct shadow *shadow, const struct sl_action *action);
uint32_t shadow_strangers(const struct shadow *shadow);
void shadow_check_strangers(struct shadow *shadow);
/* --- admission (shadow_admit.c) --- */
uint64_t shadow_bytes(struct sl_amount amount, uint64_t shareable);
/* max(request, fixed) of a workload on a GPU, and the fixed bytes alone. */
uint64_t shadow_claim(const struct shadow *shadow, const struct shadow_workload *w,
	uint32_t gpu, uint64_t *fixed);
/* The compute requests of others, without `but`, leave room for this one. */
bool shadow_has_time(const struct shadow *shadow, const struct shadow_workload *but,
	uint32_t compute_pm, uint32_t gpu);
void shadow_check_admit(struct shadow *shadow, const struct sl_action *action);
void shadow_check_refuse(struct shadow *shadow, const struct sl_action *action);

#endif
