/*
 * config - the address of the API server, and the credentials for it
 *
 * In the cluster: the service account of the pod (KUBERNETES_SERVICE_HOST, _PORT, ca.crt, token).
 * Elsewhere: the current context of a kubeconfig. Only https; the server's certificate is always
 * verified. If the kubeconfig contains data instead of paths (certificate-authority-data and the
 * like), the data is put into anonymous memory, with a path below /proc/self/fd. Reads files, once;
 * keeps no other state.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_CONFIG_H
#define SL_CLUSTER_KUBERNETES_API_CONFIG_H

#include "base/error.h"

#define SL_KUBE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Files whose content may be inside the kubeconfig. */
enum { SL_KUBE_CA = 0, SL_KUBE_CERT, SL_KUBE_KEY, SL_KUBE_FILES };

/* Zero-initialise. Owned strings; NULL if absent. */
struct sl_kube_config {
	char *server;              /* https://HOST[:PORT][/PREFIX], no slash at the end */
	char *path[SL_KUBE_FILES]; /* PEM; without a CA the system's authorities count */
	char *token;               /* fixed */
	char *token_path;          /* or read again whenever the file changes */
	char *namespace;           /* of the context, or of the pod; NULL: unknown */
	bool is_inside;            /* in the cluster: no proxy */
	/* Anonymous memory behind path[], or 0, which is never a memory file here since standard
	 * input is open. */
	int memory[SL_KUBE_FILES];
};

void sl_kube_config_fini(struct sl_kube_config *config);

/* Reads the service account in folder (NULL: SL_KUBE_ACCOUNT_DIR), and the address from the
 * environment. 0 or negative errno; err names the missing item and the remedy. */
SL_MUST_CHECK int sl_kube_config_inside(
	struct sl_kube_config *out, const char *folder, struct sl_error *err);
/* Reads the kubeconfig at path; results as above. Refuses, with the remedy: http,
 * insecure-skip-tls-verify, exec, auth-provider, user names with passwords. */
SL_MUST_CHECK int sl_kube_config_file(
	struct sl_kube_config *out, const char *path, struct sl_error *err);
/* path if given; else the cluster of this pod; else $KUBECONFIG; else ~/.kube/config. As above. */
SL_MUST_CHECK int sl_kube_config_find(
	struct sl_kube_config *out, const char *path, struct sl_error *err);
/* The same for a command typed by a user: it also runs the kubeconfig's program for credentials
 * (exec). context: the name of a context in the kubeconfig; NULL: the current one. */
SL_MUST_CHECK int sl_kube_config_choose(struct sl_kube_config *out, const char *path,
	const char *context, struct sl_error *err);

#endif
