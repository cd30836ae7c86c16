/*
 * story_internal - what story.c and obey.c share
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_STORY_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_NODE_STORY_INTERNAL_H

#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/node/story.h"
#include "cluster/kubernetes/claims/told.h"
#include "cluster/kubernetes/api/watch.h"

/* sluiced's latest figures of a claim on one GPU. */
struct sl_kube_use {
	bool is_there;
	struct sl_msg_use_row row;
};

/* The latest request to sluiced, to limit its repetition. */
struct sl_kube_asked {
	bool is_open;   /* the answer is missing yet */
	uint64_t value; /* the requested value */
	uint64_t found; /* the value found since */
	sl_ns again_at; /* the same may be requested again then */
};

/* A claim prepared here, or a container with units of memory. */
struct sl_kube_holder {
	struct sl_link link;
	struct sl_kube_story *story;
	struct sl_share share;
	uint64_t workload; /* sluiced's number; 0: sluiced does not know the claim */
	struct sl_kube_use uses[SL_SHARE_DEVICES]; /* as share.devices */
	/* status.devices: on the API server, and being written. */
	json_t *written, *writing;
	struct sl_kube_call *call;
	sl_ns written_at, span, retry_at;
	struct sl_kube_backoff backoff;
	bool is_gone;  /* deleted on the API server */
	bool is_units; /* there is no claim, and no status to write */
	struct sl_kube_asked limit, park;
	struct sl_error park_refusal; /* sluiced's refusal of the present order */
	uint32_t waits;               /* questions in a row that found it waiting */
	bool asks_why;
	sl_ns why_at;
};

/* A pod of this node that uses claims. */
struct sl_kube_pod {
	struct sl_link link;
	struct sl_kube_story *story;
	char namespace[SL_SHARE_NAME_BYTES], name[SL_SHARE_NAME_BYTES], uid[64];
	json_t *claims; /* names of its claims */
	bool has_limit, is_parked;
	char limit[64]; /* the annotation */
	/* The namespace's bound of limits, read when the annotation is new. */
	bool knows_bound;
	uint64_t bound_bytes;
	sl_ns bound_again_at;
	struct sl_kube_call *call;
	/* The last reports about its orders, "": none. */
	struct sl_error limit_told, park_told;
};

struct sl_kube_story {
	struct sl_kube_node *node;
	struct sl_kube_teller *teller;
	struct sl_kube_watch *watch;
	sd_event_source *timer;
	struct sl_link holders, pods;
	bool is_whole, is_asking, has_failed, again;
	uint64_t serial; /* of the last event seen */
	uint64_t started_ms;
};

/* Asks sluiced at once. */
void sl_kube_story_hurry(struct sl_kube_story *story);
/* Writes an Event on the pod. */
void sl_kube_story_tell(struct sl_kube_story *story, const struct sl_kube_pod *pod,
	const char *reason, bool is_warning, const char *message);
/* Does the pod use the claim? */
bool sl_kube_story_uses(
	const struct sl_kube_pod *pod, const struct sl_kube_holder *holder);
uint64_t sl_kube_story_now_ms(void);

/* The holder of sluiced's workload, or NULL. */
const struct sl_kube_holder *sl_kube_story_holder(
	const struct sl_kube_story *story, uint64_t workload);

/* --- retell.c --- */

/* Reports an event of sluiced, or its answer to WHY, on the pods of the holder. */
void sl_kube_retell(
	const struct sl_kube_holder *holder, const struct sl_msg_event_row *row);
/* If it waits, asks for the reason. */
void sl_kube_retell_wait(struct sl_kube_holder *holder, sl_ns now);

/* --- obey.c --- */

/* An event of the watch of pods. */
void sl_kube_obey_pod(void *context, const struct sl_kube_event *event);
/* Tells sluiced about orders that it does not follow yet. */
void sl_kube_obey(struct sl_kube_holder *holder, sl_ns now);
void sl_kube_obey_free_pod(struct sl_kube_pod *pod);

#endif
