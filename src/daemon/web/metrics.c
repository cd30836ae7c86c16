/*
 * metrics - a cursor over families, things and kinds
 *
 * The format wants all samples of a family together, so the text goes family by family, and within
 * it thing by thing. The cursor is four numbers; nothing refers to text written earlier, which may
 * have been sent long ago.
 *
 * Names come from users. The format escapes three characters, and a client rejects the whole answer
 * if it is not UTF-8. So bytes that are not UTF-8, and control characters, become U+FFFD. Numbers
 * are written without printf: a thousand workloads make twelve thousand lines, and one thread
 * renders at a time.
 */
#include "daemon/web/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum type { GAUGE, COUNTER };
enum unit { NUMBER, SIGNED, BYTES, RATIO, SECONDS, MILLI };

enum scope {
#define SL_METRIC_SCOPE(SCOPE, labels) SCOPE_##SCOPE,
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help)
#define SL_METRIC_VALUE(ID, kind, value)
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
	SCOPES
};

enum metric {
#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help) METRIC_##ID,
#define SL_METRIC_VALUE(ID, kind, value)
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
	METRICS
};

static const char *const scope_labels[SCOPES] = {
#define SL_METRIC_SCOPE(SCOPE, labels) [SCOPE_##SCOPE] = labels,
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help)
#define SL_METRIC_VALUE(ID, kind, value)
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
};

static const struct {
	const char *name, *help;
	enum type type;
	enum unit unit;
	enum scope scope;
} metrics[METRICS] = {
#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help) \
	[METRIC_##ID] = {name, help, TYPE, UNIT, SCOPE_##SCOPE},
#define SL_METRIC_VALUE(ID, kind, value)
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
};

/* The thing that a sample is about. Members outside its scope are NULL. */
struct place {
	const struct sl_metrics_books *books;
	const struct sl_metrics_gpu *gpu;
	const struct sl_metrics_workload *workload;
	const struct sl_metrics_use *use;
	const struct sl_metrics_quota *quota;
	const struct sl_history_sum *sum;
	uint32_t item; /* index, or a reason */
};

#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help)
#define SL_METRIC_VALUE(ID, kind, value)                               \
	static uint64_t value_of_##ID##_##kind(const struct place *at) \
	{                                                              \
		return value;                                          \
	}
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE

/* In the order of metrics.def, so that rows of a family are adjacent. */
static const struct {
	enum metric metric;
	const char *kind;
	uint64_t (*value)(const struct place *at);
} values[] = {
#define SL_METRIC_SCOPE(SCOPE, labels)
#define SL_METRIC(ID, name, TYPE, UNIT, SCOPE, help)
#define SL_METRIC_VALUE(ID, kind, value) {METRIC_##ID, #kind, value_of_##ID##_##kind},
#include "daemon/web/metrics.def"
#undef SL_METRIC_SCOPE
#undef SL_METRIC
#undef SL_METRIC_VALUE
};

/* --- text --------------------------------------------------------------------------------- */

struct out {
	char *buf;
	size_t used, size;
};

/* Text that does not fit is cut; callers leave room for a line, and no line is longer. */
static void put_bytes(struct out *out, const char *text, size_t length)
{
	length = (size_t)sl_min_u64(length, out->size - out->used);
	memcpy(out->buf + out->used, text, length);
	out->used += length;
}

static void put(struct out *out, const char *text)
{
	put_bytes(out, text, strlen(text));
}

static void put_number(struct out *out, uint64_t number)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	put_bytes(out, digits + at, sizeof(digits) - at);
}

/* number / 10^places, without trailing zeros. */
static void put_fraction(struct out *out, uint64_t number, unsigned int places)
{
	char digits[20];
	uint64_t scale = 1, rest;

	for (unsigned int i = 0; i < places; i++)
		scale *= 10;
	put_number(out, number / scale);
	rest = number % scale;
	for (unsigned int i = places; i > 0; i--, rest /= 10)
		digits[i - 1] = (char)('0' + rest % 10);
	while (places > 0 && digits[places - 1] == '0')
		places--;
	if (!places)
		return;
	put(out, ".");
	put_bytes(out, digits, places);
}

static void put_value(struct out *out, enum unit unit, uint64_t value)
{
	if (unit == SIGNED && (int64_t)value < 0) {
		put(out, "-");
		value = -value;
	}
	if (unit == RATIO)
		put_fraction(out, value, 2);
	else if (unit == SECONDS)
		put_fraction(out, value, 9);
	else if (unit == MILLI)
		put_fraction(out, value, 3);
	else
		put_number(out, value);
}

