/*
 * internal - what the scheduler remembers; for this folder only
 *
 * Objects of the API are kept by name, as plain values. Each pod that this scheduler is to place
 * belongs to a job (its gang, or itself alone), and each job is one of the cluster machine's. The
 * handlers of watches only change objects and put jobs on the list `changed`; before each cycle
 * sl_ks_settle() tells the machine of what has changed, and what the machine decides is carried out
 * afterwards. So the order in which events come decides nothing.
 *
 *   objects   maps by name, and their lists
 *   nodes     Node and ResourceSlice to nodes of the machine; which kinds of node there are
 *   claims    ResourceClaim: what is allocated, whoever did it
 *   pods      Pod: what it wants, where it stands
 *   jobs      jobs of the machine, made anew whenever they are not what pods and claims say
 *   groups    PodGroup: how many of a gang must run together
 *   projects  Project and KAI's Queue to projects of the machine; what is wrong with them
 *   drive     the machine, its cycles and its actions
 *   write     the calls that place a pod
 *   order     the calls that park, resume and evict it
 *   tell      conditions of pods that wait
 *   lease     which of several replicas decides
 *
 * What is taken of a GPU is what claims have, as the API server says; and until a write of our own
 * is known to have failed, what it would take. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_INTERNAL_H

#include "base/arena.h"
#include "base/list.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/scheduler/facts.h"
#include "cluster/kubernetes/scheduler/scheduler.h"
#include "cluster/kubernetes/api/watch.h"
#include "policy/books/index.h"
#include "policy/cluster.h"

#define SL_KS_NODES_MOST    16384u
#define SL_KS_PROJECTS_MOST 4096u
/* Kinds of node that rules of pods tell apart: pools of the machine. */
#define SL_KS_KINDS 31u
/* Writes under way at a time that place pods; with calls that look at what came of others. */
#define SL_KS_WRITES 20u
#define SL_KS_CALLS  500u
/* Between namespace and name of a gang's job, by labels or by a PodGroup; no name of a pod has a
 * colon. */
#define SL_KS_GANG     "gang:"
#define SL_KS_GROUP    "group:"
#define SL_KS_NAME_MAX (2 * SL_FACTS_NAME)

enum sl_ks_watch {
	SL_KS_WATCH_NODES = 0,
	SL_KS_WATCH_SLICES,
	SL_KS_WATCH_CLAIMS,
	SL_KS_WATCH_PODS,
	SL_KS_WATCH_PROJECTS,
	SL_KS_WATCH_QUEUES,
	SL_KS_WATCH_GROUPS,
	SL_KS_WATCHES
};

/* First member of what stands in a map. key is owned. */
struct sl_ks_named {
	char *key;
};

struct sl_ks_gpu {
	char name[64];
	uint32_t memory_mib, limit_mib;
	bool is_closed;
	/* A job of the machine that keeps others off a closed GPU, and its size. */
	uint64_t filler;
	uint16_t filler_milli;
	int32_t taken; /* thousandths, by pods and claims, as the machine was told */
};

/* A Node, a node's slice, or both; or a name that something stands on. */
struct sl_ks_node {
	struct sl_ks_named named;
	struct sl_link link;
	uint64_t id;
	bool is_there, has_slice; /* Node and slice exist */
	struct sl_facts_node facts;
	json_t *labels; /* of match.h */
	char pool[SL_FACTS_NAME];
	bool swaps;
	/* GPUs keep their numbers as long as the machine does. */
	struct sl_ks_gpu gpu[SL_FIT_GPUS_MAX];
	uint32_t gpus;
	uint64_t others_cpu, others_mib; /* pods that this scheduler has not placed */
	uint32_t pods;                   /* that stand here, all of them */
	sl_ns spared_until; /* it did not answer: none of its pods is a victim before */
	uint64_t holds;     /* the marks of the rules that hold of it, summed up */
	uint32_t kind;
	/* What the machine was told. */
	bool in_machine, told_closed, told_swaps;
	uint32_t told_cpu, told_mib, told_gpus, told_gpu_mib;
	uint8_t told_model;
};

