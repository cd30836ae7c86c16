/*
 * webhook - the admission webhook for new pods and claims
 *
 * Serves reviews over HTTPS (server.h) with certificates of its own (keys.h), and answers them by
 * admit.h. The webhook watches the GPUs that nodes publish. For each relevant review it reads the
 * namespace and the pod's claims, and creates the templates in the answer. Any failure becomes a
 * refusal, after which the caller may try again. It has no other state; several replicas may run.
 * One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_WEBHOOK_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_WEBHOOK_H

#include <systemd/sd-event.h>

#include "base/error.h"
#include "cluster/kubernetes/api/config.h"

struct sl_webhook;

/* Takes config, in every case; listen as in server.h. 0 or negative errno (err). */
SL_MUST_CHECK int sl_webhook_new(struct sl_webhook **out, sd_event *loop,
	struct sl_kube_config *config, const char *listen, struct sl_error *err);
/* Returns NULL. */
struct sl_webhook *sl_webhook_free(struct sl_webhook *webhook);
/* The port of the listening socket. */
uint16_t sl_webhook_port(const struct sl_webhook *webhook);

/* sluice-kube webhook ...: argv[0] is the role. Returns the exit status. */
int sl_webhook_main(int argc, char **argv);

#endif
