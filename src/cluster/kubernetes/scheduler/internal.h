/*
 * internal - the scheduler's state; for this folder only
 *
 * Objects of the API are kept by name, as plain values. Each pod of this scheduler belongs to a job
 * (its gang, or itself alone), and each job is one of the cluster machine's. The handlers of
 * watches only change objects and put jobs on the list `changed`. Before each cycle sl_ks_settle()
 * reports the changes to the machine, and its decisions are carried out afterwards. So the order of
 * events does not matter.
 *
 *   objects   maps by name, and their lists
 *   nodes     Node and ResourceSlice to nodes of the machine; the kinds of nodes
 *   claims    ResourceClaim: all allocations, of any scheduler.
 *   pods      Pod: its needs, its place
 *   jobs      jobs of the machine, made anew whenever pods and claims differ from them
 *   groups    PodGroup: how many of a gang must run together.
 *   projects  Project and KAI's Queue to projects of the machine; their errors.
 *   drive     the machine, its cycles and its actions.
 *   write     the calls that place a pod
 *   order     the calls that park, resume and evict it
 *   tell      conditions of pods that wait
 *   lease     which of several replicas decides.
 *
 * A GPU's use is that of its claims on the API server, plus that of this scheduler's writes until
 * they are known to have failed. One thread, the loop's.
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
/* Kinds of nodes that rules of pods distinguish: pools of the machine. */
#define SL_KS_KINDS 31u
/* Most concurrent writes that place pods, including calls that check unanswered ones. */
#define SL_KS_WRITES 20u
#define SL_KS_CALLS  500u
/* Between namespace and name of a gang's job, by labels or by a PodGroup; names of pods have no
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

/* First member of every object in a map. key is owned. */
struct sl_ks_named {
	char *key;
};

struct sl_ks_gpu {
	char name[64];
	uint32_t memory_mib, limit_mib;
	bool is_closed;
	int32_t taken; /* thousandths, by pods and claims, as reported to the machine */
};

/* A Node, a node's slice, or both; or a name that only a place refers to. */
struct sl_ks_node {
	struct sl_ks_named named;
	struct sl_link link;
	uint64_t id;
	bool is_there, has_slice; /* Node and slice exist */
	struct sl_facts_node facts;
	json_t *labels; /* from match.h */
	char pool[SL_FACTS_NAME];
	bool swaps;
	/* GPUs keep their numbers as long as the machine exists. */
	struct sl_ks_gpu gpu[SL_FIT_GPUS_MAX];
	uint32_t gpus;
	uint64_t others_cpu, others_mib; /* of pods that others placed */
	uint32_t pods;                   /* all pods placed here */
	sl_ns spared_until; /* it did not answer: none of its pods is preempted before */
	uint64_t holds;     /* sum of the marks of the rules that it satisfies */
	uint32_t kind;
	bool in_machine;
	struct sl_cluster_event told; /* the last NODE_PUT */
};

/* A place on a node. */
struct sl_ks_place {
	struct sl_ks_node *node;
	uint32_t gpu_mask;
	uint16_t milli; /* on each GPU */
};

/* Rules from match.h. */
struct sl_ks_rules {
	struct sl_ks_named named; /* the name is their text */
	struct sl_link link;
	json_t *json;
	uint64_t mark;  /* unique to these rules */
	uint64_t kinds; /* the kinds whose nodes all satisfy them */
	uint32_t pods;
};

struct sl_ks_pod;

struct sl_ks_claim {
	struct sl_ks_named named;
	struct sl_link link;
	bool is_there;
	struct sl_facts_claim facts;
	struct sl_ks_pod *pod; /* that has it, or the first that names it */
	bool is_named_again;   /* other pods name it, too */
	/* The machine's job for an allocation to no pod of this scheduler. */
	uint64_t holder;
	struct sl_ks_place held;
	bool is_changed;
	struct sl_link changed;
};

/* What the machine knows of a pod's task. */
enum sl_ks_believed {
	SL_KS_NOTHING = 0, /* it has no task */
	SL_KS_QUEUED,
	SL_KS_PLACED, /* from BIND or TASK_RUNS on, until it is known to be gone */
	SL_KS_PARKED,
};

