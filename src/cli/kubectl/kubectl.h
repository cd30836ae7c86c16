/*
 * kubectl - what the files of kubectl-sluice share
 *
 * The plugin of kubectl speaks with the Kubernetes API alone, with its user's rights: it shows what
 * sluice-kube writes into claims and Events, and orders by annotations of pods. One thread; each
 * question blocks until it is answered or its time is over.
 */
#ifndef SL_CLI_KUBECTL_KUBECTL_H
#define SL_CLI_KUBECTL_KUBECTL_H

#include <jansson.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"
#include "cluster/kubernetes/api/api.h"

enum { EXIT_USAGE = 2 };

struct kubectl {
	sd_event *loop;
	struct sl_kube *kube;
	const char *namespace; /* the one that is meant; NULL: all of them */
	const char *limit;     /* --limit */
	sl_ns timeout;
};

/* --- ask.c --- */

/* Connects; namespace of the kubeconfig goes to *namespace, to be freed, or NULL. 0 or negative
 * errno (err). */
SL_MUST_CHECK int kubectl_open(struct kubectl *k, const char *kubeconfig,
	const char *context, char **namespace, struct sl_error *err);
void kubectl_close(struct kubectl *k);
/* The answer into *out, a new reference. 0; else the status of HTTP, or -1 without one (err). */
SL_MUST_CHECK int kubectl_ask(struct kubectl *k, enum sl_kube_verb verb, const char *path,
	const json_t *body, json_t **out, struct sl_error *err);
/* All pages of a list, an array, into *out: as above. */
SL_MUST_CHECK int kubectl_list(
	struct kubectl *k, const char *path, json_t **out, struct sl_error *err);

/* --- claims.c --- */

/* A claim's part of one GPU; texts are the claim's. */
struct kubectl_row {
	const json_t *claim;
	const char *namespace, *pod, *node, *device;
	const char *state; /* "starting" as long as the node has not said */
	bool is_known;     /* it has said */
	uint64_t request_bytes, limit_bytes, resident_bytes, evicted_bytes;
	const char *parked, *parked_reason; /* status and reason of the condition */
};

/* Calls fn for each GPU that the driver gave the claim. */
void kubectl_rows(const json_t *claim,
	void (*fn)(void *context, const struct kubectl_row *row), void *context);
/* Claims of the namespace, or of all: an array. As kubectl_ask(). */
SL_MUST_CHECK int kubectl_claims(struct kubectl *k, json_t **out, struct sl_error *err);
/* The pod, and those of its claims that have a GPU of ours: an array, which may be empty. */
SL_MUST_CHECK int kubectl_pod(struct kubectl *k, const char *name, json_t **pod,
	json_t **claims, struct sl_error *err);
/* Events about the pod, an array. */
SL_MUST_CHECK int kubectl_events(
	struct kubectl *k, const json_t *pod, json_t **out, struct sl_error *err);
/* Of a time as the API has it: milliseconds ago; 0: none, or not yet. */
uint64_t kubectl_age_ms(const char *time);

/* --- the verbs: exit statuses --- */

int kubectl_ps(struct kubectl *k);
int kubectl_top(struct kubectl *k);
int kubectl_why(struct kubectl *k, const char *name);
int kubectl_set(struct kubectl *k, const char *name);
int kubectl_park(struct kubectl *k, const char *name);
int kubectl_resume(struct kubectl *k, const char *name);
/* Prints it with the program's name before it. Returns EXIT_FAILURE. */
int kubectl_fail(const char *format, ...) SL_PRINTF(1, 2);

#endif
