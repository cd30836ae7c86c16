/*
 * quantity - "6Gi", "1500M", "1e9", "100m": how Kubernetes writes amounts
 *
 * The forms are those of resource.Quantity: a decimal number and an optional suffix. The suffix is
 * Ki Mi Gi Ti Pi Ei (powers of 1024), n u m k M G T P E (powers of 1000), or an exponent (e3, E-3).
 * Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_QUANTITY_H
#define SL_CLUSTER_KUBERNETES_API_QUANTITY_H

#include "base/sl.h"

/* Rounded up to a whole number, as Kubernetes does. False: not a quantity, negative, or beyond
 * 2^62. */
SL_MUST_CHECK bool sl_kube_quantity_parse(const char *text, uint64_t *out);
/* The same in thousandths: "500m" is 500, "2" is 2000. */
SL_MUST_CHECK bool sl_kube_quantity_parse_milli(const char *text, uint64_t *out);

#endif
