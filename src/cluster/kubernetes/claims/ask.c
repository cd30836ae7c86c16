/*
 * ask - reads each family separately, then combines them
 */
#include "cluster/kubernetes/claims/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/claims/units.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/share.h"

#define PREFIX         "nvidia.com/container."
#define REQUEST        ".gpu-memory.request"
#define LIMIT          ".gpu-memory.limit"
#define NAME_KEY       "gpu-fraction-container-name"
#define COUNT_KEY      "gpu-fraction-num-devices"
#define COMPUTE_KEY    "sluice.dev/compute"
#define COMPUTE_LIMIT  "sluice.dev/compute-limit"
#define LIMIT_VARIABLE "RUNAI_GPU_MEMORY_LIMIT"
/* A DNS label. */
#define CONTAINER_MAX 63

static const char *const lists[] = {"initContainers", "containers"};

struct reader {
	const json_t *pod, *annotations;
	struct sl_asks *out;
	struct sl_error *err;
};

SL_PRINTF(2, 3)
static bool bad(struct reader *reader, const char *format, ...)
{
	char words[SL_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	sl_error_set(reader->err, "%s", words);
	return false;
}

/* NULL: absent. A value that is not text becomes "", which is no amount. */
static const char *annotation(const struct reader *reader, const char *key)
{
	const json_t *value = json_object_get(reader->annotations, key);

	return value ? sl_kube_text_at(reader->annotations, key, NULL) : NULL;
}

/* --- amounts ------------------------------------------------------------------------------- */

static bool read_fraction(
	struct reader *reader, const char *key, const char *text, struct sl_amount *out)
{
	struct sl_error why = {0};

	if (sl_amount_parse(text, out, &why) == SL_AMOUNT_OK &&
		out->kind == SL_AMOUNT_FRACTION)
		return true;
	return bad(reader,
		"%s is \"%.40s\": write a part of one GPU, above 0 and at most 1, such "
		"as "
		"\"0.25\"; whole GPUs are limits: {sluice.dev/gpu: N}",
		key, text);
}

static uint64_t mebi_of(uint64_t bytes)
{
	return bytes / SL_MIB + (bytes % SL_MIB != 0);
}

static void set_mebi(struct sl_amount *out, uint64_t mebi)
{
	*out = (struct sl_amount){.kind = SL_AMOUNT_BYTES, .value = mebi * SL_MIB};
}

static bool read_mebi(
	struct reader *reader, const char *key, const char *text, struct sl_amount *out)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t bytes = 0;

	if (digits > 0 && digits <= 12 && !text[digits] && strtoull(text, NULL, 10) > 0) {
		set_mebi(out, strtoull(text, NULL, 10));
		return true;
	}
	if (sl_kube_quantity_parse(text, &bytes) && bytes >= SL_MIB)
		return bad(reader,
			"%s is \"%.40s\": it is a plain number of MiB; write \"%llu\"",
			key, text, (unsigned long long)mebi_of(bytes));
	return bad(reader,
		"%s is \"%.40s\": write a number of MiB, without a unit, such as "
		"\"8192\" for 8 GiB",
		key, text);
}

static bool read_quantity(
	struct reader *reader, const char *key, const char *text, struct sl_amount *out)
{
	uint64_t bytes = 0;

	if (!sl_kube_quantity_parse(text, &bytes))
		return bad(reader,
			"%s is \"%.40s\": write an amount with its unit, such as "
			"\"8Gi\"",
			key, text);
	if (bytes < SL_MIB && bytes > 0 && !text[strspn(text, "0123456789")])
		return bad(reader,
			"%s is \"%.40s\", which is bytes; write \"%.40sMi\" for MiB", key,
			text, text);
	if (bytes < SL_MIB)
		return bad(reader, "%s is \"%.40s\": write 1Mi or more", key, text);
	set_mebi(out, mebi_of(bytes));
	return true;
}

static bool check_order(struct reader *reader, const char *what, const struct sl_ask *ask)
{
	char request[32], limit[32];

	if (ask->limit.kind == SL_AMOUNT_UNSET || ask->limit.value >= ask->request.value)
		return true;
	return bad(reader,
		"the limit of %s is %s, below its request of %s: write at least that, or "
		"leave the limit out",
		what, sl_amount_format(&ask->limit, limit, sizeof(limit)),
		sl_amount_format(&ask->request, request, sizeof(request)));
}

