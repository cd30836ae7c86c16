/*
 * journal - three lists as records of run.db
 *
 * The loop fills a struct sl_journal and compares it with the last one that was written, so that a
 * change costs the records that differ, not a thousand workloads. The head and the GPUs, which all
 * other records need, are stored twice.
 */
#include "daemon/store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/record.h"
#include "policy/compute/compute.h"

/* The second copies have numbers from here on. */
#define COPIES 1000

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

/* --- fields ------------------------------------------------------------------------------- */

#define HEAD(what, member) SL_FIELD_AT(sl_journal, what, member, 0, 0)
#define GPU(what, member)  SL_FIELD_AT(sl_journal_gpu, what, member, 0, 0)
#define WORKLOAD(what, member, most) \
	SL_FIELD_AT(sl_journal_workload, what, member, 0, most)
#define CLIENT(what, member, most) SL_FIELD_AT(sl_journal_client, what, member, 0, most)

static const struct sl_field head_fields[] = {
	HEAD(TEXT, boot),
	HEAD(U64, next_workload),
	HEAD(U64, next_client),
};

static const struct sl_field gpu_fields[] = {
	GPU(BYTES, uuid),
	GPU(TEXT, name),
	GPU(TEXT, pci),
	GPU(U64, pci_key),
	GPU(U64, capacity_bytes),
	GPU(U64, reserve_bytes),
};

static const struct sl_field workload_fields[] = {
	WORKLOAD(BYTES, token, 0),
	WORKLOAD(U32, uid, UINT32_MAX),
	WORKLOAD(I32, root_pid, INT32_MAX),
	WORKLOAD(U64, root_start, 0),
	WORKLOAD(TEXT, name, 0),
	WORKLOAD(TEXT, project, 0),
	WORKLOAD(TEXT, command, 0),
	WORKLOAD(TEXT, entry, 0),
	WORKLOAD(U32, request.kind, SL_AMOUNT_KINDS - 1),
	WORKLOAD(U64, request.value, 0),
	WORKLOAD(U32, limit.kind, SL_AMOUNT_KINDS - 1),
	WORKLOAD(U64, limit.value, 0),
	WORKLOAD(U64, request_bytes, 0),
	WORKLOAD(U64, limit_bytes, 0),
	WORKLOAD(U64, born, 0),
	SL_FIELD_AT(
		sl_journal_workload, I32, priority, -SL_PRIORITY_MAX, SL_PRIORITY_MAX),
	WORKLOAD(U32, flags, SL_WORKLOAD_FLAGS),
	WORKLOAD(U64, wait_max, 0),
	WORKLOAD(U64, warm_after, 0),
	WORKLOAD(U64, detach_after, 0),
	WORKLOAD(U64, idle_grace, 0),
	WORKLOAD(U32, compute_request_pm, SL_COMPUTE_WHOLE),
	WORKLOAD(U32, compute_limit_pm, SL_COMPUTE_WHOLE),
	WORKLOAD(U32, park, SL_PARK_STATES - 1),
	WORKLOAD(U32, by_queue, 1),
	WORKLOAD(U32, leaving, 1),
	WORKLOAD(U64, kill_at, 0),
	WORKLOAD(U64, former_limit_bytes, 0),
	WORKLOAD(U32, gpu_count, SL_NODE_GPUS_MAX),
	/* All places, in one: those that are not taken are 0. */
	WORKLOAD(BYTES, gpus, 0),
	WORKLOAD(BYTES, first, 0),
	WORKLOAD(BYTES, reach, 0),
};

static const struct sl_field client_fields[] = {
	CLIENT(U64, workload, 0),
	CLIENT(I32, pid, INT32_MAX),
	CLIENT(U32, swaps, 1),
	CLIENT(U64, start_ticks, 0),
	CLIENT(U64, away_bytes, 0),
	CLIENT(BYTES, home, 0),
};

#define TABLE(kind, list) [SL_KIND_##kind] = {list, SL_ARRAY_LEN(list)}

static const struct {
	const struct sl_field *fields;
	size_t count;
} tables[] = {
	TABLE(HEAD, head_fields),
	TABLE(GPU, gpu_fields),
	TABLE(WORKLOAD, workload_fields),
	TABLE(CLIENT, client_fields),
};