enum sl_ks_step {
	SL_KS_IDLE = 0,
	SL_KS_WAITS_FOR_TURN, /* the results of all writes so far are known */
	SL_KS_CREATE,         /* makes the claim for its limits */
	SL_KS_KNOW_CLAIM,     /* writes that claim's name to the pod's status */
	SL_KS_PROTECT,        /* writes the claim's finalizer */
	SL_KS_ALLOCATE,       /* writes the claim's status */
	SL_KS_BIND,
	SL_KS_LOOK_CLAIM, /* reads the result of an unanswered write */
	SL_KS_LOOK_POD,
};

struct sl_ks_job;

struct sl_ks_pod {
	struct sl_ks_named named;
	struct sl_link link, in_job;
	struct sl_ks *ks;
	bool is_there;
	struct sl_facts_pod facts;
	json_t *extended; /* from extended.h, or NULL */
	struct sl_ks_rules *rules;
	struct sl_ks_claim *claim; /* the claim that belongs to the pod, or NULL */
	struct sl_ks_job *job;
	sl_ns since; /* start of its wait */

	/* Its place; node NULL: none yet. */
	struct sl_ks_place place;
	bool is_bound;
	/* The node that counts it; also its resources, if another scheduler placed it. */
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
	bool wants_parked, wants_end; /* decisions of the machine */
	bool is_ordered;              /* to park: the last order written */
	bool is_ordering;             /* the order being written, or is_ordered */
	bool is_parked;               /* the node has confirmed it */
	bool resumes;                 /* resuming is not confirmed by the node yet */
	bool is_evicted;
	sl_ns stops_since;   /* begin of parking or ending; 0: neither */
	sl_ns spared_until;  /* it did not park in time: it is not preempted before */
	bool is_node_silent; /* neither did any other pod of its node */
	const char *order_reason; /* of the condition */
	char order_why[400];
	struct sl_kube_call *order_call;
	struct sl_kube_backoff order_backoff;

	/* tell.c */
	char trouble[256]; /* of a refused write */
	struct sl_kube_call *tell_call;
	uint32_t told; /* checksum of the text */
	uint32_t told_kind;
	sl_ns told_at;
};

/* A gang, or a single pod. */
struct sl_ks_job {
	struct sl_ks_named named;
	struct sl_link link, changed, pods;
	bool is_gang;
	struct sl_index_node index; /* id 0: not in the machine */
	/* As reported to the machine. */
	uint64_t project;
	int32_t priority;
	uint32_t flags, least, tasks;
	struct sl_ks_pod **task; /* by number */
	bool is_refused;
	struct sl_pending_because because;
	char why[192]; /* why it is not in the machine, or "" */
};

struct sl_ks_project {
	struct sl_ks_named named;
	struct sl_link link;
	struct sl_ks *ks;
	uint64_t id;
	json_t *object; /* the API server's object, or NULL */
	json_t *queue; /* KAI's Queue of that name (queue.h), or NULL; counts if object is NULL */
	int64_t left; /* of its quota, thousandths of a GPU, for Queues below it */
	/* Its errors; "": none. */
	char trouble[256], warning[256];
	struct sl_kube_call *call;
	int visited; /* 1: it and its ancestors are being visited; 2: done */
};

struct sl_ks {
	struct sl_kube_scheduler_options options;
	sd_event *loop;
	sd_event_source *timer, *teller;
	struct sl_kube *kube;
	struct sl_kube *lease_kube; /* its own, so other calls never delay it */
	struct sl_kube_watch *watch[SL_KS_WATCHES];
	uint32_t synced;
	struct sl_ks_lease *lease;
	bool ends; /* ends orderly */

	void *nodes_by_name, *claims_by_name, *pods_by_name, *jobs_by_name,
		*rules_by_text, *projects_by_name, *spaces_by_name,
		*groups_by_name; /* for tsearch(3) */
	struct sl_link nodes, claims, pods, jobs, rules, projects, groups;
	struct sl_link changed_jobs, changed_claims;
	struct sl_ks_project nameless; /* project default without a Project */
	struct sl_ks_project *putting; /* the one that is being reported to the machine */

