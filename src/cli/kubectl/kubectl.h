/*
 * kubectl - what the files of kubectl-sluice share
 *
 * The plugin of kubectl talks to the Kubernetes API only, with its user's rights. It shows what
 * sluice-kube writes into claims and Events, and gives orders by annotations of pods. One thread;
 * each request blocks until its answer or deadline.
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
	const char *namespace; /* NULL: all namespaces */
	const char *limit;     /* --limit */
	sl_ns timeout;
};

/* --- ask.c --- */

/* Connects. The kubeconfig's namespace goes to *namespace, which the caller frees, or NULL. 0 or
 * negative errno (err). */
SL_MUST_CHECK int kubectl_open(struct kubectl *k, const char *kubeconfig,
	const char *context, char **namespace, struct sl_error *err);
void kubectl_close(struct kubectl *k);
/* Puts the answer into *out, a new reference. 0; else the HTTP status, or -1 without one (err). */
SL_MUST_CHECK int kubectl_ask(struct kubectl *k, enum sl_kube_verb verb, const char *path,
	const json_t *body, json_t **out, struct sl_error *err);
/* Reads all pages of a list into *out, an array. Returns as kubectl_ask(). */
SL_MUST_CHECK int kubectl_list(
	struct kubectl *k, const char *path, json_t **out, struct sl_error *err);

/* --- claims.c --- */

/* A claim's part of one GPU; the claim owns the texts. */
struct kubectl_row {
	const json_t *claim;
	const char *namespace, *pod, *node, *device;
	const char *state; /* "starting" until the node reports */
	bool is_known;     /* the node has reported */
	uint64_t request_bytes, limit_bytes, resident_bytes, evicted_bytes;
	const char *parked, *parked_reason; /* status and reason of the condition */
};

/* Calls fn for each GPU that the driver gave the claim. */
void kubectl_rows(const json_t *claim,
	void (*fn)(void *context, const struct kubectl_row *row), void *context);
/* The claims of the namespace, or of all, as an array. Returns as kubectl_ask(). */
SL_MUST_CHECK int kubectl_claims(struct kubectl *k, json_t **out, struct sl_error *err);
/* The pod, and its claims with a GPU of this driver: an array, which may be empty. */
SL_MUST_CHECK int kubectl_pod(struct kubectl *k, const char *name, json_t **pod,
	json_t **claims, struct sl_error *err);
/* The pod's Events, an array. */
SL_MUST_CHECK int kubectl_events(
	struct kubectl *k, const json_t *pod, json_t **out, struct sl_error *err);
/* Age in milliseconds of a time in the API's form; 0: none, or in the future. */
uint64_t kubectl_age_ms(const char *time);

/* --- the verbs: exit statuses --- */

int kubectl_ps(struct kubectl *k);
int kubectl_top(struct kubectl *k);
int kubectl_why(struct kubectl *k, const char *name);
int kubectl_set(struct kubectl *k, const char *name);
int kubectl_park(struct kubectl *k, const char *name);
int kubectl_resume(struct kubectl *k, const char *name);
/* Prints the text with the program's name before it. Returns EXIT_FAILURE. */
int kubectl_fail(const char *format, ...) SL_PRINTF(1, 2);

#endif