/* Length of the part that needs no escape: nearly all of nearly all names. */
static size_t plain_length(const char *text)
{
	size_t length = 0;

	while (text[length] >= ' ' && text[length] <= '~' && text[length] != '"' &&
		text[length] != '\\')
		length++;
	return length;
}

static void put_escaped(struct out *out, const char *text)
{
	for (;;) {
		size_t length = plain_length(text);
		const char *next;
		uint32_t c;

		put_bytes(out, text, length);
		text += length;
		if (!*text)
			return;
		next = text;
		c = sl_text_next(&next);
		if (c == '\n')
			put(out, "\\n");
		else if (c == '\\' || c == '"')
			put_bytes(out, (const char[]){'\\', *text}, 2);
		else if (c == UINT32_MAX || c < ' ' || (c >= 0x7f && c < 0xa0))
			put(out, "\xef\xbf\xbd");
		else
			put_bytes(out, text, (size_t)(next - text));
		text = next;
	}
}

static void put_label(struct out *out, const char *name, const char *value)
{
	put(out, out->buf[out->used - 1] == '{' ? "" : ",");
	put(out, name);
	put(out, "=\"");
	put_escaped(out, value);
	put(out, "\"");
}

static void put_label_number(struct out *out, const char *name, uint64_t value)
{
	put(out, out->buf[out->used - 1] == '{' ? "" : ",");
	put(out, name);
	put(out, "=\"");
	put_number(out, value);
	put(out, "\"");
}

/* --- scopes ------------------------------------------------------------------------------- */

/* False: the scope is not about sums. */
static bool is_sum(enum scope scope, enum sl_history_sum_of *of)
{
	switch (scope) {
	case SCOPE_GPU_SUM: *of = SL_HISTORY_OF_GPU; return true;
	case SCOPE_USER_INFO:
	case SCOPE_USER:
	case SCOPE_USER_KIND: *of = SL_HISTORY_OF_USER; return true;
	case SCOPE_PROJECT:
	case SCOPE_PROJECT_KIND: *of = SL_HISTORY_OF_PROJECT; return true;
	default: return false;
	}
}

/* Number of things that may have samples. */
static uint32_t scope_size(enum scope scope, const struct sl_metrics_books *books)
{
	enum sl_history_sum_of of;

	if (is_sum(scope, &of))
		return books->sums ? books->sums->count[of] : 0;
	switch (scope) {
	case SCOPE_DENIAL:
	case SCOPE_STOP:
	case SCOPE_REFUSAL:
	case SCOPE_EVENT: return SL_REASONS;
	case SCOPE_JOB:
	case SCOPE_JOB_END: return SL_JOB_STATES;
	case SCOPE_ORDER: return SL_SWAP_CAUSES;
	case SCOPE_GPU:
	case SCOPE_MEASURED:
	case SCOPE_GPU_INFO:
	case SCOPE_LINK_KIND:
	case SCOPE_GPU_MOVED:
	case SCOPE_GPU_KIND: return books->gpu_count;
	case SCOPE_QUOTA: return books->quota_count;
	case SCOPE_HISTORY: return books->sums != NULL;
	case SCOPE_PART: return SL_WIRE_PARTS;
	case SCOPE_WORKLOAD: return books->workload_count;
	case SCOPE_USE:
	case SCOPE_USE_KIND: return books->use_count;
	default: return 1;
	}
}

static bool reason_belongs(enum scope scope, uint32_t reason)
{
	enum sl_reason_kind kind = sl_reason_kind(reason);

	if (scope == SCOPE_DENIAL)
		return kind == SL_REASON_KIND_DENY || kind == SL_REASON_KIND_EXCEPT;
	if (scope == SCOPE_STOP)
		return kind == SL_REASON_KIND_STOP;
	if (scope == SCOPE_REFUSAL)
		return kind == SL_REASON_KIND_REFUSE;
	return reason != SL_REASON_NONE && kind != SL_REASON_KIND_REFUSE;
}

