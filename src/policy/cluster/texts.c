/*
 * texts - sentences about pending and future jobs
 *
 * Sentences are templates in pending.def with placeholders in braces, as in reason.def. An unknown
 * placeholder is printed unchanged; the unit test fails if a row has one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/amount.h"
#include "policy/cluster.h"
#include "policy/quota/explain.h"

#define VALUE_MAX 320 /* a name of 255 bytes, or an amount */

static const char *const texts[SL_PENDING_REASONS] = {
#define SL_PENDING(NAME, text) [SL_PENDING_##NAME] = text,
#include "policy/cluster/pending.def"
#undef SL_PENDING
};

typedef const char *(*name_fn)(void *context, uint64_t id);

struct sentence {
	const struct sl_pending_because *because;
	name_fn name;
	void *context;
	char *buf;
	size_t size, used;
};

static void put(struct sentence *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length && out->used + 1 < out->size; i++)
		out->buf[out->used++] = text[i];
	if (out->size)
		out->buf[out->used] = '\0';
}

/* A name must not break the line, or look like a place. */
static void put_name(name_fn name, void *context, uint64_t id, char text[VALUE_MAX])
{
	const char *known = name && id ? name(context, id) : NULL;

	if (!known || !known[0])
		(void)snprintf(text, VALUE_MAX, "%" PRIu64, id);
	else
		(void)snprintf(text, VALUE_MAX, "%s", known);
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

static void put_count(int64_t count, const char *thing, char text[VALUE_MAX])
{
	if (count <= 0)
		(void)snprintf(text, VALUE_MAX, "no %s", thing);
	else
		(void)snprintf(text, VALUE_MAX, "%" PRId64 " %s%s", count, thing,
			count == 1 ? "" : "s");
}

static void put_host(int64_t mib, char text[VALUE_MAX])
{
	uint64_t most = UINT64_MAX / SL_MIB;

	(void)sl_bytes_format((mib > 0 ? sl_min_u64((uint64_t)mib, most) : 0) * SL_MIB,
		text, VALUE_MAX);
}

static void put_span(int64_t ns, char text[VALUE_MAX])
{
	(void)sl_span_format(ns > 0 ? (sl_ns)ns : 0, text, VALUE_MAX);
}

/* Fills text with the value of the place; false: there is no such place. */
static bool value_of(const struct sentence *out, const char *place, char text[VALUE_MAX])
{
	const struct sl_pending_because *because = out->because;

	if (strcmp(place, "project") == 0)
		put_name(out->name, out->context, because->project, text);
	else if (strcmp(place, "other") == 0 && !because->other)
		(void)snprintf(text, VALUE_MAX, "others");
	else if (strcmp(place, "other") == 0)
		put_name(out->name, out->context, because->other, text);
	else if (strcmp(place, "wanted") == 0)
		(void)sl_resource_format(
			because->resource, because->wanted, text, VALUE_MAX);
	else if (strcmp(place, "available") == 0)
		(void)sl_resource_format(
			because->resource, because->available, text, VALUE_MAX);
	else if (strcmp(place, "wanted_tasks") == 0)
		put_count(because->wanted, "task", text);
	else if (strcmp(place, "available_tasks") == 0)
		put_count(because->available, "task", text);
	else if (strcmp(place, "wanted_host") == 0)
		put_host(because->wanted, text);
	else if (strcmp(place, "available_host") == 0)
		put_host(because->available, text);
	else if (strcmp(place, "wanted_span") == 0)
		put_span(because->wanted, text);
	else if (strcmp(place, "jobs") == 0)
		put_count(because->ahead, "job", text);
	else
		return false;
	return true;
}

static void fill(struct sentence *out, const char *at)
{
	while (*at) {
		size_t plain = strcspn(at, "{"), length;
		char place[32], value[VALUE_MAX];

		put(out, at, plain);
		at += plain;
		if (!*at)
			return;
		length = strcspn(at, "}");
		(void)snprintf(place, sizeof(place), "%.*s", (int)length - 1, at + 1);
		if (value_of(out, place, value))
			put(out, value, strlen(value));
		else
			put(out, at, length + 1);
		at += at[length] ? length + 1 : length;
	}
}

const char *sl_pending_text(const struct sl_pending_because *because, name_fn name,
	void *context, char *buf, size_t size)
{
	struct sentence out = {.because = because,
		.name = name,
		.context = context,
		.buf = buf,
		.size = size};

	if (size)
		buf[0] = '\0';
	fill(&out, (uint32_t)because->reason < SL_PENDING_REASONS ? texts[because->reason]
								  : "?");
	if (because->would_reclaim)
		fill(&out,
			because->other
				? "; reclaiming what project {other} has above its fair "
				  "share would be enough"
				: "; reclaiming what others have above their fair "
				  "shares would be enough");
	return buf;
}

/* --- Forecasts. --- */

/* What happens when it is reclaimed. */
static const char *loss_of(const struct sl_cluster_forecast *forecast)
{
	if (!forecast->parks)
		return "terminated and queued again, to start from the beginning";
	if (!forecast->gives_up)
		return "parked, and resumes by itself";
	return "parked, and resumes by itself; if host memory has no room, or if that "
	       "takes "
	       "too long, it is terminated and queued again, to start from the beginning";
}

static void put_reclaim(struct sentence *out, const struct sl_cluster_forecast *forecast)
{
	char of[VALUE_MAX], by[VALUE_MAX], amount[64], text[SL_EXPLAIN_MAX];

	put_name(out->name, out->context, forecast->quota_of, of);
	put_name(out->name, out->context, forecast->by, by);
	(void)sl_resource_format(
		forecast->resource, forecast->above, amount, sizeof(amount));
	if (!forecast->preemptible)
		(void)snprintf(text, sizeof(text),
			"nothing is reclaimed from it: it cannot be preempted, and "
			"starts only within the quota of project %s",
			of);
	else if (!forecast->above)
		(void)snprintf(text, sizeof(text),
			"other projects reclaim nothing from it: it is within the quota "
			"of project %s",
			of);
	else
		(void)snprintf(text, sizeof(text),
			"%s of it would be above the quota of project %s: when %s%s "
			"wants %s, it is %s",
			amount, of, forecast->by ? "project " : "",
			forecast->by ? by : "a project under its fair share",
			forecast->by ? "its quota" : "them", loss_of(forecast));
	put(out, text, strlen(text));
}

const char *sl_reclaim_text(const struct sl_tree *tree, uint32_t project,
	const struct sl_quantity *wants, bool preemptible, bool parks, name_fn name,
	void *context, char *buf, size_t size)
{
	struct sl_cluster_forecast forecast = {
		.preemptible = preemptible, .parks = parks};
	struct sentence out = {
		.name = name, .context = context, .buf = buf, .size = size};
	uint32_t at = project;

	if (size)
		buf[0] = '\0';
	forecast.above =
		sl_tree_above_quota(tree, project, wants, &at, &forecast.resource);
	forecast.quota_of = tree->all[at].id;
	put_reclaim(&out, &forecast);
	return buf;
}

/* The tasks that stop or move for it. */
static void put_takes(struct sentence *out, const struct sl_cluster_forecast *forecast)
{
	char from[VALUE_MAX], tasks[VALUE_MAX], text[SL_EXPLAIN_MAX];
	bool stops = forecast->stops, one = forecast->stops + forecast->moves == 1;

	put_count((int64_t)forecast->stops + forecast->moves, "task", tasks);
	put_name(out->name, out->context, forecast->from, from);
	(void)snprintf(text, sizeof(text), "it starts once %s of %s%s %s been %s for it",
		tasks, forecast->from ? "project " : "", forecast->from ? from : "others",
		one ? "has" : "have",
		!stops            ? "moved"
		: forecast->moves ? "stopped or moved"
				  : "stopped");
	put(out, text, strlen(text));
}

const char *sl_forecast_text(const struct sl_cluster_forecast *forecast, name_fn name,
	void *context, char *buf, size_t size)
{
	struct sentence out = {.because = &forecast->because,
		.name = name,
		.context = context,
		.buf = buf,
		.size = size};
	static const char *const begins[] = {
		[SL_FORECAST_RUNS] = "it starts at once",
		[SL_FORECAST_FOLLOWS] =
			"it starts when the tasks being stopped already are gone",
		[SL_FORECAST_TAKES] = "",
		[SL_FORECAST_WAITS] = "it waits: ",
		[SL_FORECAST_NEVER] = "it cannot run: ",
	};
	char text[SL_EXPLAIN_MAX];

	if (size)
		buf[0] = '\0';
	put(&out, begins[forecast->fate], strlen(begins[forecast->fate]));
	if (forecast->fate == SL_FORECAST_TAKES)
		put_takes(&out, forecast);
	if (forecast->fate == SL_FORECAST_WAITS || forecast->fate == SL_FORECAST_NEVER) {
		(void)sl_pending_text(
			&forecast->because, name, context, text, sizeof(text));
		put(&out, text, strlen(text));
	}
	if (forecast->fate == SL_FORECAST_NEVER ||
		(forecast->alone && forecast->preemptible))
		return buf;
	put(&out, ". Once it runs, ", strlen(". Once it runs, "));
	put_reclaim(&out, forecast);
	return buf;
}