	struct sl_arena *arena; /* owns the machine's memory */
	struct sl_index jobs_by_id;
	struct sl_cluster *cluster;
	uint64_t others; /* the project for pods that other schedulers placed */
	uint64_t next_id;
	bool rebuild, nodes_changed, kinds_changed, retry_refused;
	bool is_clamped; /* more is allocated than exists: some allocations count for less */
	/* The largest memory per claim on a GPU; each value is a model of the machine. */
	uint32_t limits[64], limit_count;
	sl_ns cycle_at, wake_at;
	/* Actions of the present step. */
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
/* Renames an object so that another may have its key; it is no longer found. False: out of
 * memory. */
SL_MUST_CHECK bool sl_ks_retire(void **map, void *object, const char *uid);
/* "NAMESPACE/NAME" into buf. */
const char *sl_ks_key(char buf[SL_KS_NAME_MAX], const char *namespace, const char *name);
const char *sl_ks_key_of(char buf[SL_KS_NAME_MAX], const json_t *object);
/* Made if missing; NULL: out of memory. */
struct sl_ks_node *sl_ks_node_of(struct sl_ks *ks, const char *name);
struct sl_ks_claim *sl_ks_claim_of(struct sl_ks *ks, const char *key);
struct sl_ks_pod *sl_ks_pod_of(struct sl_ks *ks, const char *key);
struct sl_ks_job *sl_ks_job_of(struct sl_ks *ks, const char *key, bool is_gang);
struct sl_ks_rules *sl_ks_rules_of(struct sl_ks *ks, const json_t *pod);
/* Drops rules that no pod has. */
void sl_ks_drop_unused_rules(struct sl_ks *ks);
/* Nothing may be placed there. */
void sl_ks_drop_node(struct sl_ks *ks, struct sl_ks_node *node);
/* Drops it unless an object or a pod refers to it. */
void sl_ks_drop_claim(struct sl_ks *ks, struct sl_ks_claim *claim);
void sl_ks_drop_pod(struct sl_ks *ks, struct sl_ks_pod *pod);
void sl_ks_drop_job(struct sl_ks *ks, struct sl_ks_job *job);
void sl_ks_drop_project(struct sl_ks *ks, struct sl_ks_project *project);
void sl_ks_free_objects(struct sl_ks *ks);

/* --- nodes.c --- */
void sl_ks_on_node(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
void sl_ks_on_slice(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
/* Reports changes to the machine; may ask for a rebuild, if rules changed. */
void sl_ks_settle_nodes(struct sl_ks *ks);
/* Adds all nodes to a machine that has none. */
void sl_ks_add_nodes(struct sl_ks *ks);
/* Updates the accounts of GPUs for a report to the machine. */
void sl_ks_taken(const struct sl_ks_place *place, int sign);
/* place->milli, or less if the GPUs are full: more was allocated there than exists. */
uint16_t sl_ks_room_at(const struct sl_ks_place *place);
/* Finds the kinds of nodes, and which of them rules allow; may ask for a rebuild. */
void sl_ks_sort_nodes(struct sl_ks *ks);
/* Adds rules to all nodes, or removes them. */
void sl_ks_add_rules(struct sl_ks *ks, struct sl_ks_rules *rules);
void sl_ks_forget_rules(struct sl_ks *ks, const struct sl_ks_rules *rules);
/* The places of an allocation's devices, as far as known; false: none is. */
bool sl_ks_place_of(
	struct sl_ks *ks, const struct sl_facts_claim *claim, struct sl_ks_place *out);

/* --- claims.c --- */
void sl_ks_on_claim(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
void sl_ks_claim_changed(struct sl_ks *ks, struct sl_ks_claim *claim);
/* Is it allocated to this pod? */
bool sl_ks_claim_is_for(const struct sl_ks_claim *claim, const struct sl_ks_pod *pod);
void sl_ks_settle_claims(struct sl_ks *ks);
void sl_ks_add_holders(struct sl_ks *ks);

/* --- pods.c --- */
void sl_ks_on_pod(struct sl_ks *ks, enum sl_kube_event_kind kind, const json_t *object);
/* Checks its claim and its place again. The pod may be gone afterwards. */
void sl_ks_pod_look(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Completes the writes of a killed scheduler. */
void sl_ks_pod_finish(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Updates only its place and counts. */
void sl_ks_pod_place(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Records that the machine believes it there, or no longer. place NULL: none. */
void sl_ks_believe(struct sl_ks_pod *pod, enum sl_ks_believed believed,
	const struct sl_ks_place *place);
/* May it be a task? If not, why has the reason. */
bool sl_ks_pod_is_ready(const struct sl_ks_pod *pod, char *why, size_t size);
struct sl_need sl_ks_pod_need(const struct sl_ks *ks, const struct sl_ks_pod *pod);
/* Could the machine choose pod->place, with the present node and claim? */
bool sl_ks_pod_fits(const struct sl_ks *ks, const struct sl_ks_pod *pod);

/* --- jobs.c --- */
void sl_ks_job_changed(struct sl_ks *ks, struct sl_ks_job *job);
void sl_ks_settle_jobs(struct sl_ks *ks);
/* Adds all jobs to a machine that has none. */
void sl_ks_add_jobs(struct sl_ks *ks);
struct sl_ks_job *sl_ks_find_job(struct sl_ks *ks, uint64_t id);

/* --- projects.c --- */
void sl_ks_on_project(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
void sl_ks_on_queue(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
void sl_ks_add_projects(struct sl_ks *ks);
/* Its project. *is_assigned: it was named explicitly. */
struct sl_ks_project *sl_ks_project_of(
	struct sl_ks *ks, const struct sl_facts_pod *pod, bool *is_assigned);
const char *sl_ks_project_name(void *ks, uint64_t id);
void sl_ks_refuse_project(struct sl_ks *ks, uint64_t id, uint32_t outcome);
void sl_ks_tell_projects(struct sl_ks *ks);
void sl_ks_free_spaces(struct sl_ks *ks);

/* --- groups.c --- */
void sl_ks_on_group(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object);
/* How many pods of the pod's PodGroup must run together; 0: there is no such group. */
uint32_t sl_ks_group_least(struct sl_ks *ks, const struct sl_facts_pod *pod);
void sl_ks_free_groups(struct sl_ks *ks);

/* --- drive.c --- */
uint64_t sl_ks_new_id(struct sl_ks *ks);
void sl_ks_step(struct sl_ks *ks, const struct sl_cluster_event *event);
/* Asks for a cycle. */
void sl_ks_awake(struct sl_ks *ks);
SL_MUST_CHECK int sl_ks_drive_open(struct sl_ks *ks);

/* --- write.c --- */
/* At pod->place. */
void sl_ks_write(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Is a write in flight, also one of order.c, or may one be? */
bool sl_ks_is_writing(const struct sl_ks *ks);

/* --- order.c --- */
/* A new pod: restores earlier orders from its condition. */
void sl_ks_recall(struct sl_ks_pod *pod);
/* Updates spared times, once its place or the silence of its node is known. */
void sl_ks_spare_node(const struct sl_ks_pod *pod);
/* Writes a due order, and reads the node's confirmation. */
void sl_ks_order(struct sl_ks *ks, struct sl_ks_pod *pod);
/* Carries out the machine's decision; other: the job it is preempted for, or NULL. */
void sl_ks_stop(struct sl_ks *ks, struct sl_ks_pod *pod, uint32_t how,
	const struct sl_ks_job *other);
void sl_ks_resume(struct sl_ks *ks, struct sl_ks_pod *pod);
/* It should have stopped by now: cancels an order to park. */
void sl_ks_late(struct sl_ks *ks, struct sl_ks_pod *pod);
/* The time until which it is not preempted. */
sl_ns sl_ks_spared(const struct sl_ks_pod *pod);

/* --- tell.c --- */
SL_MUST_CHECK int sl_ks_tell_open(struct sl_ks *ks);

/* --- lease.c --- */
/* held() once this replica has the Lease; lost() once it has not: nothing may be written then. */
SL_MUST_CHECK int sl_ks_lease_new(struct sl_ks *ks, void (*held)(struct sl_ks *ks),
	void (*lost)(struct sl_ks *ks), struct sl_ks_lease **out);
struct sl_ks_lease *sl_ks_lease_free(struct sl_ks_lease *lease);
/* Stops new writes. Once no write is in flight the Lease is given up; then, or when it ends before
 * that, lost() is called. */
void sl_ks_lease_leave(struct sl_ks_lease *lease);
/* The longest time for a call that must end before the Lease does; 0: too late for any call, the
 * Lease is lost. */
sl_ns sl_ks_lease_left(const struct sl_ks_lease *lease);

#endif
