/*
 * queue - see the header
 */
#include "cluster/kubernetes/scheduler/queue.h"

#include <stdio.h>

#include "cluster/kubernetes/api/parse.h"

/* KAI's value for no bound, and for the priority of a Queue without one. */
#define UNBOUNDED (-1.0)
#define PRIORITY  100
/* Far beyond any cluster. */
#define MOST 1e9

static double number_at(const json_t *gpu, const char *key)
{
	double number = json_number_value(json_object_get(gpu, key));

	return number > MOST ? MOST : number;
}

/* In the form of a Project: thousandths of a GPU, rounded up. Below 0: no bound. */
static json_t *amount(double gpus)
{
	double milli = gpus * 1000;
	long long whole = (long long)milli;
	char text[32];

	(void)snprintf(text, sizeof(text), "%lldm", whole + (milli > (double)whole));
	return json_string(text);
}

/* A whole number; a fraction rounds up to 1. */
static json_t *weight(double given)
{
	return json_integer(given > 0 && given < 1 ? 1 : (json_int_t)(given + 0.5));
}

json_t *sl_queue_to_project(const json_t *queue)
{
	const json_t *spec = json_object_get(queue, "spec");
	const json_t *gpu = sl_kube_at(spec, "resources", "gpu", NULL);
	const json_t *priority = json_object_get(spec, "priority");
	double quota = number_at(gpu, "quota"), limit = number_at(gpu, "limit");
	json_t *made = json_object();

	(void)json_object_set_new(
		made, "quota", quota == UNBOUNDED ? json_integer(-1) : amount(quota));
	if (quota != UNBOUNDED && limit != UNBOUNDED)
		(void)json_object_set_new(
			made, "limit", amount(limit > quota ? limit : quota));
	(void)json_object_set_new(
		made, "weight", weight(number_at(gpu, "overQuotaWeight")));
	(void)json_object_set_new(
		made, "parent", json_string(sl_kube_text_at(spec, "parentQueue", NULL)));
	(void)json_object_set_new(made, "priority",
		json_integer(priority ? json_integer_value(priority) - PRIORITY : 0));
	return json_pack(
		"{sO so}", "metadata", json_object_get(queue, "metadata"), "spec", made);
}