/* A limit may be written in several places; they must agree. */
static bool take_limit(struct reader *reader, struct sl_ask *ask, const char *key,
	const char *text, bool is_fraction)
{
	struct sl_amount limit = {0};

	if (!text)
		return true;
	if (is_fraction ? !read_fraction(reader, key, text, &limit)
			: !read_quantity(reader, key, text, &limit))
		return false;
	if (ask->limit.kind != SL_AMOUNT_UNSET && ask->limit.value != limit.value)
		return bad(reader,
			"%s is \"%.40s\", but the limit is given otherwise as well: keep "
			"one of them",
			key, text);
	ask->limit = limit;
	return true;
}

/* --- containers ---------------------------------------------------------------------------- */

static const json_t *container_at(const struct reader *reader, size_t list, size_t index)
{
	return json_array_get(sl_kube_at(reader->pod, "spec", lists[list], NULL), index);
}

static bool find_container(
	const struct reader *reader, const char *name, struct sl_ask *ask)
{
	for (size_t list = 0; list < SL_ARRAY_LEN(lists); list++) {
		const json_t *container;

		for (size_t i = 0; (container = container_at(reader, list, i)); i++) {
			const char *its = sl_kube_text_at(container, "name", NULL);

			if (strcmp(its, name) != 0)
				continue;
			ask->list = lists[list];
			ask->index = i;
			ask->container = its;
			return true;
		}
	}
	return false;
}

static bool no_container(struct reader *reader, const char *key, const char *name)
{
	char names[200] = "";
	size_t used = 0;
	const json_t *container;

	for (size_t list = 0; list < SL_ARRAY_LEN(lists); list++)
		for (size_t i = 0; (container = container_at(reader, list, i)) &&
				   used < sizeof(names);
			i++)
			used += (size_t)snprintf(names + used, sizeof(names) - used,
				"%s%s", used ? ", " : "",
				sl_kube_text_at(container, "name", NULL));
	return bad(reader, "%.120s: the pod has no container \"%.63s\"; it has: %s", key,
		name, names);
}

static struct sl_ask *ask_of(struct reader *reader, const char *container)
{
	struct sl_asks *asks = reader->out;

	for (size_t i = 0; i < asks->count; i++) {
		if (strcmp(asks->of[i].container, container) == 0)
			return &asks->of[i];
	}
	return NULL;
}

/* --- KAI and Run:ai ------------------------------------------------------------------------ */

static const char *variable(const struct reader *reader, const struct sl_ask *ask)
{
	const json_t *env = sl_kube_at(
		json_array_get(
			sl_kube_at(reader->pod, "spec", ask->list, NULL), ask->index),
		"env", NULL);
	const json_t *entry;

	for (size_t i = 0; (entry = json_array_get(env, i)); i++) {
		if (strcmp(sl_kube_text_at(entry, "name", NULL), LIMIT_VARIABLE) == 0 &&
			json_object_get(entry, "value"))
			return sl_kube_text_at(entry, "value", NULL);
	}
	return NULL;
}

static bool read_limits(struct reader *reader, struct sl_ask *ask, bool is_fraction)
{
	static const char *const keys[2][2] = {{"gpu-memory.limit", "gpu-memory-limit"},
		{"gpu-fraction.limit", "gpu-fraction-limit"}};

	for (size_t i = 0; i < 2; i++) {
		const char *stray = keys[!is_fraction][i];

		if (annotation(reader, stray))
			return bad(reader, "%s goes with %s, which is not given", stray,
				is_fraction ? "gpu-memory" : "gpu-fraction");
		if (!take_limit(reader, ask, keys[is_fraction][i],
			    annotation(reader, keys[is_fraction][i]), is_fraction))
			return false;
	}
	return take_limit(
		reader, ask, LIMIT_VARIABLE, variable(reader, ask), is_fraction);
}

/* Annotations that mean nothing without a request. */
static bool check_strays(struct reader *reader)
{
	static const char *const keys[] = {"gpu-fraction.limit", "gpu-fraction-limit",
		"gpu-memory.limit", "gpu-memory-limit"};

	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		if (annotation(reader, keys[i]))
			return bad(reader,
				"%s is given, and no request: write %s as well", keys[i],
				i < 2 ? "gpu-fraction" : "gpu-memory");
	}
	return true;
}

static bool read_kai(struct reader *reader)
{
	const char *fraction = annotation(reader, "gpu-fraction");
	const char *memory = annotation(reader, "gpu-memory");
	const char *name = annotation(reader, NAME_KEY);
	struct sl_ask ask = {.gpus = 1};

	if (!fraction && !memory)
		return check_strays(reader);
	if (fraction && memory)
		return bad(reader,
			"gpu-fraction and gpu-memory are both given: keep one of them");
	if (!name)
		name = sl_kube_text_at(container_at(reader, 1, 0), "name", NULL);
	if (!find_container(reader, name, &ask))
		return no_container(reader, NAME_KEY, name);
	if (fraction ? !read_fraction(reader, "gpu-fraction", fraction, &ask.request)
		     : !read_mebi(reader, "gpu-memory", memory, &ask.request))
		return false;
	if (!read_limits(reader, &ask, fraction))
		return false;
	if (!check_order(reader, fraction ? "gpu-fraction" : "gpu-memory", &ask))
		return false;
	reader->out->of[reader->out->count++] = ask;
	return true;
}

