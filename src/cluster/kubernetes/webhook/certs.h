/*
 * certs - the webhook's own authority and the certificate that it serves with
 *
 * An authority (5 years) signs a certificate (90 days) for the names by which the API server calls.
 * Either is made anew when a third of its life is left, or when it is missing or no good. A new
 * authority goes in front of the one before it, which stays: the certificate that it signed is
 * served on until its own time, so that clients that do not have the new authority yet lose
 * nothing. Times are by the wall clock, in seconds since 1970. No state.
 */
#ifndef SL_CLUSTER_KUBERNETES_WEBHOOK_CERTS_H
#define SL_CLUSTER_KUBERNETES_WEBHOOK_CERTS_H

#include <time.h>

#include "base/error.h"

/* PEM, owned; NULL where there is none. */
struct sl_webhook_certs {
	char *authorities;   /* one or two certificates, the newest first */
	char *authority_key; /* of the first */
	char *certificate, *key;
};

#define SL_WEBHOOK_AUTHORITY_S   (5 * 365 * 86400ll)
#define SL_WEBHOOK_CERTIFICATE_S (90 * 86400ll)

void sl_webhook_certs_fini(struct sl_webhook_certs *certs);
/* Host names and addresses, NULL at the end. *changed: something was made anew; what was good
 * stays. 0 or negative errno (err). */
SL_MUST_CHECK int sl_webhook_certs_renew(struct sl_webhook_certs *certs,
	const char *const *names, time_t now, bool *changed, struct sl_error *err);

#endif
