/*
 * node_state - what a node knows; private to src/policy/node*.c
 *
 * Objects live in the arena and are recycled through free lists, so a steady population takes no
 * new memory. Who may touch what: node.c takes events apart, node_workloads.c changes workloads,
 * node_gpus.c GPUs and settings, node_clients.c clients and their demands, node_contexts.c the
 * reserve, node_settle.c decides who gets memory and who waits, node_resolve.c who is stopped,
 * node_facts.c keeps what is known of clients' work; node_swap.c gives orders to evict and
 * restore and takes their answers, node_pieces.c lets one come while another still leaves,
 * node_turns.c decides who comes, node_look.c and node_leave.c who leaves for him, node_pool.c
 * knows the host's memory, node_park.c parks, node_warm.c what idles for long, node_waited.c
 * counts waits; node_waits.c and node_view.c only read.
 */
#ifndef SL_POLICY_NODE_STATE_H
#define SL_POLICY_NODE_STATE_H

#include "policy/books/index.h"
#include "policy/books/pool.h"
#include "policy/node.h"
#include "policy/verdicts/deadlock.h"
#include "policy/verdicts/evict.h"
#include "policy/verdicts/turns.h"
#include "policy/verdicts/victims.h"

/* Sums of spans, and bytes times nanoseconds, that 64 bits do not hold. */
__extension__ typedef unsigned __int128 sl_node_wide;

/* How long an EVICT may wait for submitted work, where nothing else is configured. */
#define SL_NODE_DRAIN (2 * SL_S)
/* A waiting demand is announced once after this long (design.md section 4). */
#define SL_NODE_NOTE_AFTER (1 * SL_S)
/* Retries after a driver refusal: the first soon, since a dead process' memory usually comes
 * back within tens of milliseconds; then doubling up to the second value. */
#define SL_NODE_RETRY_FIRST (20 * SL_MS)
#define SL_NODE_RETRY_MOST  (500 * SL_MS)

struct sl_node_member { /* a workload */
	struct sl_index_node index;
	struct sl_link of_node, clients; /* clients: living and dying */
	struct sl_ledger_account account;
	struct sl_deadlock_claim claim;
	uint32_t living;
	uint32_t waiting; /* demands of its clients in queues */
	/* See node_waited.c: clients that want back or are to come back, and what was counted of
	 * waits so far. */
	uint32_t wanting;
	bool waits_now;
	sl_ns waits_since, waited;
	uint64_t waits, denials;
	int32_t priority;
	uint32_t owner, flags; /* flags: SL_WORKLOAD_* */
	sl_ns wait_max;        /* its own longest wait of a burst; 0: the node's */
	bool leaving;          /* removed, but clients of it still hold memory */
	bool stopping;         /* somebody asked for its end: it gets no more memory */
	/* Among the node's, until its processes are gone, or were killed and had time to end. */
	struct sl_link ending;
	bool killed; /* or removed: nobody is killed any more */
	sl_ns kill_at;
	uint32_t actual_mask; /* GPUs its clients ever held, asked or were measured on */
	uint32_t untakeable;  /* clients */
	/* Scratch of an outlook: what those of its clients hold that are being stopped, and what
	 * its demands are to get. */
	uint64_t seen_in, going_bytes, promised_bytes;

	/* Swap; see node_turns.c and node_park.c. */
	sl_ns warm_after; /* 0: never */
	sl_ns idle_grace; /* 0: within its request, too, it takes turns with bursts */
	sl_ns turn_began; /* when all of it that wants to run became resident, or its first grant */
	bool turn_over; /* one of it was taken since, when nothing of the turn was left */
	/* All that it had when the turn began: as much as it has grown by since is moved for its
	 * next demand, so that what grows piece by piece costs few moves. */
	uint64_t began_bytes;
	uint64_t turns;                 /* it had so far */
	sl_ns promoted_at, share_ended; /* share_ended: its last turn of min_share */
	bool promoted; /* in, or before, a turn that no priority ends: min_share */
	bool parked, resuming; /* resuming: still parked, until its request fits */
	bool park_told;        /* that all of it is on the host was noted */
	bool warm_told;        /* that there is no room for it on the host was noted */
	bool long_told;        /* that its turns are short for what they cost was noted */
	uint64_t parked_bytes; /* the request that it gave up */
	sl_ns resumed_at;      /* its return was asked for: first come, first served */
	struct sl_link of_parked;
	/* Scratch, of sl_node_sets. */
	sl_ns cost; /* of moving all of it out and in; 0: it has nothing that moves */
	bool competes;
	uint32_t
		asks_mask; /* of its waiting demands; asks_bytes is good where it is set */
	uint64_t asks_bytes[SL_NODE_GPUS_MAX];
	struct sl_node_member *next_spare;
};

enum sl_node_stopping {
	SL_NODE_LIVES,
	SL_NODE_TERMED,
	SL_NODE_KILLED,
	SL_NODE_STUBBORN, /* killed, and did not go: nobody counts on it any more */
	SL_NODE_UNREACHED /* could not be signalled: the same, for a while */
};

