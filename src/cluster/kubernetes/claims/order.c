/*
 * order - see the header
 */
#include "cluster/kubernetes/claims/order.h"

#include <string.h>

#include "base/amount.h"
#include "cluster/kubernetes/claims/claimspec.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/slice.h"

/* Users often write "8GiB" or "8GB", which are no quantities. */
static bool says_bytes(const char *text, char *better, size_t size)
{
	size_t length = strlen(text);
	uint64_t ignored;

	if (length < 2 || length >= size || text[length - 1] != 'B')
		return false;
	memcpy(better, text, length - 1);
	better[length - 1] = '\0';
	return sl_kube_quantity_parse(better, &ignored);
}

bool sl_kube_order_limit(const char *text, uint64_t request_bytes, uint64_t most_bytes,
	uint64_t bound_bytes, uint64_t *limit_bytes, struct sl_error *err)
{
	char better[64], amount[32], bound[SL_KUBE_QUANTITY_MAX];
	uint64_t bytes;

	if (!sl_kube_quantity_parse(text, &bytes)) {
		if (says_bytes(text, better, sizeof(better)))
			sl_error_set(err,
				SL_KUBE_LIMIT_ANNOTATION
				": %.60s is no amount of Kubernetes; write %s",
				text, better);
		else
			sl_error_set(err,
				SL_KUBE_LIMIT_ANNOTATION
				": '%.60s' is no amount; write one such as 8Gi "
				"(GiB) or 8G (GB)",
				text);
		return false;
	}
	if (bytes < request_bytes) {
		sl_error_set(err,
			SL_KUBE_LIMIT_ANNOTATION
			": %.60s (%s) is below the request; write at least %s%s",
			text, sl_bytes_format(bytes, amount, sizeof(amount)),
			sl_kube_quantity(request_bytes, bound),
			bytes < SL_MIB ? ", with its unit: Mi or Gi" : "");
		return false;
	}
	if (most_bytes && bytes > most_bytes) {
		sl_error_set(err,
			SL_KUBE_LIMIT_ANNOTATION
			": %.60s is above what the GPU can share; write at most %s",
			text, sl_kube_quantity(most_bytes / SL_MIB * SL_MIB, bound));
		return false;
	}
	if (bytes > bound_bytes) {
		sl_error_set(err,
			SL_KUBE_LIMIT_ANNOTATION
			": %.60s is above what the namespace allows "
			"(sluice.dev/max-limit); write at most %s",
			text, sl_kube_quantity(bound_bytes, bound));
		return false;
	}
	*limit_bytes = bytes;
	return true;
}

bool sl_kube_order_bound(
	const json_t *namespace, uint64_t *bound_bytes, struct sl_error *err)
{
	struct sl_bounds bounds;
	bool is_right = sl_bounds_read(namespace, &bounds, err);

	*bound_bytes = bounds.max_limit;
	return is_right;
}

static bool is_ordered(const json_t *pod)
{
	const json_t *conditions = sl_kube_at(pod, "status", "conditions", NULL);

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *one = json_array_get(conditions, i);

		if (strcmp(sl_kube_text_at(one, "type", NULL),
			    SL_KUBE_PARKED_CONDITION) == 0)
			return strcmp(sl_kube_text_at(one, "status", NULL), "True") == 0;
	}
	return false;
}

bool sl_kube_order_park(const json_t *pod, struct sl_error *err)
{
	const char *text = sl_kube_text_at(
		pod, "metadata", "annotations", SL_KUBE_PARK_ANNOTATION, NULL);

	if (strcmp(text, "true") == 0)
		return true;
	if (text[0] && strcmp(text, "false") != 0)
		sl_error_set(err,
			SL_KUBE_PARK_ANNOTATION
			": '%.60s' is neither true nor false, and counts as false; "
			"write \"true\", or remove it",
			text);
	return is_ordered(pod);
}

static void add(json_t *names, const char *name)
{
	if (name[0])
		(void)json_array_append_new(names, json_string(name));
}

bool sl_kube_order_moves(const json_t *object, struct sl_error *err)
{
	const char *text = sl_kube_text_at(
		object, "metadata", "annotations", SL_KUBE_MOVE_ANNOTATION, NULL);

	if (text[0] && strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		sl_error_set(err,
			SL_KUBE_MOVE_ANNOTATION " of %.100s is '%.40s'; write off or on",
			sl_kube_text_at(object, "metadata", "name", NULL), text);
	return !text[0] || strcmp(text, "on") == 0;
}

json_t *sl_kube_order_claims(const json_t *pod)
{
	const json_t *own = sl_kube_at(pod, "spec", "resourceClaims", NULL);
	const json_t *made = sl_kube_at(pod, "status", "resourceClaimStatuses", NULL);
	json_t *names = json_array();

	for (size_t i = 0; names && i < json_array_size(own); i++)
		add(names, sl_kube_text_at(
				   json_array_get(own, i), "resourceClaimName", NULL));
	for (size_t i = 0; names && i < json_array_size(made); i++)
		add(names, sl_kube_text_at(
				   json_array_get(made, i), "resourceClaimName", NULL));
	/* Of limits: {sluice.dev/gpu: 1}. */
	if (names)
		add(names, sl_kube_text_at(pod, "status", "extendedResourceClaimStatus",
				   "resourceClaimName", NULL));
	return names;
}
