/*
 * state - see the header
 *
 * One table of fields for writing and reading, for the job and for its tasks. JSON numbers are
 * signed, so 64-bit values of 2^63 and more (a time that never comes) are written as negative ones.
 * A text is a JSON string if it is UTF-8, else an object with its bytes in hex: a command is the
 * user's bytes.
 */
#include "daemon/jobs/state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cluster.h"

/* Of the file; a newer sluiced writes a higher one. */
#define FORMAT   1
#define GPUS_MAX 64

struct field {
	const char *name;
	enum { TEXT, U32, I32, U64, YES } type;
	size_t offset, size; /* size: of TEXT */
	int64_t least, most; /* of U32 and I32 */
};

#define AT(type, field)     offsetof(struct type, field)
#define SIZE_OF(type, text) sizeof(((struct type *)NULL)->text)

#define ROW_TEXT(name)                                                               \
	{                                                                            \
#name, TEXT, AT(sl_jobs_row, name), SIZE_OF(sl_jobs_row, name), 0, 0 \
	}
#define ROW_U32(name, least, most)                                \
	{                                                         \
#name, U32, AT(sl_jobs_row, name), 0, least, most \
	}
#define ROW_U64(name)                                      \
	{                                                  \
#name, U64, AT(sl_jobs_row, name), 0, 0, 0 \
	}
static const struct field job_fields[] = {
	ROW_U64(id),
	ROW_U32(uid, 0, UINT32_MAX - 1),
	ROW_U32(gid, 0, UINT32_MAX - 1),
	ROW_TEXT(name),
	ROW_TEXT(project),
	ROW_TEXT(command),
	ROW_TEXT(visible),
	{"request_kind", U32, AT(sl_jobs_row, request.kind), 0, 0, SL_AMOUNT_KINDS - 1},
	{"request_value", U64, AT(sl_jobs_row, request.value), 0, 0, 0},
	{"limit_kind", U32, AT(sl_jobs_row, limit.kind), 0, 0, SL_AMOUNT_KINDS - 1},
	{"limit_value", U64, AT(sl_jobs_row, limit.value), 0, 0, 0},
	ROW_U32(gpu_count, 0, GPUS_MAX),
	ROW_U32(flags, 0, UINT32_MAX),
	ROW_U32(task_count, 1, SL_JOB_TASKS_MAX),
	ROW_U32(least, 0, SL_JOB_TASKS_MAX),
	ROW_U32(retries, 0, SL_JOB_RETRIES_MAX),
	ROW_U32(workloads_most, 0, UINT32_MAX),
	{"priority", I32, AT(sl_jobs_row, priority), 0, -SL_PRIORITY_MAX,
		SL_PRIORITY_MAX},
	ROW_U64(wait_max),
	ROW_U64(warm_after),
	ROW_U64(preempt_delay),
	ROW_U64(idle_grace),
	ROW_U32(state, 0, SL_JOB_STATES - 1),
	ROW_U64(submitted_ms),
	ROW_U64(started_ms),
	ROW_U64(ended_ms),
	ROW_U32(exit_status, 0, UINT32_MAX),
	ROW_U32(started, 0, UINT32_MAX),
	ROW_TEXT(why),
};

#define TASK_U32(name, most)                                   \
	{                                                      \
#name, U32, AT(sl_jobs_task, name), 0, 0, most \
	}
static const struct field task_fields[] = {
	TASK_U32(state, SL_TASK_STATES - 1),
	TASK_U32(attempt, UINT32_MAX),
	TASK_U32(failures, UINT32_MAX),
	{"workload", U64, AT(sl_jobs_task, workload), 0, 0, 0},
	{"parked", YES, AT(sl_jobs_task, parked), 0, 0, 0},
	TASK_U32(exit_status, UINT32_MAX),
};

/* --- Writing. --- */

static json_t *text_json(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	json_t *json = json_string(text);
	char hex[2 * 512 + 1];
	size_t at = 0;

	if (json)
		return json;
	for (; *text && at + 2 < sizeof(hex); text++) {
		hex[at++] = digits[(unsigned char)*text >> 4];
		hex[at++] = digits[*text & 15];
	}
	hex[at] = '\0';
	return json_pack("{s:s}", "hex", hex);
}

static json_t *field_json(const struct field *field, const void *object)
{
	const char *at = (const char *)object + field->offset;
	uint64_t big;
	uint32_t number;

	switch (field->type) {
	case TEXT: return text_json(at);
	case YES: return json_boolean(*(const bool *)at);
	case I32: return json_integer(*(const int32_t *)at);
	case U32: memcpy(&number, at, sizeof(number)); return json_integer(number);
	case U64: memcpy(&big, at, sizeof(big)); return json_integer((json_int_t)big);
	}
	return NULL;
}

/* NULL without memory. */
static json_t *object_json(const struct field *fields, size_t count, const void *object)
{
	json_t *json = json_object();

	for (size_t i = 0; json && i < count; i++) {
		if (json_object_set_new(
			    json, fields[i].name, field_json(&fields[i], object)) < 0) {
			json_decref(json);
			json = NULL;
		}
	}
	return json;
}

char *sl_jobs_state_write(const struct sl_jobs_row *row)
{
	json_t *json = object_json(job_fields, SL_ARRAY_LEN(job_fields), row);
	json_t *tasks = json_array();
	bool ok = json && tasks;
	char *text = NULL;

	for (uint32_t i = 0; ok && i < row->task_count; i++)
		ok = json_array_append_new(
			     tasks, object_json(task_fields, SL_ARRAY_LEN(task_fields),
					    &row->tasks[i])) == 0;
	ok = ok && json_object_set(json, "tasks", tasks) == 0 &&
	     json_object_set_new(json, "format", json_integer(FORMAT)) == 0;
	if (ok)
		text = json_dumps(json, JSON_COMPACT);
	json_decref(tasks);
	json_decref(json);
	return text;
}