/* --- kai-gpu-fractioning ------------------------------------------------------------------- */

/* The container's name in a key of this family, and whether the key is the limit; false: another
 * key. */
static bool split_key(const char *key, char name[CONTAINER_MAX + 1], bool *is_limit)
{
	static const char *const ends[] = {REQUEST, LIMIT};
	size_t length = strlen(key), before = strlen(PREFIX);

	if (strncmp(key, PREFIX, before) != 0)
		return false;
	for (size_t i = 0; i < SL_ARRAY_LEN(ends); i++) {
		size_t behind = strlen(ends[i]);

		if (length < before + behind ||
			strcmp(key + length - behind, ends[i]) != 0)
			continue;
		(void)snprintf(name, CONTAINER_MAX + 1, "%.*s",
			(int)sl_min_u64(length - before - behind, CONTAINER_MAX),
			key + before);
		*is_limit = i == 1;
		return true;
	}
	return false;
}

/* A misspelt key would be ignored, and the pod would run without a GPU. */
static bool is_misspelt(const char *key)
{
	return strncmp(key, PREFIX, strlen(PREFIX)) == 0 &&
	       strstr(key + strlen(PREFIX), ".gpu-memory");
}

/* Stores a container's amount in its ask, which the first family may have made. */
static bool merge(struct reader *reader, const char *key, const struct sl_ask *found,
	const struct sl_amount *amount, bool is_limit)
{
	struct sl_ask *ask = ask_of(reader, found->container);
	struct sl_amount *mine;

	if (!ask) {
		if (reader->out->count == SL_ASKS_MAX)
			return bad(reader,
				"more than %d containers ask for GPU memory; ask for "
				"fewer",
				SL_ASKS_MAX);
		ask = &reader->out->of[reader->out->count++];
		*ask = *found;
	}
	if (ask->request.kind == SL_AMOUNT_FRACTION)
		return bad(reader,
			"gpu-fraction and %.150s are both given: keep one of them", key);
	mine = is_limit ? &ask->limit : &ask->request;
	if (mine->kind != SL_AMOUNT_UNSET && mine->value != amount->value)
		return bad(reader,
			"%.150s and gpu-memory contradict each other: keep one of them, "
			"or make both say the same",
			key);
	*mine = *amount;
	return true;
}

static bool read_fractioning(struct reader *reader)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)reader->annotations, key, value)
	{
		const char *text = json_string_value(value);
		struct sl_ask found = {.gpus = 1};
		struct sl_amount amount = {0};
		char name[CONTAINER_MAX + 1];
		bool is_limit = false;

		if (!split_key(key, name, &is_limit)) {
			if (is_misspelt(key))
				return bad(reader,
					"%.150s says nothing: write " PREFIX
					"NAME" REQUEST " or " PREFIX "NAME" LIMIT,
					key);
			continue;
		}
		if (!find_container(reader, name, &found))
			return no_container(reader, key, name);
		if (!read_quantity(reader, key, text ? text : "", &amount) ||
			!merge(reader, key, &found, &amount, is_limit))
			return false;
	}
	return true;
}

/* --- both ---------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct sl_ask *one = a, *two = b;
	int order = strcmp(two->list, one->list); /* init containers first */

	return order ? order : (one->index > two->index) - (one->index < two->index);
}

/* kai-gpu-fractioning: the request or the limit stands for both. KAI leaves the limit open. */
static bool complete(struct reader *reader, bool has_kai)
{
	struct sl_asks *asks = reader->out;

	if (has_kai && asks->count > 1)
		return bad(reader,
			"%s and " PREFIX "... are for different containers: keep one of "
			"them",
			annotation(reader, "gpu-memory") ? "gpu-memory" : "gpu-fraction");
	for (size_t i = 0; i < asks->count; i++) {
		struct sl_ask *ask = &asks->of[i];

		if (ask->request.kind == SL_AMOUNT_UNSET)
			ask->request = ask->limit;
		if (ask->limit.kind == SL_AMOUNT_UNSET && !has_kai)
			ask->limit = ask->request;
		if (!check_order(reader, ask->container, ask))
			return false;
	}
	return true;
}