static bool read_it(
	enum sl_store_kind kind, const char *text, void *object, struct sl_error *why)
{
	return sl_record_read(tables[kind].fields, tables[kind].count, text, object, why);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool no_memory(struct sl_error *why)
{
	sl_error_set(why, "there is no memory to read it");
	return false;
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

static bool take_head(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_journal *journal = context, in = {0};

	if (!read_it(SL_KIND_HEAD, text, &in, why))
		return false;
	memcpy(journal->boot, in.boot, sizeof(journal->boot));
	journal->next_workload = in.next_workload;
	journal->next_client = in.next_client;
	return true;
}

static bool take_gpu(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_journal *journal = context;
	struct sl_journal_gpu *gpu = next_place(
		&journal->gpus, journal->gpu_count, &journal->gpu_room, sizeof(*gpu));

	if (!gpu)
		return no_memory(why);
	if (!read_it(SL_KIND_GPU, text, gpu, why))
		return false;
	for (size_t i = 0; i < journal->gpu_count; i++) {
		if (memcmp(journal->gpus[i].uuid, gpu->uuid, sizeof(gpu->uuid)) == 0)
			return true;
	}
	journal->gpu_count++;
	return true;
}

static bool take_workload(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_journal *journal = context;
	struct sl_journal_workload *workload = next_place(&journal->workloads,
		journal->workload_count, &journal->workload_room, sizeof(*workload));

	if (!workload)
		return no_memory(why);
	workload->id = number;
	if (!read_it(SL_KIND_WORKLOAD, text, workload, why))
		return false;
	if (workload->gpu_count == 0) {
		sl_error_set(why, "'gpu_count' is 0");
		return false;
	}
	journal->workload_count++;
	return true;
}

static bool take_client(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_journal *journal = context;
	struct sl_journal_client *client = next_place(&journal->clients,
		journal->client_count, &journal->client_room, sizeof(*client));

	if (!client)
		return no_memory(why);
	client->id = number;
	if (!read_it(SL_KIND_CLIENT, text, client, why))
		return false;
	journal->client_count++;
	return true;
}

/* Both begin with their id. */
static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort(struct sl_journal *journal)
{
	if (journal->workload_count)
		qsort(journal->workloads, journal->workload_count,
			sizeof(*journal->workloads), compare_ids);
	if (journal->client_count)
		qsort(journal->clients, journal->client_count, sizeof(*journal->clients),
			compare_ids);
}

/* Drops clients whose workload was left out. */
static void drop_orphans(struct sl_journal *journal)
{
	size_t kept = 0;

	for (size_t i = 0; i < journal->client_count; i++) {
		if (journal->workload_count &&
			bsearch(&journal->clients[i].workload, journal->workloads,
				journal->workload_count, sizeof(*journal->workloads),
				compare_ids))
			journal->clients[kept++] = journal->clients[i];
	}
	journal->client_count = kept;
}

int sl_journal_load(
	struct sl_store *store, struct sl_journal *journal, struct sl_error *err)
{
	static const struct {
		enum sl_store_kind kind;
		bool (*take)(void *context, uint64_t number, const char *text,
			struct sl_error *why);
	} lists[] = {{SL_KIND_HEAD, take_head}, {SL_KIND_GPU, take_gpu},
		{SL_KIND_WORKLOAD, take_workload}, {SL_KIND_CLIENT, take_client}};
	int worst = SL_STORE_OK;

	for (size_t i = 0; i < SL_ARRAY_LEN(lists); i++) {
		struct sl_error said = {0};
		int r = sl_store_load(
			store, lists[i].kind, lists[i].take, journal, &said);

		if (r != SL_STORE_OK && worst == SL_STORE_OK)
			*err = said;
		worst = r > worst ? r : worst;
	}
	/* Without a head nothing says which boot the processes are of. */
	if (worst == SL_STORE_PARTLY && !journal->boot[0])
		worst = SL_STORE_BAD;
	if (worst == SL_STORE_BAD)
		sl_journal_fini(journal);
	sort(journal);
	drop_orphans(journal);
	return worst;
}

/* --- writing ------------------------------------------------------------------------------ */

static void put(struct sl_store_change *change, enum sl_store_kind kind, uint64_t number,
	const void *object, size_t size)
{
	sl_store_put_object(change, kind, number, tables[kind].fields, tables[kind].count,
		object, size);
}

/* Two lists, sorted by the ids that their members of `size` bytes begin with. */
static void put_changed(struct sl_store_change *change, enum sl_store_kind kind,
	const void *before, size_t before_count, const void *now, size_t count,
	size_t size)
{
	const char *old = before, *old_end = old + before_count * size;
	const char *new = now, *new_end = new + count *size;

	while (old < old_end || new < new_end) {
		int order = old == old_end   ? 1
			    : new == new_end ? -1
					     : compare_ids(old, new);

		if (order < 0)
			sl_store_drop(change, kind, *(const uint64_t *)old);
		else if (order > 0 || memcmp(old, new, size) != 0)
			put(change, kind, *(const uint64_t *)new, new, size);
		old += order <= 0 ? size : 0;
		new += order >= 0 ? size : 0;
	}
}

static bool has_same_head(const struct sl_journal *a, const struct sl_journal *b)
{
	return strcmp(a->boot, b->boot) == 0 && a->next_workload == b->next_workload &&
	       a->next_client == b->next_client && a->gpu_count == b->gpu_count &&
	       memcmp(a->gpus, b->gpus, a->gpu_count * sizeof(*a->gpus)) == 0;
}

struct sl_store_change *sl_journal_change(
	const struct sl_journal *before, struct sl_journal *now)
{
	static const struct sl_journal nothing;
	struct sl_store_change *change = sl_store_change_new();

	sort(now);
	if (!before) {
		before = &nothing;
		sl_store_clear(change, SL_KIND_HEAD);
		sl_store_clear(change, SL_KIND_GPU);
		sl_store_clear(change, SL_KIND_WORKLOAD);
		sl_store_clear(change, SL_KIND_CLIENT);
	}
	for (uint64_t i = 0; i < 2 && !has_same_head(before, now); i++) {
		put(change, SL_KIND_HEAD, i * COPIES, now, sizeof(*now));
		for (size_t gpu = 0; gpu < now->gpu_count; gpu++)
			put(change, SL_KIND_GPU, i * COPIES + gpu, &now->gpus[gpu],
				sizeof(*now->gpus));
	}
	put_changed(change, SL_KIND_WORKLOAD, before->workloads, before->workload_count,
		now->workloads, now->workload_count, sizeof(*now->workloads));
	put_changed(change, SL_KIND_CLIENT, before->clients, before->client_count,
		now->clients, now->client_count, sizeof(*now->clients));
	return change;
}
