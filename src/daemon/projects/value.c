/*
 * value - see the header
 *
 * Amounts of GPUs and cores are decimal numbers with up to three digits after the point, read as
 * whole thousandths: nothing is rounded, and 0.1 is exactly a tenth.
 */
#include "daemon/projects/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "wire/wire.h"

/* More than any machine room has, and far from where sums overflow. */
#define WHOLE_MOST 1000000000 /* GPUs or cores */
#define MIB_MOST   ((int64_t)900 << 30)

#define WORD(key, field, help)                                       \
	{                                                            \
#key, SL_PROJECT_FIELD_WORD, SL_RES_GPU,             \
			offsetof(struct sl_project_row, field), help \
	}
#define LIST(key, help)                                            \
	{                                                          \
#key, SL_PROJECT_FIELD_LIST, SL_RES_GPU,           \
			offsetof(struct sl_project_row, key), help \
	}
#define RESOURCE(key, NAME, help)                                       \
	{                                                               \
#key, SL_PROJECT_FIELD_RESOURCE, SL_RES_##NAME, 0, help \
	}

const struct sl_project_field sl_project_fields[] = {
	WORD(parent, parent, "the project it is a part of; none: it stands at the top"),
	RESOURCE(gpu, GPU, "quota, limit and over_quota_weight, in GPUs"),
	RESOURCE(cpu, CPU, "the same, in cores"),
	RESOURCE(memory, MEMORY, "the same, in bytes of host memory"),
	RESOURCE(compute, COMPUTE,
		"the same, in requests of GPUs' time (--compute-request): 0.5 is half a "
		"GPU"),
	WORD(priority, priority, "whose surplus is given first, -1000 to 1000"),
	LIST(users, "who may put work into it; neither users nor groups: as its parent"),
	LIST(groups, "whose members may put work into it"),
	LIST(pools, "the pools of nodes it may use; none: all"),
	WORD(preempt_min_runtime, preempt_min_runtime,
		"how long a job runs before one of higher priority may take its place"),
	WORD(reclaim_min_runtime, reclaim_min_runtime,
		"how long a job runs before another project may take its place"),
	WORD(swap, no_swap, "whether its jobs may stand on GPUs that swap"),
};
const size_t sl_project_field_count = SL_ARRAY_LEN(sl_project_fields);

const struct sl_project_field *sl_project_field_of(const char *key)
{
	for (size_t i = 0; i < sl_project_field_count; i++) {
		if (strcmp(sl_project_fields[i].key, key) == 0)
			return &sl_project_fields[i];
	}
	return NULL;
}

const char *sl_project_field_words(char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sl_project_field_count && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s",
			i == 0                           ? ""
			: i + 1 < sl_project_field_count ? ", "
							 : " and ",
			sl_project_fields[i].key);
	return buf;
}

/* --- Words. --- */

bool sl_project_is_name(const char *text)
{
	size_t length = strlen(text);

	if (!isalnum((unsigned char)text[0]) || length >= SL_PROJECT_NAME_MAX)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	}
	return true;
}

static int read_parent(
	const char *text, char parent[SL_PROJECT_NAME_MAX], struct sl_error *err)
{
	if (text[0] && !sl_project_is_name(text)) {
		sl_error_set(err,
			"parent: '%.64s' is no name of a project; write letters, digits, "
			"'.', '_' "
			"and '-', at most 63",
			text);
		return SL_PROJECTS_BAD;
	}
	(void)snprintf(parent, SL_PROJECT_NAME_MAX, "%s", text);
	return SL_PROJECTS_OK;
}

static int read_integer(const char *key, const char *text, long least, long most,
	long *out, struct sl_error *err)
{
	const char *digits = text + (text[0] == '-');
	char *end = NULL;

	errno = 0;
	*out = strtol(text, &end, 10);
	if (isdigit((unsigned char)digits[0]) && !*end && !errno && *out >= least &&
		*out <= most)
		return SL_PROJECTS_OK;
	sl_error_set(err, "%s: '%.64s' is no whole number from %ld to %ld; write one",
		key, text, least, most);
	return SL_PROJECTS_BAD;
}

static int read_time(const char *key, const char *text, sl_ns *out, struct sl_error *err)
{
	/* A hundred years: a longer time is a mistake, or meant as no limit. */
	const sl_ns most = 36500ull * 24 * 3600 * SL_S;

	if (sl_duration_parse(text, out, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "%s", key);
		return SL_PROJECTS_BAD;
	}
	if (*out <= most)
		return SL_PROJECTS_OK;
	sl_error_set(err, "%s: '%.64s' is too long; write at most 876000h", key, text);
	return SL_PROJECTS_BAD;
}

static int read_swap(const char *text, bool *no_swap, struct sl_error *err)
{
	static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};

	for (size_t i = 0; i < SL_ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*no_swap = i % 2 == 0;
			return SL_PROJECTS_OK;
		}
	}
	sl_error_set(err, "swap: '%.64s' is neither; write yes or no", text);
	return SL_PROJECTS_BAD;
}

int sl_project_set_word(const struct sl_project_field *field, const char *text,
	struct sl_project_row *row, struct sl_error *err)
{
	long number = 0;
	int r;

	if (field->offset == offsetof(struct sl_project_row, parent))
		return read_parent(text, row->parent, err);
	if (field->offset == offsetof(struct sl_project_row, no_swap))
		return read_swap(text, &row->no_swap, err);
	if (field->offset != offsetof(struct sl_project_row, priority))
		return read_time(
			field->key, text, (sl_ns *)((char *)row + field->offset), err);
	r = read_integer(
		field->key, text, -SL_PRIORITY_MAX, SL_PRIORITY_MAX, &number, err);
	if (r == SL_PROJECTS_OK)
		row->priority = (int32_t)number;
	return r;
}

