/*
 * keys - keeps certificates in a Secret, and their authority in the webhook's configuration
 *
 * The Secret sluice/sluice-webhook has the webhook's certificates. The MutatingWebhookConfiguration
 * "sluice" has the names by which the API server calls. Both are watched. Missing or expiring
 * certificates are made and written to the Secret; if two replicas do so at once the API server
 * accepts one, and the other replica reads its result. The configuration's caBundle is set to the
 * Secret's authorities whenever it differs. The server gets new certificates only after that.
 *
 * The certificates are checked again every 10 minutes, since they expire. Loop's thread; as api.h.
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

/* The certificates to serve with; called at first and after each change. */
typedef void (*sl_webhook_keys_fn)(void *context, const struct sl_webhook_certs *certs);

/* 0 or negative errno. */
SL_MUST_CHECK int sl_webhook_keys_new(struct sl_webhook_keys **out, sd_event *loop,
	struct sl_kube *kube, sl_webhook_keys_fn fn, void *context);
/* Returns NULL. */
struct sl_webhook_keys *sl_webhook_keys_free(struct sl_webhook_keys *keys);

#endif