/* The one open EVICT or RESTORE of a client. */
struct sl_node_order {
	uint64_t id; /* of the action; 0: none is open */
	bool restores, aborted;
	bool part;  /* a RESTORE of less than there is; see node_pieces.c */
	bool ahead; /* an EVICT of more than was lacking: it goes on when that is there */
	uint64_t out_bytes; /* of this GPU on the host when it was given */
	uint32_t gpu;
	enum sl_reason reason; /* of an EVICT: EVICTED_FOR, EVICTED_IDLE, PARK_BEGINS */
	uint64_t bytes, other;
	/* Of an EVICT: the client that lacks memory; and its demand, 0: it wants back what is on
	 * the host. */
	uint64_t lacker, lacker_demand;
	uint64_t had_bytes; /* backing of the client there when it was given */
	sl_ns since, idle;
};

struct sl_node_client {
	struct sl_index_node index;
	struct sl_link of_member;
	struct sl_node_member *member;
	struct sl_ledger_holding holding;
	struct sl_deadlock_party party; /* linked while waiting > 0; waits: see settle */
	uint32_t waiting;               /* demands in queues */
	sl_ns active_at; /* last work, free, commit, grant; or when it began to wait */
	bool alive, expected;
	bool told_oom;  /* OOM_FIRST: had its first refusal, and no burst since */
	bool told_held; /* that it says to hold more than it may was noted */

	/* What it and the system say of its work; see node_facts.c. */
	struct sl_link of_suspects; /* while it may become, or is, untakeable */
	enum sl_client_condition condition;
	sl_ns condition_at;
	sl_ns pulse_at, idle, busy; /* as of pulse_at; they go on by themselves */
	bool proven, untakeable;
	enum sl_probe probe;
	sl_ns proves_since;  /* with PROBE_PROVE: when it was asked for */
	uint32_t prove_mask; /* GPUs on which its stop hangs on a proof of its idleness */

	/* Swap; see node_swap.c. */
	struct sl_link
		of_out; /* among the node's, while something of it is on the host or moves */
	bool swaps, wants;
	bool reports; /* is telling what it has: no orders before it has told all */
	bool returns; /* room is kept on all its GPUs, and it is restored on one after the other */
	bool comes_back; /* it was resumed: is restored though nobody asks */
	uint32_t is_out; /* GPUs of which something is on the host */
	uint32_t
		came_back; /* GPUs of which something was restored, since all of it was there */
	uint32_t
		told_out; /* GPUs of which it reported something on the host, while it reports */
	struct sl_node_order order;
	sl_ns wants_since;
	sl_ns resident_at; /* all of it came back */
	uint64_t seen_in,
		asked_in; /* the look that saw it lack something; that wants its idleness proven */
	uint32_t place; /* in the order of that look */
	/* Why what would have to leave for it may not go to the pool, by the last look; NONE: it
	 * may. */
	struct sl_node_because pool_lacks;
	bool pool_told; /* that the pool has no room for what it waits for was noted */
	sl_ns refused_until; /* no EVICT before: the last one was refused */
	sl_ns let_go_at;     /* an EVICT of which nothing had moved was taken back */
	sl_ns restore_at;    /* no RESTORE before */
	bool is_part_in; /* a part of it came back, or is to, for the rest to follow */
	/* Somebody left for it, and the rest is on its way: it comes before all others */
	bool is_exchanged;
	/* Who lacked memory when it last left anything; see node_pieces.c. */
	uint64_t left_for, left_for_demand;
	uint64_t part_least;  /* no RESTORE of a part of less: its chunks are larger */
	uint64_t helpless_in; /* the look that found nothing to help it, so far */
	uint64_t unhelped_in; /* the look that could move nobody to bring it back */
	uint32_t refusals,
		failures; /* EVICTs refused, RESTOREs failed, without a success in between */
	enum sl_reason
		refused_for;  /* the last of these EVICTs; NONE: for nothing that lasts */
	sl_ns refused_since;  /* the first was given */
	uint64_t chunk_bytes; /* an EVICT may move more by less than that */
	uint64_t store_bytes; /* made for it on the host */
	uint64_t trim_bytes;  /* it was told to give back so many */
	sl_ns trim_until; /* and is waited for until then; then its copies count as lost */
	uint32_t trims_in_vain; /* such waits that were in vain, in a row */

	/* Its being stopped; see node_resolve.c. */
	struct sl_link of_stops;
	enum sl_node_stopping stopping;
	sl_ns spared_until; /* its stop was revoked: not told again before */
	sl_ns stop_due;     /* KILL, giving up on it, or trying again */
	struct sl_node_because stop;
	struct sl_node_client *next_spare;
};

/* Who holds most above its request on a GPU; [1]: the next one, for a demand of [0]'s own. */
struct sl_node_borrowers {
	uint64_t as_of; /* node->books when it was found out */
	uint64_t id[2], burst_bytes[2];
};

/* What the other workloads of higher priority than this have not claimed of a GPU. */
struct sl_node_lent {
	uint64_t as_of;
	int32_t priority;
	uint64_t bytes;
};

/* How far a GPU may be lent out. */
struct sl_node_lend_cache {
	uint64_t as_of, bytes;
};

