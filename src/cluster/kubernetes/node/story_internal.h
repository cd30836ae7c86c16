/*
 * story_internal - what story.c and obey.c share
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_STORY_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_NODE_STORY_INTERNAL_H

#include "cluster/kubernetes/node/internal.h"
#include "cluster/kubernetes/node/story.h"
#include "cluster/kubernetes/claims/told.h"
#include "cluster/kubernetes/api/watch.h"

/* Of a claim on one GPU, as sluiced said last. */
struct sl_kube_use {
	bool is_there, swaps; /* which of the two rows came */
	struct sl_msg_use_row row;
	struct sl_msg_swap_row swap;
};

/* What was asked of sluiced, so that the same is not asked for ever. */
struct sl_kube_asked {
	bool is_open;   /* the answer is still to come */
	uint64_t value; /* what was asked for */
	uint64_t found; /* what there is since */
	sl_ns again_at; /* the same may be asked again then */
};

/* A claim that is prepared here, or a container with units of memory. */
struct sl_kube_holder {
	struct sl_link link;
	struct sl_kube_story *story;
	struct sl_share share;
	uint64_t workload; /* sluiced's number; 0: it does not know the claim */
	struct sl_kube_use uses[SL_SHARE_DEVICES]; /* as share.devices */
	/* status.devices: as the API server has it, and as it is being written. */
	json_t *written, *writing;
	struct sl_kube_call *call;
	sl_ns written_at, span, retry_at;
	struct sl_kube_backoff backoff;
	bool is_gone;  /* the API server does not have it any more */
	bool is_units; /* there is no claim, and no status to write */
	struct sl_kube_asked limit, park;
	struct sl_error park_refusal; /* sluiced's, of the order that stands */
	uint32_t waits;               /* questions during which it waited */
	bool asks_why;
	sl_ns why_at;
};

/* A pod of this node that uses claims. */
struct sl_kube_pod {
	struct sl_link link;
	struct sl_kube_story *story;
	char namespace[SL_SHARE_NAME_BYTES], name[SL_SHARE_NAME_BYTES], uid[64];
	json_t *claims; /* their names */
	bool has_limit, is_parked;
	char limit[64]; /* the annotation */
	/* The namespace's bound of limits, asked for when the annotation is new. */
	bool knows_bound;
	uint64_t bound_bytes;
	sl_ns bound_again_at;
	struct sl_kube_call *call;
	/* What was told of its orders, "": nothing. */
	struct sl_error limit_told, park_told;
};

struct sl_kube_story {
	struct sl_kube_node *node;
	struct sl_kube_teller *teller;
	struct sl_kube_watch *watch;
	sd_event_source *timer;
	struct sl_link holders, pods;
	bool is_whole, is_asking, has_failed, again;
	uint64_t serial; /* of the last event that was seen */
	uint64_t started_ms;
};

/* Asks sluiced now. */
void sl_kube_story_hurry(struct sl_kube_story *story);
/* An Event on the pod. */
void sl_kube_story_tell(struct sl_kube_story *story, const struct sl_kube_pod *pod,
	const char *reason, bool is_warning, const char *message);
/* Whether the pod uses the claim. */
bool sl_kube_story_uses(
	const struct sl_kube_pod *pod, const struct sl_kube_holder *holder);
uint64_t sl_kube_story_now_ms(void);

/* Of sluiced's workload, or NULL. */
const struct sl_kube_holder *sl_kube_story_holder(
	const struct sl_kube_story *story, uint64_t workload);

/* --- retell.c --- */

/* An event of sluiced, or what it says to WHY, to the pods of the holder. */
void sl_kube_retell(
	const struct sl_kube_holder *holder, const struct sl_msg_event_row *row);
/* Asks what it waits for, if it does. */
void sl_kube_retell_wait(struct sl_kube_holder *holder, sl_ns now);

/* --- obey.c --- */

/* An event of the watch of pods. */
void sl_kube_obey_pod(void *context, const struct sl_kube_event *event);
/* Tells sluiced what is ordered and not yet so. */
void sl_kube_obey(struct sl_kube_holder *holder, sl_ns now);
void sl_kube_obey_free_pod(struct sl_kube_pod *pod);

#endif
