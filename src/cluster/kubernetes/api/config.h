/*
 * config - where the API server is, and what to show it
 *
 * In the cluster: the service account of the pod (KUBERNETES_SERVICE_HOST, _PORT, ca.crt, token).
 * Elsewhere: a kubeconfig, of which the current context counts. Only https, and the server's
 * certificate is always verified. What the kubeconfig carries inside (certificate-authority-data
 * and the like) lies in anonymous memory; its path is below /proc/self/fd.
 * Reads files, once; keeps no other state.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_CONFIG_H
#define SL_CLUSTER_KUBERNETES_API_CONFIG_H

#include "base/error.h"

#define SL_KUBE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Files of which the content came with the kubeconfig. */
enum { SL_KUBE_CA = 0, SL_KUBE_CERT, SL_KUBE_KEY, SL_KUBE_FILES };

/* Zero-initialise. Owned strings; NULL where there is none. */
struct sl_kube_config {
	char *server;              /* https://HOST[:PORT][/PREFIX], no slash at the end */
	char *path[SL_KUBE_FILES]; /* PEM; without a CA the system's authorities count */
	char *token;               /* fixed */
	char *token_path;          /* or read again whenever the file changes */
	char *namespace;           /* of the context, or of the pod; NULL: none is said */
	bool is_inside;            /* in the cluster: no proxy */
	/* Anonymous memory behind path[], or 0. Never 0 itself: standard input is open. */
	int memory[SL_KUBE_FILES];
};

void sl_kube_config_fini(struct sl_kube_config *config);

/* The service account in folder (NULL: SL_KUBE_ACCOUNT_DIR), the address from the environment. 0 or
 * negative errno; err says what is missing and the remedy. */
SL_MUST_CHECK int sl_kube_config_inside(
	struct sl_kube_config *out, const char *folder, struct sl_error *err);
/* The kubeconfig at path. Refuses, with the remedy: http, insecure-skip-tls-verify, exec,
 * auth-provider, user names with passwords. As above. */
SL_MUST_CHECK int sl_kube_config_file(
	struct sl_kube_config *out, const char *path, struct sl_error *err);
/* path if it is given; else the cluster that we are in; else $KUBECONFIG; else ~/.kube/config. As
 * above. */
SL_MUST_CHECK int sl_kube_config_find(
	struct sl_kube_config *out, const char *path, struct sl_error *err);
/* The same for a command that a person gives: it also runs the program that a kubeconfig names for
 * credentials (exec). context: another one than the current, of a kubeconfig; NULL: that. */
SL_MUST_CHECK int sl_kube_config_choose(struct sl_kube_config *out, const char *path,
	const char *context, struct sl_error *err);

#endif