/* Where something stands. */
struct sl_ks_place {
	struct sl_ks_node *node;
	uint32_t gpu_mask;
	uint16_t milli; /* of each */
};

/* Rules of match.h. */
struct sl_ks_rules {
	struct sl_ks_named named; /* their text */
	struct sl_link link;
	json_t *json;
	uint64_t mark;  /* theirs alone */
	uint64_t kinds; /* of which all nodes satisfy them */
	uint32_t pods;
};

struct sl_ks_pod;

struct sl_ks_claim {
	struct sl_ks_named named;
	struct sl_link link;
	bool is_there;
	struct sl_facts_claim facts;
	struct sl_ks_pod *pod; /* that it is allocated to, or the first that names it */
	bool is_named_again;   /* others do, too */
	/* A job of the machine for what is allocated to no pod of ours. */
	uint64_t holder;
	struct sl_ks_place held;
	bool is_changed;
	struct sl_link changed;
};

/* What the machine believes of a pod's task. */
enum sl_ks_believed {
	SL_KS_NOTHING = 0, /* it has none */
	SL_KS_QUEUED,
	SL_KS_PLACED, /* from BIND or TASK_RUNS on, until it is known to be gone */
	SL_KS_PARKED,
};

enum sl_ks_step {
	SL_KS_IDLE = 0,
	SL_KS_WAITS_FOR_TURN, /* what was written so far is known */
	SL_KS_CREATE,         /* the claim for its limits */
	SL_KS_KNOW_CLAIM,     /* the pod's status names that */
	SL_KS_PROTECT,        /* the claim's finalizer */
	SL_KS_ALLOCATE,       /* the claim's status */
	SL_KS_BIND,
	SL_KS_LOOK_CLAIM, /* what became of a write is unknown */
	SL_KS_LOOK_POD,
};

struct sl_ks_job;

struct sl_ks_pod {
	struct sl_ks_named named;
	struct sl_link link, in_job;
	struct sl_ks *ks;
	bool is_there;
	struct sl_facts_pod facts;
	json_t *extended; /* of extended.h, or NULL */
	struct sl_ks_rules *rules;
	struct sl_ks_claim *claim; /* whose pod it is, or NULL */
	struct sl_ks_job *job;
	sl_ns since; /* it waits */

	/* Where it stands; node NULL: nowhere yet. */
	struct sl_ks_place place;
	bool is_bound;
	/* It is counted there; what it takes, too, if it is another scheduler's. */
	struct sl_ks_node *counted;
	uint32_t counted_cpu, counted_mib;

	enum sl_ks_believed believed;
	struct sl_ks_place believed_at;
	uint32_t task;
	struct sl_need told_need; /* of that task */
	bool told_stops;

	/* write.c */
	enum sl_ks_step step;
	struct sl_link turn;
	struct sl_kube_call *call;
	struct sl_kube_backoff backoff;

	/* order.c */
	bool wants_parked, wants_end; /* as the machine decided */
	bool is_ordered;              /* to park: what was written last */
	bool is_ordering;             /* what is being written, or is_ordered */
	bool is_parked;               /* and the node has confirmed it */
	bool resumes;                 /* the node has not confirmed that yet */
	bool is_evicted;
	sl_ns stops_since;        /* to be parked, or to end; 0: it is not */
	sl_ns spared_until;       /* it did not park in time: no victim before */
	bool is_node_silent;      /* nor is any other of its node */
	const char *order_reason; /* of the condition */
	char order_why[400];
	struct sl_kube_call *order_call;
	struct sl_kube_backoff order_backoff;

	/* tell.c */
	char trouble[256]; /* of a write that was refused */
	struct sl_kube_call *tell_call;
	uint32_t told; /* checksum of the text */
	uint32_t told_kind;
	sl_ns told_at;
};