/* Fills *at for the thing; false: it has no sample. */
static bool find_place(enum scope scope, struct place *at)
{
	const struct sl_metrics_books *books = at->books;
	enum sl_history_sum_of of;

	if (is_sum(scope, &of)) {
		at->sum = &books->sums->all[books->sums->first[of] + at->item];
		return true;
	}
	switch (scope) {
	case SCOPE_DRIVER: return books->driver[0] != '\0';
	case SCOPE_DENIAL:
	case SCOPE_STOP:
	case SCOPE_REFUSAL:
	case SCOPE_EVENT: return reason_belongs(scope, at->item);
	case SCOPE_JOB_END: return at->item >= SL_JOB_DONE;
	case SCOPE_GPU:
	case SCOPE_MEASURED:
	case SCOPE_GPU_INFO:
	case SCOPE_GPU_MOVED:
	case SCOPE_GPU_KIND:
		at->gpu = &books->gpus[at->item];
		return scope != SCOPE_MEASURED || at->gpu->measured;
	case SCOPE_LINK_KIND:
		at->gpu = &books->gpus[at->item];
		return at->gpu->out_bytes_s || at->gpu->in_bytes_s;
	case SCOPE_QUOTA: at->quota = &books->quotas[at->item]; return true;
	/* Two parts are left out. Finding the supervisor's program reads the disk, which the loop
	 * must not do; and metrics that are read are served. */
	case SCOPE_PART:
		return at->item != SL_PART_SHIM && at->item != SL_PART_METRICS &&
		       (at->item != SL_PART_HISTORY || books->sums);
	case SCOPE_WORKLOAD: at->workload = &books->workloads[at->item]; return true;
	case SCOPE_USE:
	case SCOPE_USE_KIND:
		at->use = &books->uses[at->item];
		at->workload = &books->workloads[at->use->workload];
		at->gpu = &books->gpus[at->use->gpu];
		return true;
	default: return true;
	}
}

static bool has_kinds(enum scope scope)
{
	return scope == SCOPE_GPU_KIND || scope == SCOPE_USE_KIND ||
	       scope == SCOPE_HOST_KIND || scope == SCOPE_LINK_KIND ||
	       scope == SCOPE_GPU_MOVED || scope == SCOPE_GPU_SUM ||
	       scope == SCOPE_USER_KIND || scope == SCOPE_PROJECT_KIND ||
	       scope == SCOPE_QUOTA;
}

static const char *const result_words[SL_SWAP_CAUSES] = {
	[SL_SWAP_NO_CAUSE] = "done",
	[SL_SWAP_CAPTURE] = "capture",
	[SL_SWAP_BUSY] = "busy",
	[SL_SWAP_NO_HOST] = "no-host-memory",
	[SL_SWAP_DRIVER] = "driver",
	[SL_SWAP_NO_ROOM] = "no-room",
	[SL_SWAP_BROKEN] = "broken",
	[SL_SWAP_NOTHING] = "nothing",
	[SL_SWAP_ABORTED] = "aborted",
	[SL_SWAP_LOST] = "lost",
	[SL_SWAP_STOPPED] = "stopped",
};

static const char *const part_words[SL_WIRE_PARTS] = {
	[SL_PART_SHIM] = "supervisor",
	[SL_PART_PROJECTS] = "projects",
	[SL_PART_JOBS] = "jobs",
	[SL_PART_HISTORY] = "history",
	[SL_PART_PAGE] = "page",
};

static void put_sum_labels(
	struct out *out, enum scope scope, const struct sl_history_sum *sum)
{
	enum sl_history_sum_of of;

	if (!is_sum(scope, &of))
		return;
	put_label(out,
		of == SL_HISTORY_OF_GPU    ? "gpu"
		: of == SL_HISTORY_OF_USER ? "user"
					   : "project",
		sum->key);
	if (scope == SCOPE_USER_INFO)
		put_label(out, "name", sum->name);
}

static void put_labels(
	struct out *out, enum scope scope, const struct place *at, const char *kind)
{
	put(out, "{");
	if (scope == SCOPE_BUILD)
		put_label(out, "version", at->books->version);
	else if (scope == SCOPE_DRIVER)
		put_label(out, "version", at->books->driver);
	else if (scope == SCOPE_ORDER)
		put_label(out, "result", result_words[at->item]);
	else if (scope == SCOPE_JOB || scope == SCOPE_JOB_END)
		put_label(out, "state", sl_wire_job_state(at->item));
	else if (scope == SCOPE_PART)
		put_label(out, "part", part_words[at->item]);
	else if (at->quota)
		put_label(out, "project", at->quota->project);
	else if (at->sum)
		put_sum_labels(out, scope, at->sum);
	else if (!at->gpu && !at->workload && scope != SCOPE_HOST_KIND)
		put_label(out, "reason", sl_reason_name(at->item));
	if (at->workload) {
		put_label_number(out, "id", at->workload->id);
		put_label(out, "workload", at->workload->name);
		put_label(out, "project", at->workload->project);
		put_label_number(out, "user", at->workload->uid);
	}
	if (at->gpu)
		put_label(out, "gpu", at->gpu->uuid);
	if (scope == SCOPE_GPU_INFO) {
		put_label(out, "name", at->gpu->name);
		put_label(out, "pci", at->gpu->pci);
	}
	if (has_kinds(scope))
		put_label(out, "kind", kind);
	put(out, "}");
}

