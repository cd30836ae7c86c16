/*
 * admit - the answer to a review of the API server: a pod that is to be, or a claim of ours
 *
 * A pod with annotations of ask.h becomes one with claims: a ResourceClaimTemplate for each
 * container that asks, and a JSONPatch that adds it to the pod and the container. A ResourceClaim
 * or ResourceClaimTemplate is let through or refused as it is. Everything else is let through.
 *
 *   review -> sl_admit_read() -> paths to look up -> facts -> sl_admit_decide() -> templates to
 *   make -> sl_admit_response()
 *
 * A pod that has the very claims already (it was copied from one of ours) stays as it is. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_ADMIT_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_ADMIT_H

#include "cluster/kubernetes/claims/claimspec.h"

/* Claims of an annotated pod that are looked up; of one with more the others are taken to be of
 * other drivers. */
#define SL_ADMIT_LOOK_UPS_MAX 16

enum { SL_ADMIT_OK = 0, SL_ADMIT_BAD /* no review: err */ };

enum sl_admit_kind {
	SL_ADMIT_OTHER = 0,
	SL_ADMIT_POD,
	SL_ADMIT_CLAIM,
	SL_ADMIT_TEMPLATE
};

/* Texts and the object are the review's, which the caller keeps. */
struct sl_admit_review {
	const char *uid;
	enum sl_admit_kind kind;
	const char *namespace; /* "", or a name that may stand in a path */
	bool is_dry_run;
	const json_t *object;
};

SL_MUST_CHECK int sl_admit_read(
	const json_t *review, struct sl_admit_review *out, struct sl_error *err);

/* The uid alone, of a review that cannot be read; it comes first in what the API server writes.
 * False: there is none. */
SL_MUST_CHECK bool sl_admit_find_uid(const char *text, char uid[64]);

/* Whether the rest is needed: else it is let through with an empty answer. */
SL_MUST_CHECK bool sl_admit_concerns(const struct sl_admit_review *review);
/* Paths of the objects that decide() wants to see, strings in an array; a new reference. */
json_t *sl_admit_look_ups(const struct sl_admit_review *review);

struct sl_admit_facts {
	const struct sl_sizes *sizes;
	const json_t *namespace; /* NULL: it is not there (yet), and has no bounds */
	/* Path to object; those that are not there are missing. */
	const json_t *looked_up;
};

/* Zero-initialise. */
struct sl_admit_answer {
	struct sl_error refusal; /* "": it is let through */
	int code;                /* of a refusal; 0: 403 */
	struct sl_error warning;
	json_t *patch;     /* JSONPatch, or NULL */
	json_t *templates; /* to be made before it is let through, or NULL */
};

void sl_admit_decide(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, struct sl_admit_answer *out);
void sl_admit_answer_fini(struct sl_admit_answer *answer);

/* The AdmissionReview that goes back, a new reference; NULL when out of memory. */
json_t *sl_admit_response(const char *uid, const struct sl_admit_answer *answer);

#endif
