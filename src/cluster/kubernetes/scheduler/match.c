/*
 * match - see the header
 */
#include "cluster/kubernetes/scheduler/match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

#define OWN "node.kubernetes.io/"

static bool is_own(const json_t *taint)
{
	return strncmp(sl_kube_text_at(taint, "key", NULL), OWN, strlen(OWN)) == 0;
}

static json_t *without_own(const json_t *list)
{
	json_t *rest = json_array(), *one;
	size_t i;

	json_array_foreach((json_t *)list, i, one)
	{
		if (!is_own(one))
			(void)json_array_append(rest, one);
	}
	return rest;
}

static void put(json_t *object, const char *key, json_t *value)
{
	if (json_object_size(value) || json_array_size(value))
		(void)json_object_set(object, key, value);
}

json_t *sl_match_rules(const json_t *pod)
{
	const json_t *spec = json_object_get(pod, "spec");
	json_t *tolerations = without_own(json_object_get(spec, "tolerations"));
	json_t *rules = json_object();

	put(rules, "selector", json_object_get(spec, "nodeSelector"));
	put(rules, "terms",
		sl_kube_at(spec, "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution",
			"nodeSelectorTerms", NULL));
	put(rules, "tolerations", tolerations);
	json_decref(tolerations);
	return rules;
}

char *sl_match_text(const json_t *rules)
{
	return json_dumps(rules, JSON_COMPACT | JSON_SORT_KEYS);
}

json_t *sl_match_node(const json_t *node)
{
	return json_pack("{s:s,s:O*,s:o}", "name",
		sl_kube_text_at(node, "metadata", "name", NULL), "labels",
		sl_kube_at(node, "metadata", "labels", NULL), "taints",
		without_own(sl_kube_at(node, "spec", "taints", NULL)));
}

/* --- Labels. ------------------------------------------------------------------------------ */

static bool is_among(const json_t *values, const char *text)
{
	const json_t *value;
	size_t i;

	json_array_foreach(values, i, value)
	{
		if (json_string_value(value) &&
			strcmp(json_string_value(value), text) == 0)
			return true;
	}
	return false;
}

static bool whole(const char *text, long long *out)
{
	char *end = NULL;

	errno = 0;
	*out = text ? strtoll(text, &end, 10) : 0;
	return text && *text && !*end && !errno;
}

/* Gt and Lt: both are whole numbers. */
static bool compares(const char *text, const json_t *values, bool greater)
{
	long long a, b;

	return whole(text, &a) &&
	       whole(json_string_value(json_array_get(values, 0)), &b) &&
	       (greater ? a > b : a < b);
}

/* text: NULL if the node lacks the label. */
static bool expression_holds(const json_t *expression, const char *text)
{
	const char *op = sl_kube_text_at(expression, "operator", NULL);
	const json_t *values = json_object_get(expression, "values");

	if (strcmp(op, "In") == 0)
		return text && is_among(values, text);
	if (strcmp(op, "NotIn") == 0)
		return !text || !is_among(values, text);
	if (strcmp(op, "Exists") == 0)
		return text;
	if (strcmp(op, "DoesNotExist") == 0)
		return !text;
	if (strcmp(op, "Gt") == 0 || strcmp(op, "Lt") == 0)
		return compares(text, values, op[0] == 'G');
	return false;
}

static bool term_holds(const json_t *term, const json_t *node)
{
	const json_t *labels = json_object_get(node, "labels");
	const json_t *expressions = json_object_get(term, "matchExpressions"), *one;
	const json_t *fields = json_object_get(term, "matchFields");
	size_t i;

	json_array_foreach(expressions, i, one)
	{
		if (!expression_holds(one, json_string_value(json_object_get(labels,
						   sl_kube_text_at(one, "key", NULL)))))
			return false;
	}
	/* There is only one such field. */
	json_array_foreach(fields, i, one)
	{
		if (strcmp(sl_kube_text_at(one, "key", NULL), "metadata.name") != 0 ||
			!expression_holds(one, sl_kube_text_at(node, "name", NULL)))
			return false;
	}
	/* An empty term matches nothing. */
	return json_array_size(expressions) || json_array_size(fields);
}

static bool labels_match(const json_t *rules, const json_t *node)
{
	const json_t *terms = json_object_get(rules, "terms"), *value;
	const char *key;
	size_t i;

	json_object_foreach(json_object_get(rules, "selector"), key, value)
	{
		const char *has =
			json_string_value(sl_kube_at(node, "labels", key, NULL));

		if (!has || !json_string_value(value) ||
			strcmp(has, json_string_value(value)) != 0)
			return false;
	}
	json_array_foreach(terms, i, value)
	{
		if (term_holds(value, node))
			return true;
	}
	return !json_array_size(terms);
}

/* --- Taints. ------------------------------------------------------------------------------ */

static bool is_tolerated(const json_t *taint, const json_t *toleration)
{
	const char *op = sl_kube_text_at(toleration, "operator", NULL);
	const char *key = sl_kube_text_at(toleration, "key", NULL);
	const char *effect = sl_kube_text_at(toleration, "effect", NULL);
	bool exists = strcmp(op, "Exists") == 0;

	if (effect[0] && strcmp(effect, sl_kube_text_at(taint, "effect", NULL)) != 0)
		return false;
	if (!key[0])
		return exists;
	if (strcmp(key, sl_kube_text_at(taint, "key", NULL)) != 0)
		return false;
	if (exists)
		return true;
	return (!op[0] || strcmp(op, "Equal") == 0) &&
	       strcmp(sl_kube_text_at(toleration, "value", NULL),
		       sl_kube_text_at(taint, "value", NULL)) == 0;
}

static bool taint_is_fine(const json_t *rules, const json_t *taint)
{
	const json_t *toleration;
	size_t i;

	if (strcmp(sl_kube_text_at(taint, "effect", NULL), "PreferNoSchedule") == 0)
		return true;
	json_array_foreach(json_object_get(rules, "tolerations"), i, toleration)
	{
		if (is_tolerated(taint, toleration))
			return true;
	}
	return false;
}

bool sl_match(const json_t *rules, const json_t *node)
{
	const json_t *taint;
	size_t i;

	json_array_foreach(json_object_get(node, "taints"), i, taint)
	{
		if (!taint_is_fine(rules, taint))
			return false;
	}
	return labels_match(rules, node);
}