/* Who competes on which GPUs, and how long turns are there. */
struct sl_node_sets {
	uint64_t as_of; /* node->books, and node->now, when it was found out */
	sl_ns at;
	uint32_t set_of
		[SL_NODE_GPUS_MAX]; /* the lowest GPU that is joined with this one */
	struct sl_turns_unit unit[SL_NODE_GPUS_MAX]; /* by set */
	int32_t highest[SL_NODE_GPUS_MAX]; /* priority of those that compete, by set */
};

/* What the longest waits follow from: sums over all workloads, so that asking for those of all is
 * not a walk over all for each. By set, but bytes: by GPU. */
struct sl_node_longest {
	uint64_t as_of;   /* node->books when it was found out */
	uint32_t crowded; /* sets in which not all that compete fit together */
	uint64_t stays_bytes[SL_NODE_GPUS_MAX]; /* what nobody can move now */
	uint64_t hostless_bytes
		[SL_NODE_GPUS_MAX]; /* of the rest: what the host has no memory for */
	uint64_t graced_bytes
		[SL_NODE_GPUS_MAX]; /* what is kept from bursts while it works */
	uint32_t competing[SL_NODE_GPUS_MAX];
	sl_node_wide turns[SL_NODE_GPUS_MAX], costs[SL_NODE_GPUS_MAX]; /* of these */
	uint32_t bursting
		[SL_NODE_GPUS_MAX]; /* of these; the others, within their requests: */
	sl_node_wide within_turns[SL_NODE_GPUS_MAX], within_costs[SL_NODE_GPUS_MAX];
};

/* What walks over all workloads found out; no state, and true as long as no bytes move. */
struct sl_node_caches {
	struct sl_node_sets sets;
	struct sl_node_longest longest;
	struct sl_node_borrowers borrowers[SL_NODE_GPUS_MAX];
	struct sl_node_lent lent[SL_NODE_GPUS_MAX];
	struct sl_node_lent given_up[SL_NODE_GPUS_MAX]; /* see node_look.c */
	struct sl_node_lend_cache lend[SL_NODE_GPUS_MAX];
	struct sl_pool pool; /* see node_pool.c */
	uint64_t pool_as_of;
};

struct sl_node_queue { /* of one GPU */
	struct sl_link waiting;
	struct sl_demand *head; /* NULL when empty; never dangling */
	uint32_t count,
		backing_off; /* backing_off: an upper bound, see sl_node_released */
	bool degraded, lost; /* lost: never degraded, and nothing waits */
	bool fresh;  /* a burst demand came, or became one, that was not looked at yet */
	bool proves; /* some clients are to prove their idleness for it */
	bool stops; /* others were told to end for one that waits, when the resolvers saw it last */
	/* Room that demands which come after this place in the order must leave; see
	 * node_turns.c. */
	uint64_t kept_bytes;
	struct sl_turns_place kept_from;
	uint64_t exchange_bytes;          /* room that all demands must leave */
	uint64_t out_bytes_s, in_bytes_s; /* of the link; 0: unknown */
	sl_ns resolve_at; /* when time alone may let the resolvers do more */
};

/* The first context of a process on a GPU; see node_contexts.c. */
struct sl_node_context {
	struct sl_link of_node; /* in the order of arrival */
	struct sl_node_client *client;
	uint64_t ask, epoch; /* epoch: of the grant; 0: it waits */
	uint32_t gpu;
	bool noted;
	sl_ns since;
};

struct sl_node_stranger { /* a process that we do not manage */
	struct sl_index_node index;
	uint64_t bytes[SL_NODE_GPUS_MAX];
	bool noted, stopping, killed;
	sl_ns kill_at;
	struct sl_node_stranger *next_spare;
};

struct sl_node {
	struct sl_arena *arena;
	struct sl_ledger ledger;
	struct sl_pool pool; /* its sizes alone: node_pool.c fills in the rest */
	struct sl_node_queue queue[SL_NODE_GPUS_MAX];
	struct sl_index members, clients, strangers;
	struct sl_link ending;               /* workloads told to end */
	struct sl_link all_members, parties; /* parties: clients with waiting demands */
	struct sl_link contexts, spare_contexts; /* asked for, and not made yet */
	sl_ns wait_max, head_pass, idle_wait, recover_wait;
	uint32_t chain; /* as given by CONFIG: 0 is `wait` alone */
	sl_ns stop_idle, stop_grace, untakeable_after;
	enum sl_last_resort last_resort;
	enum sl_placement placement;
	enum sl_unmanaged unmanaged;
	uint32_t expected;   /* clients not heard of yet after a restart */
	sl_ns recover_until; /* nothing is granted before, while expected > 0 */

	/* What settle has to look at again. */
	uint32_t dirty_mask; /* GPUs whose books changed */
	bool deadlock_dirty, timers_dirty;
	uint32_t gave_way; /* demands, in this step */
	/* A step ends, whatever is left to decide; see node_settle.c. */
	uint32_t
		serves; /* of GPUs since the step's last decision; a round: one of each */
	sl_ns goes_on_at; /* the last one was cut short: no decision before; 0: it was not */
	sl_ns due, told_due; /* next deadline; the one last emitted as WAKE_AT */
	sl_ns stops_due;     /* the next of those that nobody waits for */
	/* Counts up when bytes or promises may have changed: with every event and grant. */
	uint64_t books;
	struct sl_action
		left; /* of the client that left in this step, until it is told */
	struct sl_node_caches *caches;

