/*
 * set, park and resume write an annotation of the pod, so Kubernetes checks the user's rights. Then
 * they wait until the node confirms the change in the claim's status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "cli/kubectl/kubectl.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/api/quantity.h"

#define LOOK_EVERY (500 * SL_MS)

/* The order and the state that is waited for. */
struct order {
	struct kubectl *k;
	const char *name;       /* of the pod */
	const char *annotation; /* and its value, NULL: remove it */
	const char *value;
	const char *refusal; /* the reason of the Event that refuses it */
	uint64_t limit_bytes;
	bool (*is_done)(const struct order *order, const struct kubectl_row *row);
	/* Before the order. */
	bool was_so; /* the annotation was the same */
	json_t *events;
	/* Now. */
	size_t rows, done;
	struct kubectl_row last; /* one of those that are not done, else any */
};

static bool has_limit(const struct order *order, const struct kubectl_row *row)
{
	return row->is_known && row->limit_bytes == order->limit_bytes;
}

static bool has_left(const struct order *order, const struct kubectl_row *row)
{
	return strcmp(row->parked, "True") == 0;
}

static bool is_back(const struct order *order, const struct kubectl_row *row)
{
	return strcmp(row->parked, "False") == 0 &&
	       strcmp(row->parked_reason, "NotParked") == 0;
}

static void look(void *context, const struct kubectl_row *row)
{
	struct order *order = context;
	bool is_done = order->is_done(order, row);

	order->rows++;
	order->done += is_done;
	if (!is_done || order->rows == order->done)
		order->last = *row;
}

/* The pod's Event with that reason, or NULL. */
static const json_t *event_of(const json_t *events, const char *reason)
{
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);

		if (strcmp(sl_kube_text_at(event, "reason", NULL), reason) == 0)
			return event;
	}
	return NULL;
}

/* A refusal since the order, or an earlier refusal of the same order. */
static const char *refusal(const struct order *order, const json_t *events)
{
	const json_t *now = event_of(events, order->refusal);
	const json_t *before = event_of(order->events, order->refusal);
	const char *version = sl_kube_text_at(now, "metadata", "resourceVersion", NULL);

	if (!now || (!order->was_so &&
			    strcmp(version, sl_kube_text_at(before, "metadata",
						    "resourceVersion", NULL)) == 0))
		return NULL;
	return sl_kube_text_at(now, "message", NULL);
}

static int give(struct order *order, struct sl_error *err)
{
	json_t *value = order->value ? json_string(order->value) : json_null();
	json_t *body = json_pack(
		"{s{s{so}}}", "metadata", "annotations", order->annotation, value);
	json_t *pod = NULL;
	char path[640];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s",
		order->k->namespace, order->name);
	r = kubectl_ask(order->k, SL_KUBE_MERGE, path, body, &pod, err);
	json_decref(body);
	json_decref(pod);
	return r;
}

/* 0: not yet; 1: done; negative: refused (err). Claims stay for order->last. */
static int check(struct order *order, json_t **claims, struct sl_error *err)
{
	json_t *pod = NULL, *events = NULL;
	const char *no = NULL;
	int r;

	json_decref(*claims);
	*claims = NULL;
	r = kubectl_pod(order->k, order->name, &pod, claims, err);
	order->rows = order->done = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(*claims); i++)
		kubectl_rows(json_array_get(*claims, i), look, order);
	if (r == 0 && !order->rows) {
		sl_error_set(err, "pod %s has no GPU memory any more", order->name);
		r = -1;
	}
	if (r == 0 && order->done < order->rows)
		r = kubectl_events(order->k, pod, &events, err);
	if (events)
		no = refusal(order, events);
	if (no)
		sl_error_set(err, "node %s: %s", order->last.node, no);
	json_decref(events);
	json_decref(pod);
	return r != 0 || no ? -1 : order->done == order->rows;
}