/* --- the cursor --------------------------------------------------------------------------- */

static const char *type_word(enum type type)
{
	return type == COUNTER ? "counter" : "gauge";
}

static void put_title(struct out *out, uint32_t metric)
{
	put(out, "# HELP ");
	put(out, metrics[metric].name);
	put(out, " ");
	put(out, metrics[metric].help);
	put(out, "\n# TYPE ");
	put(out, metrics[metric].name);
	put(out, " ");
	put(out, type_word(metrics[metric].type));
	put(out, "\n");
}

static void put_sample(struct out *out, uint32_t row, const struct place *at)
{
	enum metric metric = values[row].metric;

	put(out, metrics[metric].name);
	if (metrics[metric].scope != SCOPE_NODE && metrics[metric].scope != SCOPE_HISTORY)
		put_labels(out, metrics[metric].scope, at, values[row].kind);
	put(out, " ");
	put_value(out, metrics[metric].unit, values[row].value(at));
	put(out, "\n");
}

/* First row of a family in values. Families are few, and each begins once per answer. */
static uint32_t first_value(uint32_t metric)
{
	uint32_t row = 0;

	while (values[row].metric != metric)
		row++;
	return row;
}

/* Writes one line or title at most; false: the family has ended. */
static bool put_next(struct out *out, const struct sl_metrics_books *books,
	struct sl_metrics_cursor *cursor)
{
	enum scope scope = metrics[cursor->metric].scope;
	struct place at = {.books = books, .item = cursor->item};

	if (!cursor->titled) {
		put_title(out, cursor->metric);
		cursor->titled = true;
		cursor->kind = first_value(cursor->metric);
		return true;
	}
	if (cursor->item >= scope_size(scope, books))
		return false;
	if (find_place(scope, &at)) {
		if (scope != SCOPE_QUOTA ||
			values[cursor->kind].value(&at) != SL_METRICS_ALL)
			put_sample(out, cursor->kind, &at);
		cursor->kind++;
		if (cursor->kind < SL_ARRAY_LEN(values) &&
			values[cursor->kind].metric == cursor->metric)
			return true;
		cursor->kind = first_value(cursor->metric);
	}
	cursor->item++;
	return true;
}

size_t sl_metrics_render(const struct sl_metrics_books *books,
	struct sl_metrics_cursor *cursor, char *buf, size_t size)
{
	struct out out = {.buf = buf, .size = size};

	while (cursor->metric < METRICS && out.size - out.used >= SL_METRICS_LINE_MAX) {
		if (put_next(&out, books, cursor))
			continue;
		*cursor = (struct sl_metrics_cursor){.metric = cursor->metric + 1};
	}
	return out.used;
}

/* --- the document ------------------------------------------------------------------------- */

static const char *const unit_words[] = {[NUMBER] = "",
	[SIGNED] = "",
	[BYTES] = "bytes",
	[RATIO] = "0 to 1",
	[SECONDS] = "seconds",
	[MILLI] = "GPUs"};

void sl_metrics_document(void (*put_line)(void *context, const char *line), void *context)
{
	char line[1024];

	put_line(context, "| metric | type | unit | labels | what |");
	put_line(context, "|---|---|---|---|---|");
	for (uint32_t i = 0; i < METRICS; i++) {
		enum scope scope = metrics[i].scope;
		bool kinds = has_kinds(scope);
		size_t used = (size_t)snprintf(line, sizeof(line),
			"| `%s` | %s | %s | %s | %s%s", metrics[i].name,
			type_word(metrics[i].type), unit_words[metrics[i].unit],
			scope_labels[scope], metrics[i].help, kinds ? " Kinds:" : "");

		for (uint32_t row = first_value(i);
			kinds && row < SL_ARRAY_LEN(values) && values[row].metric == i;
			row++)
			used += (size_t)snprintf(line + used, sizeof(line) - used, " %s",
				values[row].kind);
		(void)snprintf(
			line + used, sizeof(line) - used, "%s |", kinds ? "." : "");
		put_line(context, line);
	}
}
