/*
 * journal - three lists of flat objects
 *
 * Reading checks every field's presence, type, range and length, and that ids are unique and
 * references lead somewhere: a journal is taken whole or put aside, so nothing after this
 * file has to doubt it.
 */
#include "daemon/journal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/paths.h"

#define ARRAY_MAX    1000000
#define BAD_KEPT_MAX 1000

void sl_journal_fini(struct sl_journal *journal)
{
	free(journal->gpus);
	free(journal->workloads);
	free(journal->clients);
	*journal = (struct sl_journal){0};
}

/* At least one, so that the pointer is none of an error. Nothing of what was there is kept where it
 * grows. */
static bool make_room(void *list_of_anything, size_t *room, size_t count, size_t size)
{
	void **list = list_of_anything;

	if (*list && count <= *room)
		return true;
	free(*list);
	*room = count + count / 4 + 1;
	*list = calloc(*room, size);
	return *list != NULL;
}

int sl_journal_reserve(
	struct sl_journal *journal, size_t gpus, size_t workloads, size_t clients)
{
	if (!make_room(
		    &journal->gpus, &journal->gpu_room, gpus, sizeof(*journal->gpus)) ||
		!make_room(&journal->workloads, &journal->workload_room, workloads,
			sizeof(*journal->workloads)) ||
		!make_room(&journal->clients, &journal->client_room, clients,
			sizeof(*journal->clients))) {
		sl_journal_fini(journal);
		return sl_err_origin(-ENOMEM);
	}
	journal->gpu_count = gpus;
	journal->workload_count = workloads;
	journal->client_count = clients;
	return 0;
}

