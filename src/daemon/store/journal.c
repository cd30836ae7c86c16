/*
 * journal - three lists of flat objects
 *
 * Reading checks every record's checksum, every field's presence, type, range and length, that ids
 * are unique, and that references have a target. A record that fails is left out and reported, so
 * later code can trust what it gets.
 */
#include "daemon/store/journal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
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

/* Makes room for at least one, so that NULL means an error. Growing loses the old contents. */
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

/* bad: of the record being read. Only the first fault is reported. */
struct reader {
	char kind[16];
	size_t line;
	bool bad, damaged;
	struct sl_error *err;
};

static void mistake(struct reader *reader, const char *key, const char *what)
{
	if (!reader->damaged)
		sl_error_set(reader->err, "line %zu (%s): %s%s%s", reader->line,
			reader->kind, key, key[0] ? " " : "", what);
	reader->bad = reader->damaged = true;
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

/* Fields that older journals lack are 0. */
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
	if (json_object_get(json, "entry"))
		COPY_TEXT(reader, json, workload->entry, "entry");
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
	workload->idle_grace = get_late(reader, json, "idle_grace", INT64_MAX);
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

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Drops clients whose workload was left out or missing. */
static int drop_orphans(struct reader *reader, struct sl_journal *journal)
{
	sl_cleanup(sl_freep) uint64_t *ids =
		calloc(journal->workload_count + 1, sizeof(*ids));
	size_t kept = 0;

	if (!ids)
		return sl_err_origin(-ENOMEM);
	for (size_t i = 0; i < journal->workload_count; i++)
		ids[i] = journal->workloads[i].id;
	qsort(ids, journal->workload_count, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < journal->client_count; i++) {
		if (bsearch(&journal->clients[i].workload, ids, journal->workload_count,
			    sizeof(*ids), compare_ids))
			journal->clients[kept++] = journal->clients[i];
		else
			mistake(reader, "workload", "names none that was read");
	}
	journal->client_count = kept;
	return 0;
}

/* Head and GPUs come twice, so that damage in one place loses none of them. */
struct heads {
	unsigned int found;
	size_t gpus, workloads, clients;
};

static void read_head(struct reader *reader, const json_t *json,
	struct sl_journal *journal, struct heads *heads)
{
	struct sl_journal in = {0};
	struct heads counts = {.found = 1};

	if (get_number(reader, json, "format", UINT32_MAX) != SL_JOURNAL_FORMAT)
		mistake(reader, "format", "is another version's");
	COPY_TEXT(reader, json, in.boot, "boot");
	in.next_workload = get_number(reader, json, "next_workload", INT64_MAX);
	in.next_client = get_number(reader, json, "next_client", INT64_MAX);
	counts.gpus = get_number(reader, json, "gpus", ARRAY_MAX);
	counts.workloads = get_number(reader, json, "workloads", ARRAY_MAX);
	counts.clients = get_number(reader, json, "clients", ARRAY_MAX);
	if (reader->bad || heads->found++)
		return;
	memcpy(journal->boot, in.boot, sizeof(journal->boot));
	journal->next_workload = in.next_workload;
	journal->next_client = in.next_client;
	*heads = counts;
}

/* The next place of a list with members of `size` bytes; grows the list. NULL: no memory. */
static void *next_place(void *list_of_anything, size_t count, size_t *room, size_t size)
{
	void **list = list_of_anything;

	if (count == *room) {
		size_t more = 2 * *room + 16;
		char *grown = realloc(*list, more * size);

		if (!grown)
			return NULL;
		*list = grown;
		*room = more;
	}
	return memset((char *)*list + count * size, 0, size);
}

static int take_gpu(struct reader *reader, const json_t *json, struct sl_journal *journal)
{
	struct sl_journal_gpu *gpu = next_place(
		&journal->gpus, journal->gpu_count, &journal->gpu_room, sizeof(*gpu));

	if (!gpu)
		return sl_err_origin(-ENOMEM);
	read_gpu(reader, json, gpu);
	for (size_t i = 0; i < journal->gpu_count; i++) {
		if (memcmp(journal->gpus[i].uuid, gpu->uuid, sizeof(gpu->uuid)) == 0)
			return 0;
	}
	journal->gpu_count += !reader->bad;
	return 0;
}

static int take_workload(
	struct reader *reader, const json_t *json, struct sl_journal *journal)
{
	struct sl_journal_workload *workload = next_place(&journal->workloads,
		journal->workload_count, &journal->workload_room, sizeof(*workload));

	if (!workload)
		return sl_err_origin(-ENOMEM);
	read_workload(reader, json, workload);
	journal->workload_count += !reader->bad;
	return 0;
}

static int take_client(
	struct reader *reader, const json_t *json, struct sl_journal *journal)
{
	struct sl_journal_client *client = next_place(&journal->clients,
		journal->client_count, &journal->client_room, sizeof(*client));

	if (!client)
		return sl_err_origin(-ENOMEM);
	read_client(reader, json, client);
	journal->client_count += !reader->bad;
	return 0;
}

/* Reads the object of one record whose checksum is right. 0 or -ENOMEM. */
static int take_record(struct reader *reader, const char *text, size_t size,
	struct sl_journal *journal, struct heads *heads)
{
	json_error_t where = {0};
	sl_cleanup(json_unrefp) json_t *json =
		json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	const char *kind = json_string_value(json_object_get(json, "record"));

	reader->bad = false;
	if (kind)
		(void)snprintf(reader->kind, sizeof(reader->kind), "%s", kind);
	if (!json)
		mistake(reader, "", where.text);
	else if (kind && strcmp(kind, "head") == 0)
		read_head(reader, json, journal, heads);
	else if (kind && strcmp(kind, "gpu") == 0)
		return take_gpu(reader, json, journal);
	else if (kind && strcmp(kind, "workload") == 0)
		return take_workload(reader, json, journal);
	else if (kind && strcmp(kind, "client") == 0)
		return take_client(reader, json, journal);
	else
		mistake(reader, "record", "is of no kind that there is");
	return 0;
}

static bool take_digits(const char *text, uint32_t *out)
{
	*out = 0;
	for (size_t i = 0; i < SL_JOURNAL_DIGITS; i++) {
		const char *digit = memchr("0123456789abcdef", text[i], 16);

		if (!digit)
			return false;
		*out = *out << 4 |
		       (uint32_t)(digit[0] <= '9' ? digit[0] - '0' : digit[0] - 'a' + 10);
	}
	return text[SL_JOURNAL_DIGITS] == ' ';
}

/* The size of the object of the record that begins there; 0: damaged. */
static size_t object_at(const char *text, size_t left)
{
	uint32_t crc, size;

	if (left < SL_JOURNAL_FRAME || !take_digits(text, &crc) ||
		!take_digits(text + SL_JOURNAL_DIGITS + 1, &size) ||
		size > left - SL_JOURNAL_FRAME)
		return 0;
	return sl_crc32(text + SL_JOURNAL_DIGITS + 1,
		       SL_JOURNAL_FRAME - SL_JOURNAL_DIGITS - 1 + size) == crc
		       ? size
		       : 0;
}

static int read_records(struct reader *reader, const char *text, size_t size,
	struct sl_journal *journal, struct heads *heads)
{
	size_t at = 0;

	for (reader->line = 1; at < size; reader->line++) {
		size_t object = object_at(text + at, size - at);
		const char *end;

		(void)snprintf(reader->kind, sizeof(reader->kind), "a record");
		if (object) {
			int r = take_record(reader, text + at + SL_JOURNAL_FRAME, object,
				journal, heads);

			if (r < 0)
				return r;
			at += SL_JOURNAL_FRAME + object;
			if (at == size || text[at] != '\n')
				mistake(reader, "", "does not end where it should");
			at++;
			continue;
		}
		mistake(reader, "", "has the wrong checksum");
		end = memchr(text + at, '\n', size - at);
		at = end ? (size_t)(end - text) + 1 : size;
	}
	return 0;
}

static uint64_t id_of_workload(const void *list, size_t i)
{
	return ((const struct sl_journal_workload *)list)[i].id;
}

static uint64_t id_of_client(const void *list, size_t i)
{
	return ((const struct sl_journal_client *)list)[i].id;
}

/* Does an id come twice? Which record it means would be unknown. Or negative errno. */
static int comes_twice(
	const void *list, size_t count, uint64_t (*id)(const void *list, size_t i))
{
	sl_cleanup(sl_freep) uint64_t *ids = calloc(count + 1, sizeof(*ids));
	bool twice = false;

	if (!ids)
		return sl_err_origin(-ENOMEM);
	for (size_t i = 0; i < count; i++)
		ids[i] = id(list, i);
	qsort(ids, count, sizeof(*ids), compare_ids);
	for (size_t i = 0; i + 1 < count; i++)
		twice |= ids[i] == ids[i + 1];
	return twice;
}

static int check_whole(struct reader *reader, struct sl_journal *journal)
{
	int workloads =
		comes_twice(journal->workloads, journal->workload_count, id_of_workload);
	int clients = comes_twice(journal->clients, journal->client_count, id_of_client);

	if (workloads < 0 || clients < 0)
		return workloads < 0 ? workloads : clients;
	if (!workloads && !clients)
		return drop_orphans(reader, journal);
	sl_error_set(reader->err, "the id of a %s comes twice",
		workloads ? "workload" : "client");
	return SL_JOURNAL_BAD;
}

/* Reports how many of the records that the head promises are missing. */
static void say_missing(struct reader *reader, const struct sl_journal *journal,
	const struct heads *heads)
{
	size_t used = strlen(reader->err->text);

	if (journal->gpu_count == heads->gpus &&
		journal->workload_count == heads->workloads &&
		journal->client_count == heads->clients)
		return;
	if (!reader->damaged)
		sl_error_set(reader->err, "some of it is missing");
	used = strlen(reader->err->text);
	(void)snprintf(reader->err->text + used, sizeof(reader->err->text) - used,
		"; without it there are %zu of %zu workloads and %zu of %zu clients",
		journal->workload_count, heads->workloads, journal->client_count,
		heads->clients);
	reader->damaged = true;
}

int sl_journal_decode(
	const char *text, size_t size, struct sl_journal *journal, struct sl_error *err)
{
	struct reader reader = {.err = err};
	struct heads heads = {0};
	int r = read_records(&reader, text, size, journal, &heads);

	if (r == 0 && !heads.found) {
		if (!reader.damaged)
			sl_error_set(err, "it has no head");
		r = SL_JOURNAL_BAD;
	}
	if (r == 0)
		r = check_whole(&reader, journal);
	if (r < 0)
		sl_error_set(err, "there is no memory to read it");
	if (r != 0) {
		sl_journal_fini(journal);
		return SL_JOURNAL_BAD;
	}
	if (heads.found < 2)
		mistake(&reader, "", "the end is missing");
	say_missing(&reader, journal, &heads);
	return reader.damaged ? SL_JOURNAL_PARTLY : SL_JOURNAL_OK;
}

/* --- the file ----------------------------------------------------------------------------- */

int sl_journal_write(const char *path, const struct sl_journal *journal)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r = sl_journal_encode(journal, &text, &size);

	return r < 0 ? r : sl_file_replace(path, text, size, false);
}

/* A name made by sl_file_replace: a dot, then six letters and digits. */
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

/* stays: keep it in place, too. A daemon killed before its next write then still has it. */
static void put_aside(const char *path, bool stays, struct sl_error *err)
{
	char aside[SL_PATH_MAX + 16];

	for (int i = 1; i <= BAD_KEPT_MAX; i++) {
		(void)snprintf(aside, sizeof(aside), "%s.bad-%d", path, i);
		if (access(aside, F_OK) == 0)
			continue;
		if ((stays ? link(path, aside) : rename(path, aside)) == 0)
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
	if (r == SL_JOURNAL_BAD || r == SL_JOURNAL_PARTLY)
		put_aside(path, r == SL_JOURNAL_PARTLY, err);
	return r;
}
