/*
 * credential - asks a kubeconfig's program for the user's credentials (users[].user.exec)
 *
 * Cloud providers issue kubeconfigs that name a program instead of a token. The program prints an
 * ExecCredential (client.authentication.k8s.io). Its credentials are valid for some minutes: enough
 * for a command, too short for an agent. The program talks to its user through standard input and
 * standard error.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_CREDENTIAL_H
#define SL_CLUSTER_KUBERNETES_API_CREDENTIAL_H

#include <jansson.h>

#include "base/error.h"

#define SL_KUBE_PROGRAM_WORDS 64

/* Borrowed texts. */
struct sl_kube_program {
	const char *command;                     /* with a slash: a path; else of $PATH */
	const char *word[SL_KUBE_PROGRAM_WORDS]; /* its arguments */
	const char *name[SL_KUBE_PROGRAM_WORDS]; /* of variables, and their values */
	const char *value[SL_KUBE_PROGRAM_WORDS];
	uint32_t words, variables;
	const char *version; /* apiVersion of the ExecCredential to print */
	const char *hint;    /* how to install it, or NULL */
	json_t *cluster;     /* passed to the program, or NULL */
};

/* Runs the program and waits for its end. *out: the status of its answer, a new reference, with a
 * token or a pair of certificate and key. 0 or negative errno; err has the fault and the remedy. */
SL_MUST_CHECK int sl_kube_credential(
	const struct sl_kube_program *program, json_t **out, struct sl_error *err);

#endif