static void json_unrefp(json_t **json)
{
	json_decref(*json);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Where a reader is, for its message; the first mistake stays. */
struct reader {
	const char *list;
	size_t index;
	bool bad;
	struct sl_error *err;
};

static void mistake(struct reader *reader, const char *key, const char *what)
{
	if (!reader->bad)
		sl_error_set(reader->err, "%s[%zu].%s %s", reader->list, reader->index,
			key, what);
	reader->bad = true;
}

static uint64_t get_number(
	struct reader *reader, const json_t *object, const char *key, uint64_t max)
{
	const json_t *json = json_object_get(object, key);

	if (!json_is_integer(json) || json_integer_value(json) < 0 ||
		(uint64_t)json_integer_value(json) > max) {
		mistake(reader, key, "is not a number in range");
		return 0;
	}
	return (uint64_t)json_integer_value(json);
}

/* What journals of before do not have is 0. */
static uint64_t get_late(
	struct reader *reader, const json_t *object, const char *key, uint64_t max)
{
	return json_object_get(object, key) ? get_number(reader, object, key, max) : 0;
}

static const char *get_text(
	struct reader *reader, const json_t *object, const char *key, size_t room)
{
	const json_t *json = json_object_get(object, key);

	if (!json_is_string(json) || json_string_length(json) >= room ||
		strlen(json_string_value(json)) != json_string_length(json)) {
		mistake(reader, key, "is not a text that fits");
		return "";
	}
	return json_string_value(json);
}

#define COPY_TEXT(reader, object, field, key) \
	sl_wire_str((field), sizeof(field),   \
		get_text((reader), (object), (key), sizeof(field)))

static void get_uuid(
	struct reader *reader, const json_t *json, uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	if (!json_is_string(json) || !sl_wire_uuid_parse(json_string_value(json), uuid))
		mistake(reader, "uuid", "is not the UUID of a GPU");
}

static void read_gpu(
	struct reader *reader, const json_t *json, struct sl_journal_gpu *gpu)
{
	get_uuid(reader, json_object_get(json, "uuid"), gpu->uuid);
	COPY_TEXT(reader, json, gpu->name, "name");
	COPY_TEXT(reader, json, gpu->pci, "pci");
	gpu->pci_key = get_number(reader, json, "pci_key", INT64_MAX);
	gpu->capacity_bytes = get_number(reader, json, "capacity_bytes", INT64_MAX);
	gpu->reserve_bytes =
		get_number(reader, json, "reserve_bytes", gpu->capacity_bytes);
}

static void read_gpus_of(
	struct reader *reader, const json_t *json, struct sl_journal_workload *workload)
{
	if (!json_is_array(json) || json_array_size(json) == 0 ||
		json_array_size(json) > SL_NODE_GPUS_MAX) {
		mistake(reader, "gpus", "is not a list of GPUs");
		return;
	}
	workload->gpu_count = (uint32_t)json_array_size(json);
	for (uint32_t i = 0; i < workload->gpu_count; i++)
		get_uuid(reader, json_array_get(json, i), workload->gpus[i]);
}

static void read_workload(
	struct reader *reader, const json_t *json, struct sl_journal_workload *workload)
{
	const json_t *priority = json_object_get(json, "priority");

	workload->id = get_number(reader, json, "id", INT64_MAX);
	if (!sl_wire_token_parse(get_text(reader, json, "token", 33), workload->token))
		mistake(reader, "token", "is not 32 hex digits");
	workload->uid = (uint32_t)get_number(reader, json, "uid", UINT32_MAX);
	workload->root_pid = (int32_t)get_number(reader, json, "root_pid", INT32_MAX);
	workload->root_start = get_number(reader, json, "root_start", INT64_MAX);
	COPY_TEXT(reader, json, workload->name, "name");
	COPY_TEXT(reader, json, workload->project, "project");
	COPY_TEXT(reader, json, workload->command, "command");
	workload->request.kind =
		(uint32_t)get_number(reader, json, "request_kind", SL_AMOUNT_KINDS - 1);
	workload->request.value = get_number(reader, json, "request_value", INT64_MAX);
	workload->limit.kind =
		(uint32_t)get_number(reader, json, "limit_kind", SL_AMOUNT_KINDS - 1);
	workload->limit.value = get_number(reader, json, "limit_value", INT64_MAX);
	workload->request_bytes = get_number(reader, json, "request_bytes", INT64_MAX);
	workload->limit_bytes = get_number(reader, json, "limit_bytes", INT64_MAX);
	workload->born = get_number(reader, json, "born", INT64_MAX);
	if (!json_is_integer(priority) ||
		llabs(json_integer_value(priority)) > SL_PRIORITY_MAX)
		mistake(reader, "priority", "is not a number in range");
	else
		workload->priority = (int32_t)json_integer_value(priority);
	workload->flags = (uint32_t)get_late(reader, json, "flags", SL_WORKLOAD_FLAGS);
	workload->wait_max = get_late(reader, json, "wait_max", INT64_MAX);
	workload->kill_at = get_late(reader, json, "kill_at", INT64_MAX);
	workload->warm_after = get_late(reader, json, "warm_after", INT64_MAX);
	workload->park = (uint32_t)get_late(reader, json, "park", SL_PARK_STATES - 1);
	workload->by_queue = (uint32_t)get_late(reader, json, "by_queue", 1);
	workload->leaving = (uint32_t)get_late(reader, json, "leaving", 1);
	workload->former_limit_bytes =
		get_late(reader, json, "former_limit_bytes", INT64_MAX);
	read_gpus_of(reader, json_object_get(json, "gpus"), workload);
}

static void read_client(
	struct reader *reader, const json_t *json, struct sl_journal_client *client)
{
	client->id = get_number(reader, json, "id", INT64_MAX);
	client->workload = get_number(reader, json, "workload", INT64_MAX);
	client->pid = (int32_t)get_number(reader, json, "pid", INT32_MAX);
	client->start_ticks = get_number(reader, json, "start_ticks", INT64_MAX);
	client->swaps = (uint32_t)get_late(reader, json, "swaps", 1);
}

static const json_t *get_list(struct reader *reader, const json_t *root, const char *key)
{
	const json_t *json = json_object_get(root, key);

	reader->list = key;
	reader->index = 0;
	if (!json_is_array(json) || json_array_size(json) > ARRAY_MAX) {
		mistake(reader, "", "is not a list");
		return NULL;
	}
	return json;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Ids of workloads, sorted; clients must name one of them, and none may come twice. */
static void check_ids(struct reader *reader, const struct sl_journal *journal)
{
	size_t most = sl_max_u64(journal->workload_count, journal->client_count);
	sl_cleanup(sl_freep) uint64_t *ids = calloc(most + 1, sizeof(*ids));

	if (!ids) {
		mistake(reader, "", "could not be checked without memory");
		return;
	}
	reader->list = "clients";
	for (size_t i = 0; i < journal->client_count; i++)
		ids[i] = journal->clients[i].id;
	qsort(ids, journal->client_count, sizeof(*ids), compare_ids);
	for (size_t i = 0; i + 1 < journal->client_count; i++) {
		reader->index = i;
		if (ids[i] == ids[i + 1])
			mistake(reader, "id", "comes twice");
	}
	reader->list = "workloads";
	for (size_t i = 0; i < journal->workload_count; i++)
		ids[i] = journal->workloads[i].id;
	qsort(ids, journal->workload_count, sizeof(*ids), compare_ids);
	for (size_t i = 0; i + 1 < journal->workload_count; i++) {
		reader->index = i;
		if (ids[i] == ids[i + 1])
			mistake(reader, "id", "comes twice");
	}
	reader->list = "clients";
	for (size_t i = 0; i < journal->client_count; i++) {
		reader->index = i;
		if (!bsearch(&journal->clients[i].workload, ids, journal->workload_count,
			    sizeof(*ids), compare_ids))
			mistake(reader, "workload", "names no workload");
	}
}

static void read_root(
	struct reader *reader, const json_t *root, struct sl_journal *journal)
{
	const json_t *gpus, *workloads, *clients;

	if (get_number(reader, root, "format", UINT32_MAX) != SL_JOURNAL_FORMAT)
		mistake(reader, "format", "is another version's");
	COPY_TEXT(reader, root, journal->boot, "boot");
	journal->next_workload = get_number(reader, root, "next_workload", INT64_MAX);
	journal->next_client = get_number(reader, root, "next_client", INT64_MAX);
	gpus = get_list(reader, root, "gpus");
	workloads = get_list(reader, root, "workloads");
	clients = get_list(reader, root, "clients");
	if (reader->bad)
		return;
	if (sl_journal_reserve(journal, json_array_size(gpus), json_array_size(workloads),
		    json_array_size(clients)) < 0) {
		mistake(reader, "", "does not fit into memory");
		return;
	}
	reader->list = "gpus";
	for (reader->index = 0; reader->index < journal->gpu_count; reader->index++)
		read_gpu(reader, json_array_get(gpus, reader->index),
			&journal->gpus[reader->index]);
	reader->list = "workloads";
	for (reader->index = 0; reader->index < journal->workload_count; reader->index++)
		read_workload(reader, json_array_get(workloads, reader->index),
			&journal->workloads[reader->index]);
	reader->list = "clients";
	for (reader->index = 0; reader->index < journal->client_count; reader->index++)
		read_client(reader, json_array_get(clients, reader->index),
			&journal->clients[reader->index]);
	check_ids(reader, journal);
}

int sl_journal_decode(
	const char *text, size_t size, struct sl_journal *journal, struct sl_error *err)
{
	sl_cleanup(json_unrefp) json_t *root = NULL;
	struct reader reader = {.list = "journal", .err = err};
	json_error_t where = {0};

	root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!root) {
		sl_error_set(err, "line %d: %s", where.line, where.text);
		return SL_JOURNAL_BAD;
	}
	read_root(&reader, root, journal);
	if (!reader.bad)
		return SL_JOURNAL_OK;
	sl_journal_fini(journal);
	return SL_JOURNAL_BAD;
}

/* --- the file ----------------------------------------------------------------------------- */

int sl_journal_write(const char *path, const struct sl_journal *journal)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r = sl_journal_encode(journal, &text, &size);

	return r < 0 ? r : sl_file_replace(path, text, size, false);
}