/* --- Lists. --- */

bool sl_project_lists(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (*list) {
		size_t one = strcspn(list, ",");

		if (one == length && memcmp(list, word, length) == 0)
			return true;
		list += one + (list[one] == ',');
	}
	return false;
}

int sl_project_add_name(const struct sl_project_field *field, const char *text,
	struct sl_project_row *row, struct sl_error *err)
{
	char *list = (char *)row + field->offset;
	size_t used = strlen(list);

	if (!sl_project_is_name(text) && strcmp(text, "_") != 0) {
		sl_error_set(err,
			"%s: '%.64s' is no name; write letters, digits, '.', '_' and "
			"'-', at most "
			"63",
			field->key, text);
		return SL_PROJECTS_BAD;
	}
	if (sl_project_lists(list, text)) {
		sl_error_set(err, "%s: %.64s comes twice; remove one", field->key, text);
		return SL_PROJECTS_BAD;
	}
	if (used + 1 + strlen(text) >= SL_PROJECT_LIST_MAX) {
		sl_error_set(err, "%s: the names have more than %d letters together; %s",
			field->key, SL_PROJECT_LIST_MAX - 1,
			strcmp(field->key, "users") == 0 ? "use groups" : "name fewer");
		return SL_PROJECTS_BAD;
	}
	(void)snprintf(
		list + used, SL_PROJECT_LIST_MAX - used, "%s%s", used ? "," : "", text);
	return SL_PROJECTS_OK;
}

/* --- Amounts. --- */

static bool is_unlimited(const char *text)
{
	return strcmp(text, "unlimited") == 0 || strcmp(text, "-1") == 0;
}

/* "2.5" into 2500. */
static bool read_milli(const char *text, int64_t *out)
{
	int64_t milli = 0, digit = 100;

	if (!isdigit((unsigned char)text[0]))
		return false;
	for (; isdigit((unsigned char)*text); text++) {
		milli = milli * 10 + (*text - '0') * 1000;
		if (milli > (int64_t)WHOLE_MOST * 1000)
			return false;
	}
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text) && digit; text++, digit /= 10)
			milli += (*text - '0') * digit;
		if (digit == 100)
			return false;
	}
	*out = milli;
	return !*text && milli <= (int64_t)WHOLE_MOST * 1000;
}

static bool read_mib(const char *text, int64_t *out)
{
	struct sl_error unused = {0};
	struct sl_amount amount = {0};

	if (sl_amount_parse(text, &amount, &unused) != SL_AMOUNT_OK ||
		amount.kind != SL_AMOUNT_BYTES)
		return false;
	*out = (int64_t)(amount.value / SL_MIB);
	return amount.value % SL_MIB == 0 && *out <= MIB_MOST;
}

static int read_amount(const struct sl_project_field *field, const char *key,
	const char *text, int64_t *out, struct sl_error *err)
{
	bool bytes = field->resource == SL_RES_MEMORY;

	if (is_unlimited(text)) {
		*out = SL_QUOTA_ALL;
		return SL_PROJECTS_OK;
	}
	if (bytes ? read_mib(text, out) : read_milli(text, out))
		return SL_PROJECTS_OK;
	if (text[0] == '-')
		sl_error_set(err,
			"%s.%s: '%.64s' is negative; write 0 or more, or unlimited",
			field->key, key, text);
	else if (bytes)
		sl_error_set(err,
			"%s.%s: '%.64s' is no amount of whole MiB up to 900PiB; write "
			"for example 512GiB, 0 or unlimited",
			field->key, key, text);
	else
		sl_error_set(err,
			"%s.%s: '%.64s' is no number up to %d with three digits behind "
			"the point; "
			"write for example 4, 0.5 or unlimited",
			field->key, key, text, WHOLE_MOST);
	return SL_PROJECTS_BAD;
}

int sl_project_set_amount(const struct sl_project_field *field, const char *key,
	const char *text, struct sl_project_row *row, struct sl_error *err)
{
	char name[64];
	long weight = 0;
	int r;

	if (strcmp(key, "quota") == 0)
		return read_amount(
			field, key, text, &row->quota.of[field->resource], err);
	if (strcmp(key, "limit") == 0)
		return read_amount(
			field, key, text, &row->limit.of[field->resource], err);
	if (strcmp(key, "over_quota_weight") != 0) {
		sl_error_set(err,
			"%s: unknown field '%.64s'; the fields are quota, limit and "
			"over_quota_weight",
			field->key, key);
		return SL_PROJECTS_BAD;
	}
	(void)snprintf(name, sizeof(name), "%s.%s", field->key, key);
	r = read_integer(name, text, 0, SL_PROJECT_WEIGHT, &weight, err);
	if (r == SL_PROJECTS_OK)
		row->weight[field->resource] = (uint32_t)weight;
	return r;
}

const char *sl_project_amount(
	enum sl_resource resource, int64_t amount, char *buf, size_t size)
{
	struct sl_amount bytes = {.kind = SL_AMOUNT_BYTES,
		.value = amount > 0 ? (uint64_t)amount * SL_MIB : 0};
	int digits = 3;

	if (amount == SL_QUOTA_ALL) {
		(void)snprintf(buf, size, "unlimited");
		return buf;
	}
	if (resource == SL_RES_MEMORY)
		return sl_amount_format(&bytes, buf, size);
	(void)snprintf(buf, size, "%" PRId64 ".%03" PRId64, amount / 1000, amount % 1000);
	for (size_t last = strlen(buf); digits-- && buf[last - 1] == '0';)
		buf[--last] = '\0';
	if (buf[strlen(buf) - 1] == '.')
		buf[strlen(buf) - 1] = '\0';
	return buf;
}