/* As check(), but negative instead of 0 once the time is over. */
static int wait_for(struct order *order, json_t **claims, struct sl_error *err)
{
	sl_ns end = sl_clock_now() + order->k->timeout;

	for (;;) {
		int r = check(order, claims, err);

		if (r != 0)
			return r;
		if (sl_clock_now() >= end)
			break;
		sl_clock_sleep(LOOK_EVERY);
	}
	sl_error_set(err,
		"node %s has not confirmed it in time (%s now); the order stands: is "
		"sluice-kube running there? kubectl sluice why %s says what is in the "
		"way",
		order->last.node, order->last.state, order->name);
	return -1;
}

static int begin(struct order *order, json_t **claims, struct sl_error *err)
{
	json_t *pod = NULL;
	int r = kubectl_pod(order->k, order->name, &pod, claims, err);
	const char *before =
		sl_kube_text_at(pod, "metadata", "annotations", order->annotation, NULL);

	order->was_so = order->value && strcmp(before, order->value) == 0;
	for (size_t i = 0; r == 0 && i < json_array_size(*claims); i++)
		kubectl_rows(json_array_get(*claims, i), look, order);
	if (r == 0 && !order->rows) {
		sl_error_set(err,
			"pod %s has no GPU memory now: no claim of it is allocated by "
			"gpu.sluice.dev (pod phase %s)",
			order->name, sl_kube_text_at(pod, "status", "phase", NULL));
		r = -1;
	}
	if (r == 0 && order->limit_bytes &&
		order->limit_bytes < order->last.request_bytes) {
		sl_error_set(err, "--limit %s is below the request of %s; write more",
			order->value,
			sl_bytes_format(order->last.request_bytes, (char[32]){0}, 32));
		r = -1;
	}
	if (r == 0)
		r = kubectl_events(order->k, pod, &order->events, err);
	json_decref(pod);
	return r;
}

/* Gives the order and waits. 0, with order->last and its claims; or an exit status. */
static int carry_out(struct order *order, json_t **claims)
{
	struct sl_error err = {0};
	int r = begin(order, claims, &err);

	if (r == 0)
		r = give(order, &err);
	if (r == 0 && wait_for(order, claims, &err) < 0)
		r = -1;
	json_decref(order->events);
	return r == 0 ? 0 : kubectl_fail("%s", err.text);
}

int kubectl_set(struct kubectl *k, const char *name)
{
	struct order order = {.k = k,
		.name = name,
		.annotation = SL_KUBE_LIMIT_ANNOTATION,
		.value = k->limit,
		.refusal = "LimitRefused",
		.is_done = has_limit};
	struct sl_error err = {0};
	json_t *claims = NULL;
	char request[32], limit[32];
	int r;

	if (!k->limit)
		return kubectl_fail("set changes the limit: write set POD --limit 12Gi");
	if (!sl_kube_order_limit(k->limit, 0, 0, UINT64_MAX, &order.limit_bytes, &err))
		return kubectl_fail("%s", err.text);
	r = carry_out(&order, &claims);
	if (r == 0)
		(void)printf("%s: request %s, limit %s\n", name,
			sl_bytes_format(
				order.last.request_bytes, request, sizeof(request)),
			sl_bytes_format(order.last.limit_bytes, limit, sizeof(limit)));
	json_decref(claims);
	return r;
}

int kubectl_park(struct kubectl *k, const char *name)
{
	struct order order = {.k = k,
		.name = name,
		.annotation = SL_KUBE_PARK_ANNOTATION,
		.value = "true",
		.refusal = "ParkRefused",
		.is_done = has_left};
	json_t *claims = NULL;
	char evicted[32];
	int r = carry_out(&order, &claims);

	if (r == 0)
		(void)printf("%s is parked with %s on the host; kubectl sluice resume %s "
			     "brings it back\n",
			name,
			sl_bytes_format(
				order.last.evicted_bytes, evicted, sizeof(evicted)),
			name);
	json_decref(claims);
	return r;
}

int kubectl_resume(struct kubectl *k, const char *name)
{
	struct order order = {.k = k,
		.name = name,
		.annotation = SL_KUBE_PARK_ANNOTATION,
		.refusal = "ParkRefused",
		.is_done = is_back};
	json_t *claims = NULL;
	int r = carry_out(&order, &claims);

	if (r == 0)
		(void)printf("%s is resumed: %s\n", name, order.last.state);
	json_decref(claims);
	return r;
}