/* The names that sl_file_replace gives: six letters and digits behind a dot. */
static bool is_leftover(const char *name, const char *journal)
{
	size_t length = strlen(journal);

	if (strncmp(name, journal, length) != 0 || name[length] != '.' ||
		strlen(name + length + 1) != 6)
		return false;
	for (const char *c = name + length + 1; *c; c++) {
		if (!isalnum((unsigned char)*c))
			return false;
	}
	return true;
}

void sl_journal_sweep(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[SL_PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	(void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		slash ? path : ".");
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		if (is_leftover(entry->d_name, slash ? slash + 1 : path))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}

static void put_aside(const char *path, struct sl_error *err)
{
	char aside[SL_PATH_MAX + 16];

	for (int i = 1; i <= BAD_KEPT_MAX; i++) {
		(void)snprintf(aside, sizeof(aside), "%s.bad-%d", path, i);
		if (access(aside, F_OK) == 0)
			continue;
		if (rename(path, aside) == 0)
			sl_error_wrap(err, "%s is damaged (kept as %s)", path, aside);
		else
			sl_error_wrap(err, "%s is damaged", path);
		return;
	}
}

int sl_journal_read(const char *path, struct sl_journal *journal, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r = sl_file_read(path, SL_JOURNAL_BYTES_MAX, &text, &size);

	if (r == -ENOENT)
		return SL_JOURNAL_NONE;
	if (r < 0) {
		sl_error_set(err, "cannot read %.200s: %s", path, strerror(-r));
		return r;
	}
	r = sl_journal_decode(text, size, journal, err);
	if (r == SL_JOURNAL_BAD)
		put_aside(path, err);
	return r;
}