/* The words that both families have in KAI. */
static bool read_common(struct reader *reader)
{
	const char *name = annotation(reader, NAME_KEY);
	const char *count = annotation(reader, COUNT_KEY);
	struct sl_asks *asks = reader->out;

	if (!name && !count)
		return true;
	if (asks->count == 0)
		return bad(reader,
			"%s is given, and no request: write gpu-fraction or "
			"gpu-memory as well",
			name ? NAME_KEY : COUNT_KEY);
	if (name && (asks->count > 1 || strcmp(asks->of[0].container, name) != 0))
		return bad(reader,
			NAME_KEY " is \"%.63s\", but container \"%.63s\" asks: make both "
				 "the same",
			name, asks->of[0].container);
	if (!count)
		return true;
	if (asks->count > 1)
		return bad(reader, COUNT_KEY " is for one container, and several ask: "
					     "leave it out");
	if (strlen(count) != 1 || *count < '1' || *count > '0' + SL_SHARE_DEVICES)
		return bad(reader, COUNT_KEY " is \"%.40s\": write a number from 1 to %d",
			count, SL_SHARE_DEVICES);
	asks->of[0].gpus = (uint32_t)(*count - '0');
	return true;
}

static bool read_percent(struct reader *reader, const char *key, uint32_t *out)
{
	const char *text = annotation(reader, key);
	size_t digits = text ? strspn(text, "0123456789") : 0;

	if (!text)
		return true;
	if (digits > 0 && digits <= 3 && !text[digits])
		*out = (uint32_t)strtoul(text, NULL, 10);
	if (*out >= 1 && *out <= 100)
		return true;
	return bad(reader,
		"%s is \"%.40s\": write a whole percent of each GPU's time, \"1\" to "
		"\"100\"",
		key, text);
}

static bool read_compute(struct reader *reader)
{
	uint32_t compute = 0, limit = 0;

	if (!read_percent(reader, COMPUTE_KEY, &compute) ||
		!read_percent(reader, COMPUTE_LIMIT, &limit))
		return false;
	if (!compute && !limit)
		return true;
	if (reader->out->count == 0)
		return bad(reader,
			"%s is given, and no request: write gpu-fraction or gpu-memory "
			"as "
			"well",
			compute ? COMPUTE_KEY : COMPUTE_LIMIT);
	if (!sl_share_compute_fits(compute, limit))
		return bad(reader,
			COMPUTE_LIMIT " is below " COMPUTE_KEY ": write at least %u, or "
				      "leave it out",
			compute);
	for (size_t i = 0; i < reader->out->count; i++) {
		reader->out->of[i].compute_pct = compute;
		reader->out->of[i].compute_limit_pct = limit;
	}
	return true;
}

/* Another GPU resource that the container asks for: a device plugin's, or a whole GPU; NULL:
 * none. */
static const char *other_resource(const json_t *container)
{
	static const char *const kinds[] = {"limits", "requests"};
	static const char *const names[] = {
		"nvidia.com/gpu", SL_KUBE_EXTENDED, SL_UNITS_RESOURCE};

	for (size_t kind = 0; kind < SL_ARRAY_LEN(kinds); kind++)
		for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
			if (sl_kube_at(
				    container, "resources", kinds[kind], names[i], NULL))
				return names[i];
	return NULL;
}

/* Whole GPUs and fractions exclude each other, as in KAI. */
static bool check_whole(struct reader *reader)
{
	const json_t *container;

	for (size_t list = 0; list < SL_ARRAY_LEN(lists); list++) {
		for (size_t i = 0; (container = container_at(reader, list, i)); i++) {
			const char *name = other_resource(container);

			if (name)
				return bad(reader,
					"container \"%.63s\" asks for %s, and the pod's "
					"annotations for a part of a GPU: remove one of "
					"them",
					sl_kube_text_at(container, "name", NULL), name);
		}
	}
	return true;
}

int sl_asks_read(const json_t *pod, struct sl_asks *out, struct sl_error *err)
{
	struct reader reader = {.pod = pod,
		.annotations = sl_kube_at(pod, "metadata", "annotations", NULL),
		.out = out,
		.err = err};
	bool has_kai;

	*out = (struct sl_asks){0};
	if (!read_kai(&reader))
		return SL_ASKS_BAD;
	has_kai = out->count > 0;
	if (!read_fractioning(&reader) || !complete(&reader, has_kai) ||
		!read_common(&reader) || !read_compute(&reader))
		return SL_ASKS_BAD;
	if (out->count == 0)
		return SL_ASKS_NONE;
	if (!check_whole(&reader))
		return SL_ASKS_BAD;
	qsort(out->of, out->count, sizeof(out->of[0]), by_place);
	return SL_ASKS_OK;
}