/* A gang, or a pod alone. */
struct sl_ks_job {
	struct sl_ks_named named;
	struct sl_link link, changed, pods;
	bool is_gang;
	struct sl_index_node index; /* id 0: not in the machine */
	/* What the machine was told. */
	uint64_t project;
	int32_t priority;
	uint32_t flags, least, tasks;
	struct sl_ks_pod **task; /* by number */
	bool is_refused;
	struct sl_pending_because because;
	char why[192]; /* it is not in the machine: because of this, or "" */
};

struct sl_ks_project {
	struct sl_ks_named named;
	struct sl_link link;
	struct sl_ks *ks;
	uint64_t id;
	json_t *object; /* as the API server has it, or NULL */
	json_t *queue; /* KAI's of that name (queue.h), or NULL; it counts where object is NULL */
	int64_t left; /* of its quota, thousandths of a GPU, for Queues below it */
	/* Of what is wrong; "": nothing. */
	char trouble[256], warning[256];
	struct sl_kube_call *call;
	int visited; /* 1: with what is above it; 2: done */
};

struct sl_ks {
	struct sl_kube_scheduler_options options;
	sd_event *loop;
	sd_event_source *timer, *teller;
	struct sl_kube *kube;
	struct sl_kube *lease_kube; /* its own: calls of others never keep it waiting */
	struct sl_kube_watch *watch[SL_KS_WATCHES];
	uint32_t synced;
	struct sl_ks_lease *lease;
	bool ends; /* in order */

	void *nodes_by_name, *claims_by_name, *pods_by_name, *jobs_by_name,
		*rules_by_text, *projects_by_name, *spaces_by_name,
		*groups_by_name; /* of tsearch(3) */
	struct sl_link nodes, claims, pods, jobs, rules, projects, groups;
	struct sl_link changed_jobs, changed_claims;
	struct sl_ks_project nameless; /* project default, where there is no Project */
	struct sl_ks_project *putting; /* it is being told to the machine */

	struct sl_arena *arena; /* the machine's */
	struct sl_index jobs_by_id;
	struct sl_cluster *cluster;
	uint64_t others; /* the project of what other schedulers placed */
	uint64_t next_id;
	bool rebuild, nodes_changed, kinds_changed, retry_refused;
	bool is_clamped; /* more is allocated than there is: something counts for less */
	/* Most memory that a claim may have of a GPU: each is a model of the machine. */
	uint32_t limits[64], limit_count;
	sl_ns cycle_at, wake_at;
	/* Actions of the step that goes on. */
	struct sl_cluster_action *todo;
	size_t todo_count, todo_room;

	struct sl_link turns; /* pods that wait for a write */
	uint32_t writing, looking;
	struct sl_ks_pod *teller_at;
	uint32_t telling;
	uint64_t bound, calls; /* for the log */
};

/* --- objects.c --- */
void *sl_ks_find(void *const *map, const char *key);
/* object begins with struct sl_ks_named, whose key is set. False: out of memory. */
SL_MUST_CHECK bool sl_ks_put(void **map, void *object);
void sl_ks_take(void **map, void *object);
/* Another object may have its key; it is found no more. False: out of memory. */
SL_MUST_CHECK bool sl_ks_retire(void **map, void *object, const char *uid);
/* "NAMESPACE/NAME" into buf. */
const char *sl_ks_key(char buf[SL_KS_NAME_MAX], const char *namespace, const char *name);
const char *sl_ks_key_of(char buf[SL_KS_NAME_MAX], const json_t *object);
/* They are made where they are not there; NULL: out of memory. */
struct sl_ks_node *sl_ks_node_of(struct sl_ks *ks, const char *name);
struct sl_ks_claim *sl_ks_claim_of(struct sl_ks *ks, const char *key);
struct sl_ks_pod *sl_ks_pod_of(struct sl_ks *ks, const char *key);
struct sl_ks_job *sl_ks_job_of(struct sl_ks *ks, const char *key, bool is_gang);
struct sl_ks_rules *sl_ks_rules_of(struct sl_ks *ks, const json_t *pod);
/* Rules that no pod has. */
void sl_ks_drop_unused_rules(struct sl_ks *ks);
/* Nothing may stand there. */
void sl_ks_drop_node(struct sl_ks *ks, struct sl_ks_node *node);
/* Those that nothing stands for any more go. */
void sl_ks_drop_claim(struct sl_ks *ks, struct sl_ks_claim *claim);
void sl_ks_drop_pod(struct sl_ks *ks, struct sl_ks_pod *pod);
void sl_ks_drop_job(struct sl_ks *ks, struct sl_ks_job *job);
void sl_ks_drop_project(struct sl_ks *ks, struct sl_ks_project *project);
void sl_ks_free_objects(struct sl_ks *ks);

