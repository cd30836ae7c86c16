/* why: the state of a pod, what is in its way, and its Events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "cli/kubectl/kubectl.h"
#include "cli/line/table.h"
#include "cluster/kubernetes/claims/order.h"

static const char *text(const json_t *object, const char *key)
{
	return sl_kube_text_at(object, key, NULL);
}

static void print_row(void *context, const struct kubectl_row *row)
{
	char request[32], limit[32], resident[32], evicted[32];

	if (!row->is_known) {
		(void)printf("%s has %s of node %s; the node has not reported its state "
			     "yet.\n",
			(const char *)context, row->device, row->node);
		return;
	}
	(void)printf(
		"%s on %s of node %s: %s; request %s, limit %s; %s on the GPU, %s on "
		"the host.\n",
		(const char *)context, row->device, row->node, row->state,
		sl_bytes_format(row->request_bytes, request, sizeof(request)),
		sl_bytes_format(row->limit_bytes, limit, sizeof(limit)),
		sl_bytes_format(row->resident_bytes, resident, sizeof(resident)),
		sl_bytes_format(row->evicted_bytes, evicted, sizeof(evicted)));
}

/* The conditions that explain why it does not run: those of the schedulers and of Sluice. */
static void print_conditions(const json_t *pod)
{
	const json_t *all = sl_kube_at(pod, "status", "conditions", NULL);

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *one = json_array_get(all, i);
		const char *type = text(one, "type"), *message = text(one, "message");
		bool is_true = strcmp(text(one, "status"), "True") == 0;

		if (strcmp(type, "PodScheduled") == 0 && !is_true)
			(void)printf("Not scheduled: %s\n", message);
		else if (strcmp(type, SL_KUBE_PARKED_CONDITION) == 0 && is_true)
			(void)printf("Parked by the scheduler: %s\n",
				message[0] ? message : "it comes back by itself");
		else if (strncmp(type, "sluice.dev/", 11) == 0 && message[0] &&
			 strcmp(type, SL_KUBE_PARKED_CONDITION) != 0)
			(void)printf("%s: %s\n", type + 11, message);
	}
}

static void print_orders(const json_t *pod)
{
	const json_t *notes = sl_kube_at(pod, "metadata", "annotations", NULL);
	const char *limit = text(notes, SL_KUBE_LIMIT_ANNOTATION);

	if (strcmp(text(notes, SL_KUBE_PARK_ANNOTATION), "true") == 0)
		(void)printf(
			"Its owner wants it parked; kubectl sluice resume %s brings it "
			"back.\n",
			sl_kube_text_at(pod, "metadata", "name", NULL));
	if (limit[0])
		(void)printf("Its owner wants the limit %s.\n", limit);
}

static const char *last_of(const json_t *event)
{
	const char *last = text(event, "lastTimestamp");

	if (!last[0])
		last = sl_kube_text_at(event, "series", "lastObservedTime", NULL);
	return last[0] ? last : text(event, "eventTime");
}

static bool tells(const json_t *event)
{
	static const char *const others[] = {"FailedScheduling",
		"FailedPrepareDynamicResources", "FailedCreatePodSandBox"};
	const char *reason = text(event, "reason");

	for (size_t i = 0; i < SL_ARRAY_LEN(others); i++) {
		if (strcmp(reason, others[i]) == 0)
			return true;
	}
	return strcmp(sl_kube_text_at(event, "source", "component", NULL), "sluice") == 0;
}

static int by_time(const void *a, const void *b)
{
	const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;

	return strcmp(last_of(one), last_of(other));
}

static void print_event(const json_t *event)
{
	json_int_t count = json_integer_value(json_object_get(event, "count"));
	char age[16], span[16], often[64] = "";

	if (count > 1)
		(void)snprintf(often, sizeof(often), " (x%lld over %s)", (long long)count,
			sl_table_age(kubectl_age_ms(text(event, "firstTimestamp")), span,
				sizeof(span)));
	(void)printf("%6s ago%s  %s: %s.\n",
		sl_table_age(kubectl_age_ms(last_of(event)), age, sizeof(age)), often,
		text(event, "reason"), text(event, "message"));
}

static void print_events(const json_t *events)
{
	size_t count = 0, all = json_array_size(events);
	const json_t **told = calloc(all + 1, sizeof(*told));

	for (size_t i = 0; told && i < all; i++) {
		if (tells(json_array_get(events, i)))
			told[count++] = json_array_get(events, i);
	}
	if (told)
		qsort(told, count, sizeof(*told), by_time);
	if (count)
		(void)puts("Before:");
	for (size_t i = 0; i < count; i++)
		print_event(told[i]);
	free(told);
}

int kubectl_why(struct kubectl *k, const char *name)
{
	json_t *pod = NULL, *claims = NULL, *events = NULL;
	struct sl_error err = {0};
	int r = kubectl_pod(k, name, &pod, &claims, &err);

	if (r == 0)
		r = kubectl_events(k, pod, &events, &err);
	if (r == 0) {
		for (size_t i = 0; i < json_array_size(claims); i++)
			kubectl_rows(json_array_get(claims, i), print_row, (void *)name);
		if (!json_array_size(claims))
			(void)printf("%s has no GPU memory now: no claim of it is "
				     "allocated by gpu.sluice.dev (pod phase %s).\n",
				name, sl_kube_text_at(pod, "status", "phase", NULL));
		print_conditions(pod);
		print_orders(pod);
		print_events(events);
	}
	json_decref(events);
	json_decref(claims);
	json_decref(pod);
	return r == 0 ? EXIT_SUCCESS : kubectl_fail("%s", err.text);
}