/* --- Reading. Each: false says what is wrong in err. --- */

static bool from_hex(const char *hex, char *out, size_t size)
{
	size_t length = strlen(hex);

	if (length % 2 || length / 2 >= size || length == 0)
		return false;
	for (size_t i = 0; i < length; i += 2) {
		unsigned int byte = 0;

		for (size_t k = i; k < i + 2; k++) {
			const char *digits = "0123456789abcdef";
			const char *at = strchr(digits, hex[k]);

			if (!at)
				return false;
			byte = byte * 16 + (unsigned int)(at - digits);
		}
		if (byte == 0)
			return false;
		out[i / 2] = (char)byte;
	}
	out[length / 2] = '\0';
	return true;
}

static bool read_text(const json_t *json, char *out, size_t size)
{
	const char *text = json_string_value(json);
	const char *hex = json_string_value(json_object_get(json, "hex"));

	if (hex && json_object_size(json) == 1)
		return from_hex(hex, out, size);
	if (!text || strlen(text) != json_string_length(json) || strlen(text) >= size)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool read_field(const struct field *field, const json_t *json, void *object)
{
	char *at = (char *)object + field->offset;
	int64_t number = json_integer_value(json);
	uint64_t big = (uint64_t)number;
	uint32_t small = (uint32_t)number;

	switch (field->type) {
	case TEXT: return read_text(json, at, field->size);
	case YES: *(bool *)at = json_is_true(json); return json_is_boolean(json);
	case U64:
		if (!json_is_integer(json))
			return false;
		memcpy(at, &big, sizeof(big));
		return true;
	case U32:
	case I32:
		if (!json_is_integer(json) || number < field->least ||
			number > field->most)
			return false;
		memcpy(at, &small, sizeof(small));
		return true;
	}
	return false;
}

/* more: number of keys besides the fields. */
static bool read_object(const struct field *fields, size_t count, size_t more,
	const json_t *json, void *object, struct sl_error *err)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(json, fields[i].name);

		if (value && read_field(&fields[i], value, object))
			continue;
		sl_error_set(err, "'%s' %s", fields[i].name,
			value ? "is not what it may be" : "is missing");
		return false;
	}
	if (json_object_size(json) == count + more)
		return true;
	sl_error_set(err, "there are keys that nobody knows");
	return false;
}

static bool amount_is_fine(const struct sl_amount *amount)
{
	return amount->kind != SL_AMOUNT_FRACTION ||
	       (amount->value >= 1 && amount->value <= SL_AMOUNT_WHOLE);
}

static bool fits_together(
	const struct sl_jobs_row *row, uint64_t id, struct sl_error *err)
{
	const char *wrong = NULL;

	if (row->id != id)
		wrong = "it is another job's";
	else if (!amount_is_fine(&row->request) || !amount_is_fine(&row->limit))
		wrong = "'request_value' or 'limit_value' is not what it may be";
	else if (row->least > row->task_count)
		wrong = "'least' is more than 'task_count'";
	if (wrong)
		sl_error_set(err, "%s", wrong);
	return !wrong;
}

static bool read_tasks(const json_t *tasks, struct sl_jobs_row *row, struct sl_error *err)
{
	if (!json_is_array(tasks) || json_array_size(tasks) != row->task_count) {
		sl_error_set(err, "'tasks' are not as many as 'task_count'");
		return false;
	}
	row->tasks = calloc(row->task_count, sizeof(*row->tasks));
	if (!row->tasks) {
		sl_error_set(err, "there is no memory for it");
		return false;
	}
	for (uint32_t i = 0; i < row->task_count; i++) {
		if (read_object(task_fields, SL_ARRAY_LEN(task_fields), 0,
			    json_array_get(tasks, i), &row->tasks[i], err))
			continue;
		sl_error_wrap(err, "task %" PRIu32, i);
		return false;
	}
	return true;
}

static bool read_all(
	const json_t *json, uint64_t id, struct sl_jobs_row *row, struct sl_error *err)
{
	const json_t *format = json_object_get(json, "format");

	if (!json_is_integer(format) || json_integer_value(format) < 1) {
		sl_error_set(err, "'format' is not what it may be");
		return false;
	}
	if (json_integer_value(format) > FORMAT) {
		sl_error_set(err, "it was written by a newer sluiced; start that one");
		return false;
	}
	/* Two more: format and tasks. */
	return read_object(job_fields, SL_ARRAY_LEN(job_fields), 2, json, row, err) &&
	       fits_together(row, id, err) &&
	       read_tasks(json_object_get(json, "tasks"), row, err);
}

int sl_jobs_state_read(const char *text, size_t size, uint64_t id,
	struct sl_jobs_row *row, struct sl_error *err)
{
	json_error_t where;
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	bool ok = false;

	*row = (struct sl_jobs_row){0};
	if (json)
		ok = read_all(json, id, row, err);
	else
		sl_error_set(err, "byte %d: %.150s", where.position, where.text);
	json_decref(json);
	if (ok)
		return SL_JOBS_STORE_OK;
	sl_jobs_row_fini(row);
	*row = (struct sl_jobs_row){0};
	return SL_JOBS_STORE_BAD;
}