/* --- nodes.c --- */
void sl_ks_on_node(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
void sl_ks_on_slice(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
/* The machine gets to know what has changed; may ask for a rebuild. */
void sl_ks_settle_nodes(struct sl_ks *ks);
/* All of them, into a machine that has none. */
void sl_ks_add_nodes(struct sl_ks *ks);
/* Closed GPUs are full. */
void sl_ks_fill_nodes(struct sl_ks *ks);
/* The books of GPUs, for what the machine is told of. */
void sl_ks_taken(const struct sl_ks_place *place, int sign);
/* place->milli, or less where others have it already: more than all was allocated there. */
uint16_t sl_ks_room_at(const struct sl_ks_place *place);
/* Which kinds of node there are, and which of them rules allow; may ask for a rebuild. */
void sl_ks_sort_nodes(struct sl_ks *ks);
/* Rules come to be known to nodes, and are forgotten. */
void sl_ks_add_rules(struct sl_ks *ks, struct sl_ks_rules *rules);
void sl_ks_forget_rules(struct sl_ks *ks, const struct sl_ks_rules *rules);
/* Where the devices of an allocation are, those that are known; false: none is. */
bool sl_ks_place_of(
	struct sl_ks *ks, const struct sl_facts_claim *claim, struct sl_ks_place *out);

/* --- claims.c --- */
void sl_ks_on_claim(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
void sl_ks_claim_changed(struct sl_ks *ks, struct sl_ks_claim *claim);
/* Makes a job of the machine that keeps others off that place. Returns its id. */
uint64_t sl_ks_hold(struct sl_ks *ks, const struct sl_ks_place *place);
/* Ends it. 0: there is none. */
void sl_ks_let_go(struct sl_ks *ks, uint64_t holder);
/* Is it allocated to this pod? */
bool sl_ks_claim_is_for(const struct sl_ks_claim *claim, const struct sl_ks_pod *pod);
void sl_ks_settle_claims(struct sl_ks *ks);
void sl_ks_add_holders(struct sl_ks *ks);

/* --- pods.c --- */
void sl_ks_on_pod(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
/* Looks at its claim again, and at where it stands. The pod may be gone then. */
void sl_ks_pod_look(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Found in the middle: the writes of one that was killed. */
void sl_ks_pod_finish(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Where it stands and is counted, of that alone. */
void sl_ks_pod_place(struct sl_ks *ks, struct sl_ks_pod *pod);
/* It is, or is no longer, where the machine believes it. place NULL: none. */
void sl_ks_believe(struct sl_ks_pod *pod, enum sl_ks_believed believed,
	const struct sl_ks_place *place);
/* May it be a task? Else why says why not. */
bool sl_ks_pod_is_ready(const struct sl_ks_pod *pod, char *why, size_t size);
struct sl_need sl_ks_pod_need(const struct sl_ks *ks, const struct sl_ks_pod *pod);
/* Is pod->place one that the machine could give it, as node and claim are now? */
bool sl_ks_pod_fits(const struct sl_ks *ks, const struct sl_ks_pod *pod);

/* --- jobs.c --- */
void sl_ks_job_changed(struct sl_ks *ks, struct sl_ks_job *job);
void sl_ks_settle_jobs(struct sl_ks *ks);
/* All of them, into a machine that has none. */
void sl_ks_add_jobs(struct sl_ks *ks);
struct sl_ks_job *sl_ks_find_job(struct sl_ks *ks, uint64_t id);

/* --- projects.c --- */
void sl_ks_on_project(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
void sl_ks_on_queue(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
void sl_ks_add_projects(struct sl_ks *ks);
/* Whose is it? *is_assigned: somebody said so. */
struct sl_ks_project *sl_ks_project_of(
	struct sl_ks *ks, const struct sl_facts_pod *pod, bool *is_assigned);
const char *sl_ks_project_name(void *ks, uint64_t id);
void sl_ks_refuse_project(struct sl_ks *ks, uint64_t id, uint32_t outcome);
void sl_ks_tell_projects(struct sl_ks *ks);
void sl_ks_free_spaces(struct sl_ks *ks);

/* --- groups.c --- */
void sl_ks_on_group(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
/* How many of the pod's PodGroup must run together; 0: there is no such group. */
uint32_t sl_ks_group_least(struct sl_ks *ks, const struct sl_facts_pod *pod);
void sl_ks_free_groups(struct sl_ks *ks);

/* --- drive.c --- */
uint64_t sl_ks_new_id(struct sl_ks *ks);
void sl_ks_step(struct sl_ks *ks, const struct sl_cluster_event *event);
/* A cycle is worth its while. */
void sl_ks_awake(struct sl_ks *ks);
SL_MUST_CHECK int sl_ks_drive_open(struct sl_ks *ks);

/* --- write.c --- */
/* At pod->place. */
void sl_ks_write(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Is a write under way, also one of order.c's, or may it be? */
bool sl_ks_is_writing(const struct sl_ks *ks);

/* --- order.c --- */
/* The pod is met: what was ordered of it before, as its condition says. */
void sl_ks_recall(struct sl_ks_pod *pod);
/* Where it stands is known, or whether its node is silent. */
void sl_ks_spare_node(const struct sl_ks_pod *pod);
/* Writes what is due, and hears what the node has confirmed. */
void sl_ks_order(struct sl_ks *ks, struct sl_ks_pod *pod);
/* As the machine decided; other: the job it is stopped for, or NULL. */
void sl_ks_stop(struct sl_ks *ks, struct sl_ks_pod *pod, uint32_t how,
	const struct sl_ks_job *other);
void sl_ks_resume(struct sl_ks *ks, struct sl_ks_pod *pod);
/* It should have stopped by now: an order to park is taken back. */
void sl_ks_late(struct sl_ks *ks, struct sl_ks_pod *pod);
/* So long it is no victim. */
sl_ns sl_ks_spared(const struct sl_ks_pod *pod);

/* --- tell.c --- */
SL_MUST_CHECK int sl_ks_tell_open(struct sl_ks *ks);

/* --- lease.c --- */
/* held() once it is ours; lost() if it is not any more: nothing may be written then. */
SL_MUST_CHECK int sl_ks_lease_new(struct sl_ks *ks, void (*held)(struct sl_ks *ks),
	void (*lost)(struct sl_ks *ks), struct sl_ks_lease **out);
struct sl_ks_lease *sl_ks_lease_free(struct sl_ks_lease *lease);
/* Nothing new is written. Once no write is under way the Lease is given back; then, or when it is
 * over before that, lost() is called. */
void sl_ks_lease_leave(struct sl_ks_lease *lease);
/* So long a call may take that is to be over before the lease is; 0: it is too late for one, also
 * later: it is lost. */
sl_ns sl_ks_lease_left(const struct sl_ks_lease *lease);

#endif
