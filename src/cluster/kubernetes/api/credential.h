/*
 * credential - what a program of a kubeconfig says about its user (users[].user.exec)
 *
 * Clouds give out kubeconfigs that name a program instead of a token. It prints an ExecCredential
 * (client.authentication.k8s.io), which is good for some minutes: enough for a command, and nothing
 * for an agent. What the program asks its user goes by its standard input and error.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_CREDENTIAL_H
#define SL_CLUSTER_KUBERNETES_API_CREDENTIAL_H

#include <jansson.h>

#include "base/error.h"

#define SL_KUBE_PROGRAM_WORDS 64

/* Borrowed texts. */
struct sl_kube_program {
	const char *command;                     /* with a slash: a path; else of $PATH */
	const char *word[SL_KUBE_PROGRAM_WORDS]; /* behind it */
	const char *name[SL_KUBE_PROGRAM_WORDS]; /* of variables, and their values */
	const char *value[SL_KUBE_PROGRAM_WORDS];
	uint32_t words, variables;
	const char *version; /* apiVersion of what it is to print */
	const char *hint;    /* how to install it, or NULL */
	json_t *cluster;     /* that it is told, or NULL */
};

/* Runs it and waits until it ends. *out: the status of its answer, a new reference, with a token or
 * a pair of certificate and key. 0 or negative errno; err says what is wrong and the remedy. */
SL_MUST_CHECK int sl_kube_credential(
	const struct sl_kube_program *program, json_t **out, struct sl_error *err);

#endif