	/* Stopping. */
	uint32_t resolve_mask;    /* GPUs the resolver has to look at */
	struct sl_link stops;     /* clients being stopped */
	struct sl_link unreached; /* clients that could not be signalled lately */
	struct sl_link suspects;  /* clients that are, or may become, untakeable */
	uint32_t untakeable;      /* clients */
	uint32_t pressed_mask;    /* GPUs where an entitled demand waits for long */
	uint32_t owed_mask; /* the same of who wants back what is within his request */
	bool probes_dirty;  /* who is to be probed may have changed */
	uint64_t outlooks;  /* stamp of the last one */
	uint32_t clients_count;    /* dying ones too */
	struct sl_victim *victims; /* scratch with room for every client */
	uint32_t victims_room;

	/* Swap. */
	uint64_t pool_member_bytes;
	sl_ns turn_max;
	uint32_t min_share_pm;
	sl_ns evict_drain;
	struct sl_link out;    /* clients with something on the host, or an open order */
	struct sl_link parked; /* workloads, parked or resuming */
	uint32_t warms;        /* workloads with a warm_after */
	uint32_t promotions;   /* workloads that are promoted */
	bool swap_dirty;       /* who comes and leaves has to be looked at */
	sl_ns swap_due;        /* when time alone may change that */
	uint64_t looks;        /* stamp of the last one */
	bool looked;           /* it went through those that wait */
	bool contended; /* somebody lacks memory that others have: idleness matters */
	uint32_t asked; /* clients whose idleness the last look wants proven */
	bool retimes;   /* a longest wait is over, and is looked at once more */
	struct sl_node_unit *units; /* scratch */
	uint32_t units_room;
	struct sl_node_promise *promises; /* scratch */
	uint32_t promises_room;
	struct sl_evict_candidate *candidates; /* scratch with room for every client */

	uint64_t next_sequence, next_epoch, next_action;
	struct sl_node_member *spare_members;
	struct sl_node_client *spare_clients;
	struct sl_node_stranger *spare_strangers;
	struct sl_link spare_demands; /* by their queue link */

	/* Of the step that is running. */
	sl_ns now;
	sl_action_fn emit;
	void *emit_context;
};

#define SL_NODE_ENTRY(index_node, type) SL_CONTAINER_OF(index_node, struct type, index)

/* Waits of CONFIG may be "for ever". */
static inline sl_ns sl_node_later(sl_ns at, sl_ns span)
{
	return span > SL_NS_NEVER - at ? SL_NS_NEVER : at + span;
}

static inline void sl_node_is_on(struct sl_node_member *member, uint32_t gpu)
{
	member->actual_mask |= 1u << gpu;
}

/* --- node.c --- */
void sl_node_emit(struct sl_node *node, struct sl_action action);
void sl_node_note(struct sl_node *node, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes);
void sl_node_note_because(struct sl_node *node, const struct sl_node_because *because);
/* Bytes of this GPU changed hands. */
void sl_node_touch(struct sl_node *node, uint32_t gpu_mask);
/* Drops a leaving workload that no client refers to any more (node_workloads.c). */
void sl_node_forget_member(struct sl_node *node, struct sl_node_member *member);
struct sl_node_member *sl_node_find_member(const struct sl_node *node, uint64_t id);
struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id);
/* NULL, and noted as STRAY, of one that is dead or was never there. */
struct sl_node_client *sl_node_find_living(struct sl_node *node, uint64_t id);

