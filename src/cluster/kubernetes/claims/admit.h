/*
 * admit - answers the API server's review of a new pod, or of a claim of Sluice's class
 *
 * A pod with annotations of ask.h gets claims: a ResourceClaimTemplate for each container that
 * asks, and a JSONPatch that adds it to the pod and the container. A ResourceClaim or
 * ResourceClaimTemplate is admitted unchanged or refused. Everything else is admitted.
 *
 *   review -> sl_admit_read() -> paths to look up -> facts -> sl_admit_decide() -> templates to
 *   make -> sl_admit_response()
 *
 * A pod that has these claims already (a copy of a patched one) stays unchanged. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_ADMIT_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_ADMIT_H

#include "cluster/kubernetes/claims/claimspec.h"

/* Claims of an annotated pod that are looked up; further ones count as other drivers'. */
#define SL_ADMIT_LOOK_UPS_MAX 16

enum { SL_ADMIT_OK = 0, SL_ADMIT_BAD /* not a review: err */ };

enum sl_admit_kind {
	SL_ADMIT_OTHER = 0,
	SL_ADMIT_POD,
	SL_ADMIT_CLAIM,
	SL_ADMIT_TEMPLATE
};

/* Texts and the object belong to the review, which the caller keeps. */
struct sl_admit_review {
	const char *uid;
	enum sl_admit_kind kind;
	const char *namespace; /* "", or a name that may stand in a path */
	bool is_dry_run;
	const json_t *object;
};

SL_MUST_CHECK int sl_admit_read(
	const json_t *review, struct sl_admit_review *out, struct sl_error *err);

/* Finds the uid of a review that cannot be read; the API server writes it first. False: there is
 * none. */
SL_MUST_CHECK bool sl_admit_find_uid(const char *text, char uid[64]);

/* Is the rest needed? If not, an empty answer admits the object. */
SL_MUST_CHECK bool sl_admit_concerns(const struct sl_admit_review *review);
/* Paths of the objects that sl_admit_decide() needs, an array of strings; a new reference. */
json_t *sl_admit_look_ups(const struct sl_admit_review *review);

struct sl_admit_facts {
	const struct sl_sizes *sizes;
	const json_t *namespace; /* NULL: it does not exist (yet), and has no bounds */
	/* Path to object; objects that do not exist are missing. */
	const json_t *looked_up;
};

/* Zero-initialise. */
struct sl_admit_answer {
	struct sl_error refusal; /* "": admitted */
	int code;                /* of a refusal; 0: 403 */
	struct sl_error warning;
	json_t *patch;     /* JSONPatch, or NULL */
	json_t *templates; /* to be created before the admission, or NULL */
};

void sl_admit_decide(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, struct sl_admit_answer *out);
void sl_admit_answer_fini(struct sl_admit_answer *answer);

/* The AdmissionReview that goes back, a new reference; NULL when out of memory. */
json_t *sl_admit_response(const char *uid, const struct sl_admit_answer *answer);

#endif
