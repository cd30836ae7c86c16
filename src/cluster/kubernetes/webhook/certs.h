/*
 * certs - the webhook's own authority and its server certificate
 *
 * An authority (5 years) signs a certificate (90 days) for the names by which the API server calls.
 * Each is renewed when less than a third of its life is left, or when it is missing or invalid. A
 * new authority is put in front of the previous one, which stays. A certificate signed by the
 * previous authority remains in use until it is renewed, so clients without the new authority can
 * still connect. Times are wall-clock seconds since 1970. No state.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_CERTS_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_CERTS_H

#include <time.h>

#include "base/error.h"

/* PEM, owned; NULL if absent. */
struct sl_webhook_certs {
	char *authorities;   /* one or two certificates, the newest first */
	char *authority_key; /* of the first */
	char *certificate, *key;
};

#define SL_WEBHOOK_AUTHORITY_S   (5 * 365 * 86400ll)
#define SL_WEBHOOK_CERTIFICATE_S (90 * 86400ll)

void sl_webhook_certs_fini(struct sl_webhook_certs *certs);
/* names: host names and addresses, ending with NULL. *changed: something was renewed. On an error
 * valid parts stay. 0 or negative errno (err). */
SL_MUST_CHECK int sl_webhook_certs_renew(struct sl_webhook_certs *certs,
	const char *const *names, time_t now, bool *changed, struct sl_error *err);

#endif