/* --- node_workloads.c --- */
void sl_node_on_workload_add(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_remove(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_set(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_stop(struct sl_node *node, const struct sl_event *event);
/* Kills the workloads whose grace is over; returns when the next one's will be. */
sl_ns sl_node_time_stops(struct sl_node *node);

/* --- node_gpus.c --- */
void sl_node_on_config(struct sl_node *node, const struct sl_event *event);
void sl_node_on_gpu_add(struct sl_node *node, const struct sl_event *event);
void sl_node_on_gpu_lost(struct sl_node *node, const struct sl_event *event);
void sl_node_on_unmanaged(struct sl_node *node, const struct sl_event *event);

/* --- node_strangers.c --- */
void sl_node_on_stranger(struct sl_node *node, const struct sl_event *event);
/* What CONFIG says of them may be something else now. */
void sl_node_judge_strangers(struct sl_node *node);
/* The GPU is lost, and they have nothing on it. */
void sl_node_lose_strangers(struct sl_node *node, uint32_t gpu);
/* The same as sl_node_time_stops, of processes that we do not manage. */
sl_ns sl_node_time_strangers(struct sl_node *node);

/* --- node_facts.c --- */
void sl_node_on_pulse(struct sl_node *node, const struct sl_event *event);
void sl_node_on_condition(struct sl_node *node, const struct sl_event *event);
/* It submitted work. */
void sl_node_is_busy(struct sl_node *node, struct sl_node_client *client);
/* As of now; 0: not. */
sl_ns sl_node_idle(const struct sl_node *node, const struct sl_node_client *client);
sl_ns sl_node_busy(const struct sl_node *node, const struct sl_node_client *client);
/* Its idleness is known to be true. */
bool sl_node_is_proven(const struct sl_node_client *client);
/* Notes who becomes untakeable, or no longer is. Returns the next deadline. */
sl_ns sl_node_time_suspects(struct sl_node *node);
/* Nothing is known or wanted of it any more. */
void sl_node_forget_facts(struct sl_node *node, struct sl_node_client *client);
/* Emits PROBE where another mode is wanted than the client was last told. */
void sl_node_probe(struct sl_node *node);

/* --- node_resolve.c --- */
/* The chain, taken apart. */
bool sl_node_waits_at_all(const struct sl_node *node);
bool sl_node_has_priority(const struct sl_node *node);
/* What a resolver could do on this GPU may have changed. */
void sl_node_reconsider(struct sl_node *node, uint32_t gpu_mask);
/* The resolvers and the last resort, on one GPU: stops, and denies what nothing can help. */
void sl_node_resolve(struct sl_node *node, uint32_t gpu);
/* The same for those that the look before could not bring back, as far as they are within their
 * requests. Sets node->swap_due. */
void sl_node_resolve_returns(struct sl_node *node);
/* KILL after the grace, unless the need went away. Returns the next deadline. */
sl_ns sl_node_time_victims(struct sl_node *node);
void sl_node_on_stop_failed(struct sl_node *node, const struct sl_event *event);
void sl_node_stop_ended(struct sl_node *node, struct sl_node_client *client);
/* When the longest wait of this burst is over. */
sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_demand *demand);

/* --- node_outlook.c; what only resolvers need of it is in node_outlook.h --- */
/* It was told to end, and nobody gave up on it: what it holds is coming. */
bool sl_node_is_going(const struct sl_node_client *client);
/* Room in the scratch for one more client. */
void sl_node_make_room(struct sl_node *node);

/* --- node_clients.c --- */
void sl_node_on_client_join(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_report(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_reported(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_exit(struct sl_node *node, const struct sl_event *event);
void sl_node_on_released(struct sl_node *node, const struct sl_event *event);
void sl_node_on_ask(struct sl_node *node, const struct sl_event *event);
void sl_node_on_cancel(struct sl_node *node, const struct sl_event *event);
void sl_node_on_commit(struct sl_node *node, const struct sl_event *event);
void sl_node_on_create_failed(struct sl_node *node, const struct sl_event *event);
void sl_node_on_freed(struct sl_node *node, const struct sl_event *event);
void sl_node_on_work(struct sl_node *node, const struct sl_event *event);
void sl_node_on_held(struct sl_node *node, const struct sl_event *event);
void sl_node_on_hidden(struct sl_node *node, const struct sl_event *event);
/* Its workload's processes see other numbers on this GPU, if at least so many of them live. */
void sl_node_tell_view(struct sl_node *node, struct sl_node_member *member, uint32_t gpu,
	uint32_t if_living);

/* node_contexts.c */
struct sl_admit_gpu;
/* Whether one more context may come to the GPU, of a workload with a request or without: the
 * reserve has room for it, or each workload can still be whole beside it. A request is guaranteed
 * and a burst is not, so a context of the first kind takes the place of those that have no request.
 * Fills in context_bytes, reserve_bytes and crowded. O(clients). */
void sl_node_context_facts(const struct sl_node *node, uint32_t gpu, bool has_request,
	struct sl_admit_gpu *facts);
/* ASK, CANCEL, COMMIT and the end of the client, where they are about a context. CANCEL and COMMIT:
 * false: they are not. */
void sl_node_ask_context(struct sl_node *node, struct sl_node_client *client,
	const struct sl_event *event);
bool sl_node_cancel_context(
	struct sl_node *node, const struct sl_node_client *client, uint64_t ask);
bool sl_node_made_context(
	struct sl_node *node, const struct sl_node_client *client, uint64_t epoch);
void sl_node_drop_contexts(struct sl_node *node, const struct sl_node_client *client);
/* Grants and denies contexts that wait; returns the next deadline. */
sl_ns sl_node_time_contexts(struct sl_node *node);
/* Tells why the contexts of the client wait. */
void sl_node_why_contexts(const struct sl_node *node, const struct sl_node_client *client,
	sl_node_because_fn fn, void *context);
/* None waits that could be granted. */
SL_MUST_CHECK int sl_node_check_contexts(
	const struct sl_node *node, struct sl_error *err);
/* The reserve of the GPU may have room again: it pays what it had none for. O(clients). */
void sl_node_repay(struct sl_node *node, uint32_t gpu);
struct sl_node_client *sl_node_client_of(const struct sl_demand *demand);
/* Turns a waiting demand into a grant, or into a DENY. */
void sl_node_grant(struct sl_node *node, struct sl_demand *demand);
void sl_node_deny(struct sl_node *node, struct sl_demand *demand, enum sl_reason reason);
/* The same where somebody else than the largest borrower stands in the way (0: nobody). */
void sl_node_deny_for(struct sl_node *node, struct sl_demand *demand,
	enum sl_reason reason, struct sl_node_because other);
/* The GPU is lost: the workload's open grants there are void, its dying bytes released; clients of
 * it that have nothing left are forgotten, and so may be the workload. */
void sl_node_lose(struct sl_node *node, struct sl_node_member *member, uint32_t gpu);
/* Gives the workload another priority, and its demands the places that go with it. */
void sl_node_reprioritize(
	struct sl_node *node, struct sl_node_member *member, int32_t priority);
/* Denies all that waits of a workload that is being removed. */
void sl_node_cancel_all(struct sl_node *node, struct sl_node_member *member);
/* Physical memory came back on this GPU: creations that the driver refused are worth another
 * try at once. */
void sl_node_released(struct sl_node *node, uint32_t gpu);

/* --- node_settle.c --- */
/* Decides until nothing is left to decide, or for as many rounds as a step may take, then sets
 * node->due. */
void sl_node_settle(struct sl_node *node);
bool sl_node_is_recovering(const struct sl_node *node);
/* `priority` can take back what this workload stands on. */
bool sl_node_may_stand(const struct sl_node *node, const struct sl_node_member *member);
/* How far this demand may stand on unclaimed requests of others: the pool's part, and what can be
 * taken back from it by `priority`. */
uint64_t sl_node_lend_to(const struct sl_node *node, const struct sl_demand *demand);

/* --- node_swap.c --- */
/* The chain has `swap`, and there is a pool: demands and wants move others. */
bool sl_node_swaps(const struct sl_node *node);
/* Something of it is on the host, it moves, or it is parked: it is served by coming back, not by a
 * grant. */
bool sl_node_is_away(const struct sl_node_client *client);
/* It is there and able to carry out an order: not stopped, traced, silent or untakeable. */
bool sl_node_answers(const struct sl_node_client *client);
/* It can be told to evict sooner or later: it knows how, and may. */
bool sl_node_may_leave(const struct sl_node *node, const struct sl_node_client *client);
/* And now: it has no open order or grant. */
bool sl_node_can_leave(const struct sl_node *node, const struct sl_node_client *client);
/* Orders. The caller has made sure that the pool has room for bytes. */
void sl_node_evict(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes, enum sl_reason reason, uint64_t other, sl_ns idle);
/* Keeps room on all its GPUs, and begins. */
void sl_node_bring_back(struct sl_node *node, struct sl_node_client *client);
void sl_node_abort(struct sl_node *node, struct sl_node_client *client);
/* RESTORE of so many bytes, whose room is kept. */
void sl_node_restore(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes);
/* After changes of its bytes: in or out of node->out. */
void sl_node_sort_out(struct sl_node *node, struct sl_node_client *client);
/* It is dead, or forgotten. */
void sl_node_forget_swap(struct sl_node *node, struct sl_node_client *client);
/* It reported on this GPU; it has reported all. */
void sl_node_reports_out(struct sl_node *node, struct sl_node_client *client);
/* Copies of others go first: false if that takes a while, and this look is to be made again. */
bool sl_node_trim_for(
	struct sl_node *node, struct sl_node_client *client, uint64_t bytes);
uint64_t sl_node_copies(const struct sl_node_client *client);
/* Something of it is on the host no more: what it was asked for in vain it may be able to give
 * now. */
void sl_node_has_less_out(const struct sl_node *node, struct sl_node_client *client);
/* How long moving the bytes takes. */
sl_ns sl_node_cost_out(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
sl_ns sl_node_cost_in(const struct sl_node *node, uint32_t gpu, uint64_t bytes);

/* It comes back for so long that it may have been stopped since: it is looked at, now or as soon as
 * it is late. */
void sl_node_expect_back(struct sl_node *node, const struct sl_node_client *client);
/* Its order is looked after: its process once that is late, and until then when it will be, so long
 * after it was given. */
void sl_node_expect(struct sl_node *node, const struct sl_node_client *client,
	bool is_late, sl_ns span);
bool sl_node_returns_late(
	const struct sl_node *node, const struct sl_node_client *client);

/* --- node_pieces.c --- */
/* After how many bytes an EVICT of so many is to say how far it is; 0: not at all. */
uint64_t sl_node_piece(const struct sl_node *node, uint32_t gpu, uint64_t bytes);
void sl_node_on_moved(struct sl_node *node, const struct sl_event *event);
/* GPUs that somebody is leaving for others, and of which he gave a part already. */
uint32_t sl_node_flowing(const struct sl_node *node);
/* What it needs is on its way, and so many bytes of it are there: how many of them to begin with.
 * 0: it waits. */
uint64_t sl_node_part(const struct sl_node *node, const struct sl_node_client *client,
	uint32_t gpu, int64_t free_bytes);
void sl_node_bring_part(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes);
/* Of a part that was answered, if it was one: something came back, or no chunk was so small. */
void sl_node_part_done(struct sl_node_client *client, const struct sl_node_order *order);
/* Something has left by this EVICT: for whom it did has its place before all others until all of it
 * is back. */
void sl_node_left_for(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_order *order);
/* It left for a burst demand, and others are leaving for that: it does not come before it for being
 * within its request. */
bool sl_node_is_behind(const struct sl_node *node, const struct sl_node_client *client);
/* Nothing more leaves for the demand: who left for it has his own place again, for good, so that
 * looks at turns come to an end. */
void sl_node_moves_no_more(struct sl_node *node, const struct sl_demand *demand);

/* --- node_turns.c --- */
/* Who comes back, who leaves for whom. Sets node->swap_due. */
void sl_node_take_turns(struct sl_node *node);
/* Room that this demand must leave to those before it. */
uint64_t sl_node_kept_from(const struct sl_node *node, const struct sl_demand *demand);

/* It wants to come back: a thread stands at its gate, or needs more, or it was resumed. */
bool sl_node_wants_back(const struct sl_node_client *client);
/* Its process goes on: who is stopped would have room kept for him for as long as that lasts. */
bool sl_node_can_come_back(const struct sl_node_client *client);
/* Since when; SL_NS_NEVER: it does not. */
sl_ns sl_node_wants_since(const struct sl_node_client *client);
/* --- node_look.c; what only node_turns.c needs of it is in node_look.h --- */
/* `swap` stands before `wait`, or there is no `wait`. */
bool sl_node_swaps_at_once(const struct sl_node *node);

/* --- node_leave.c --- */
/* That the host has no memory for it is the last that was heard of it, not long ago; and it is not
 * being asked again now. */
bool sl_node_is_hostless(const struct sl_node *node, const struct sl_node_client *client);
/* Within its request it keeps what it has from bursts, as long as it works. */
bool sl_node_has_grace(const struct sl_node_member *member);
/* Who competes with whom, as of now. O(workloads) the first time. */
const struct sl_node_sets *sl_node_sets(const struct sl_node *node);
sl_ns sl_node_turn_of(const struct sl_node *node, const struct sl_node_member *member);
/* What is left of its turn. */
sl_ns sl_node_turn_left(const struct sl_node *node, const struct sl_node_member *member);
void sl_node_begin_turn(const struct sl_node *node, struct sl_node_member *member);
/* What it has more than when its turn began. */
uint64_t sl_node_grown(const struct sl_node_member *member);
bool sl_node_holds_something(const struct sl_node_member *member);
/* Its turn is not over, and all of it is there: what it asks for is part of the turn. */
bool sl_node_is_growing(const struct sl_node *node, const struct sl_node_client *client);
/* *endless: why it is SL_NS_NEVER. */
sl_ns sl_node_longest_wait(const struct sl_node *node,
	const struct sl_node_member *member, enum sl_endless *endless);
/* Of the workload on the GPU, what nobody can move now: it has to end, or to be released, first. */
uint64_t sl_node_stays_on(const struct sl_node_member *member, uint32_t gpu);
/* Its wait has no bound because of what nobody can move: what that is, and whose. O(workloads). */
bool sl_node_endless_because(const struct sl_node *node,
	const struct sl_node_member *member, struct sl_node_because *because);
/* A workload that can be all on the GPU now, and never again with so much more there that never
 * leaves it; but_bursts: one with a request. NULL: there is none. O(workloads). */
const struct sl_node_member *sl_node_not_whole_beside(
	const struct sl_node *node, uint32_t gpu, uint64_t more_bytes, bool but_bursts);
/* It is back, wanted to be since then (SL_NS_NEVER: it did not), and has what is left of the turn
 * of another of its workload; else its own begins. O(clients of the workload). */
bool sl_node_joins_turn(const struct sl_node *node, const struct sl_node_client *client,
	sl_ns wants_since);
/* For how long it has been idle, as far as it is known; since it came back at most. */
sl_ns sl_node_settled_idle(
	const struct sl_node *node, const struct sl_node_client *client);
/* Somebody of higher priority competes with it. */
bool sl_node_is_below_others(
	const struct sl_node *node, const struct sl_node_member *own);
/* Says once of each whose turns are short for what they cost. */
void sl_node_note_long(struct sl_node *node);
/* Ends the turns of min_share that are over, or that nobody wants any more. O(workloads) while
 * there is one. */
void sl_node_end_promotions(struct sl_node *node);
struct sl_node_asker {
	const struct sl_node_client *client;
	uint32_t place; /* in the order */
	bool own_too;   /* others of its own workload may leave where nobody else helps */
};
/* Lists in node->candidates who could leave the GPU for it, and chooses. */
struct sl_evict_plan sl_node_choose_leavers(struct sl_node *node,
	const struct sl_node_asker *asker, uint32_t gpu, const struct sl_evict_ask *ask,
	uint32_t *count);

/* --- node_pool.c --- */
/* The pool as it is, for demands and moves of these GPUs: it keeps room for those who are half
 * there elsewhere. O(workloads + clients that swap) after bytes moved. */
struct sl_pool sl_node_pool_for(const struct sl_node *node, uint32_t gpus);
/* What it can still take at all. */
uint64_t sl_node_pool_there(const struct sl_node *node);
/* How far the GPU may be lent out beyond its unclaimed requests; 0 where nothing is swapped. */
uint64_t sl_node_lend(const struct sl_node *node, uint32_t gpu);
/* What of the workload may leave the GPU though nobody needs the room. */
uint64_t sl_node_room_to_go(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu);
/* All of the workload that could still be told to leave, and how much of that the pool takes. */
struct sl_node_all_out {
	uint64_t bytes, room_bytes;
};
struct sl_node_all_out sl_node_all_out(const struct sl_node *node,
	const struct sl_node_member *member, bool gives_up_request);
/* The workload's own part of the pool: at most so much more. */
uint64_t sl_node_pool_share(
	const struct sl_node *node, const struct sl_node_member *member);
/* How much more of what it has above its request could be moved there. */
uint64_t sl_node_lend_share(
	const struct sl_node *node, const struct sl_node_member *member);
/* Of the pool, what a burst demand of the client for so many bytes may move there: so much that
 * afterwards each of those that take turns can still change places with others, whose memory goes
 * there before his comes back. O(clients). */
uint64_t sl_node_room_and_back(const struct sl_node *node,
	const struct sl_node_client *asker, uint32_t gpu, uint64_t bytes);

/* --- node_warm.c --- */
void sl_node_time_warm(struct sl_node *node);
/* It has been idle for long enough, and there is no room for it on the host: false if that is not
 * so. */
bool sl_node_warm_because(const struct sl_node *node, const struct sl_node_client *client,
	struct sl_node_because *because);

/* --- node_park.c --- */
/* Evicts what is parked, resumes what fits. True: a request was claimed again. */
bool sl_node_time_parked(struct sl_node *node);
void sl_node_unpark(struct sl_node *node, struct sl_node_member *member);
/* Why all of a client goes to the host although nobody waits for the room. */
struct sl_node_going {
	enum sl_reason reason;
	sl_ns again_after; /* when to look again where the pool has no room */
};
/* One order at a time. Returns whether something of it is still to leave. */
bool sl_node_send_away(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_going *how);
/* Its bytes there that could go to the host. */
uint64_t sl_node_to_leave(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu);
/* It has such bytes, or an order. */
bool sl_node_is_leaving(const struct sl_node *node, const struct sl_node_client *client);
/* To be parked, and not gone yet. */
bool sl_node_is_parking(const struct sl_node *node, const struct sl_node_client *client);
/* And has refused, or does not answer. */
bool sl_node_parks_late(const struct sl_node *node, const struct sl_node_client *client);

/* --- node_swap.c, events --- */
void sl_node_on_pool_size(struct sl_node *node, const struct sl_event *event);
void sl_node_on_link_cost(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_park(struct sl_node *node, const struct sl_event *event);
void sl_node_on_workload_resume(struct sl_node *node, const struct sl_event *event);
void sl_node_on_client_evicted(struct sl_node *node, const struct sl_event *event);
void sl_node_on_want(struct sl_node *node, const struct sl_event *event);
void sl_node_on_done(struct sl_node *node, const struct sl_event *event);
void sl_node_on_store(struct sl_node *node, const struct sl_event *event);
void sl_node_on_chunk(struct sl_node *node, const struct sl_event *event);

/* --- node_waited.c --- */
/* After each change of what a workload waits for. O(1). */
void sl_node_count_wait(const struct sl_node *node, struct sl_node_member *member);
/* Whether a client stands at its gate, and whether it is to come back though nobody asks. */
void sl_node_set_wants(const struct sl_node *node, struct sl_node_client *client,
	bool wants, bool comes_back);
/* With the one that goes on; neither ever goes back. */
uint64_t sl_node_waits_of(
	const struct sl_node *node, const struct sl_node_member *member);
sl_ns sl_node_waited_of(const struct sl_node *node, const struct sl_node_member *member);

/* --- node_waits.c --- */
/* Why this waiting demand waits now, with all numbers of the sentence. O(workloads)
 * for the first demand after bytes moved. */
struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_demand *demand);
/* What its request waits for, by the first GPU where it does not fit. */
struct sl_node_because sl_node_resume_because(
	const struct sl_node *node, const struct sl_node_member *member);
/* What would have to leave for this client may not go to the host: says so instead of why it waits
 * otherwise. */
bool sl_node_waits_for_pool(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because);
/* Why this client, of which something is on the host, is not back. */
struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client);
/* Why this client, of which something is still there, is not parked yet. */
struct sl_node_because sl_node_parking_because(
	const struct sl_node *node, const struct sl_node_client *client);
/* Of a waiting demand: who wants how much of what, and what there is for it; no reason yet. */
struct sl_node_because sl_node_numbers(
	const struct sl_node *node, const struct sl_demand *demand);
/* Bytes that this demand could have now at most: a burst has nothing of others' requests, nor of
 * what is kept for those before it. To an entitled one, all that is free. */
uint64_t sl_node_available(const struct sl_node *node, const struct sl_demand *demand);
/* Fills in the other workload that bursts most on the GPU. */
void sl_node_name_borrower(const struct sl_node *node, struct sl_node_because *because);
/* Found out once as long as no bytes move. */
const struct sl_node_borrowers *sl_node_borrowers_of(
	const struct sl_node *node, uint32_t gpu);

#endif
