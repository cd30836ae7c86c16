/*
 * keys - certificates in a Secret, and the authority where the API server looks for it
 *
 * The Secret sluice/sluice-webhook has the webhook's certificates, and the
 * MutatingWebhookConfiguration "sluice" says by which names the API server calls. Both are watched.
 * What is missing or due in the Secret is made and written back; of two replicas that do so at once
 * the API server takes one, and the other reads what that wrote. The configuration's caBundle is
 * set to the Secret's authorities wherever it differs. Only then are certificates handed out.
 *
 * Looks again every 10 minutes, since time passes. Loop's thread; as api.h.
 *
 * Needs: get, list, watch, update that secret; list, watch, patch that configuration.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_KEYS_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_KEYS_H

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/webhook/certs.h"

#define SL_WEBHOOK_NAME      "sluice" /* of the configuration */
#define SL_WEBHOOK_NAMESPACE "sluice" /* of the Secret */
#define SL_WEBHOOK_SECRET    "sluice-webhook"

struct sl_webhook_keys;

/* Certificates to serve with from now on; the first time, and when they have changed. */
typedef void (*sl_webhook_keys_fn)(void *context, const struct sl_webhook_certs *certs);

/* 0 or negative errno. */
SL_MUST_CHECK int sl_webhook_keys_new(struct sl_webhook_keys **out, sd_event *loop,
	struct sl_kube *kube, sl_webhook_keys_fn fn, void *context);
/* Returns NULL. */
struct sl_webhook_keys *sl_webhook_keys_free(struct sl_webhook_keys *keys);

#endif
