/* The journal as records: round trips, changes, damage. */
#include "../../base/test.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/file.h"
#include "daemon/store/journal.h"
#include "../sql.h"

static char folder[64], path[128];

static int open_folder(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/sluice-journal-XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/" SL_STORE_RUN_FILE, folder);
	return 0;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static struct sl_store *new_store(void)
{
	struct sl_store *store = NULL;

	assert_int_equal(sl_store_new(folder, "/nowhere", &store), 0);
	return store;
}

static void fill(struct sl_journal *journal)
{
	assert_int_equal(sl_journal_reserve(journal, 2, 2, 3), 0);
	sl_wire_str(journal->boot, sizeof(journal->boot), "boot-1");
	journal->next_workload = 78;
	journal->next_client = 91;
	for (uint8_t i = 0; i < 2; i++) {
		struct sl_journal_gpu *gpu = &journal->gpus[i];

		memset(gpu->uuid, 0x40 + i, sizeof(gpu->uuid));
		sl_wire_str(gpu->name, sizeof(gpu->name), "A \"GPU\"\\ \xc3\xa9");
		sl_wire_str(gpu->pci, sizeof(gpu->pci), "00000000:3B:00.0");
		gpu->pci_key = (1ull << 40) + i;
		gpu->capacity_bytes = 80ull << 30;
		gpu->reserve_bytes = 2ull << 30;
	}
	for (uint8_t i = 0; i < 2; i++) {
		struct sl_journal_workload *workload = &journal->workloads[i];

		workload->id = 70u + i;
		memset(workload->token, 0xa0 + i, sizeof(workload->token));
		workload->uid = 4294967294u;
		workload->root_pid = 12345;
		workload->root_start = i ? 0 : 987654321;
		sl_wire_str(workload->name, sizeof(workload->name), "train");
		sl_wire_str(workload->project, sizeof(workload->project), "");
		sl_wire_str(
			workload->command, sizeof(workload->command), "python 'x'\t\x01");
		workload->request =
			(struct sl_amount){.kind = SL_AMOUNT_FRACTION, .value = 250000};
		workload->limit =
			(struct sl_amount){.kind = SL_AMOUNT_BYTES, .value = 1ull << 40};
		workload->request_bytes = 5;
		workload->limit_bytes = 1ull << 40;
		workload->born = 1ull << 50;
		workload->priority = -1000;
		workload->flags = i ? 3 : 0;
		workload->wait_max = i ? 1ull << 41 : 0;
		workload->kill_at = i ? 1ull << 42 : 0;
		workload->gpu_count = 1u + i;
		memset(workload->gpus[0], 0x41, SL_WIRE_UUID_BYTES);
		memset(workload->gpus[1], 0x40, SL_WIRE_UUID_BYTES);
	}
	for (unsigned int i = 0; i < 3; i++)
		journal->clients[i] = (struct sl_journal_client){.id = 88 + i,
			.workload = 70 + i % 2,
			.pid = 500 + (int)i,
			.start_ticks = 99 + i};
}

static void on_done(void *context, int r, const struct sl_error *err)
{
	if (r < 0)
		fail_msg("%s", err->text);
}

static void commit(
	struct sl_store *store, const struct sl_journal *before, struct sl_journal *now)
{
	assert_int_equal(
		sl_store_commit(store, sl_journal_change(before, now), on_done, NULL), 0);
	sl_store_finish(store);
}

static int load(struct sl_journal *journal, struct sl_error *err)
{
	struct sl_store *store = new_store();
	int r;

	sl_journal_fini(journal);
	err->text[0] = '\0';
	r = sl_journal_load(store, journal, err);
	store = sl_store_free(store);
	assert_int_equal(r != SL_STORE_OK, err->text[0] != '\0');
	return r;
}

/* All that out has is as it was written. */
static void check_part(const struct sl_journal *in, const struct sl_journal *out)
{
	for (size_t i = 0; i < out->gpu_count; i++) {
		const struct sl_journal_gpu *gpu = &out->gpus[i];

		assert_memory_equal(gpu, &in->gpus[gpu->uuid[0] - 0x40], sizeof(*gpu));
	}
	for (size_t i = 0; i < out->workload_count; i++) {
		const struct sl_journal_workload *workload = &out->workloads[i];

		assert_memory_equal(
			workload, &in->workloads[workload->id - 70], sizeof(*workload));
	}
	for (size_t i = 0; i < out->client_count; i++) {
		const struct sl_journal_client *client = &out->clients[i];

		assert_memory_equal(
			client, &in->clients[client->id - 88], sizeof(*client));
	}
}

static void what_is_written_is_read(void **state)
{
	struct sl_journal in = {0}, out = {0};
	struct sl_store *store = new_store();
	struct sl_error err;

	assert_int_equal(load(&out, &err), SL_STORE_OK);
	assert_string_equal(out.boot, "");
	fill(&in);
	commit(store, NULL, &in);
	store = sl_store_free(store);
	if (load(&out, &err) != SL_STORE_OK)
		fail_msg("%s", err.text);
	assert_string_equal(out.boot, in.boot);
	assert_int_equal(out.next_workload, 78);
	assert_int_equal(out.next_client, 91);
	assert_int_equal(out.gpu_count, 2);
	assert_int_equal(out.workload_count, 2);
	assert_int_equal(out.client_count, 3);
	check_part(&in, &out);
	sl_journal_fini(&in);
	sl_journal_fini(&out);
}

/* A change writes the records that differ and no others; a whole one writes all. */
static void a_change_costs_what_differs(void **state)
{
	struct sl_journal before = {0}, now = {0}, out = {0};
	struct sl_store *store = new_store();
	struct sl_error err;

	fill(&before);
	fill(&now);
	commit(store, NULL, &before);
	/* Damage shows which records are written again. */
	sql_run(path, "UPDATE workload SET checksum = 1; UPDATE client SET checksum = 1");
	now.workloads[1].priority = 7;
	now.clients[0].id = 99; /* 88 has gone */
	commit(store, &before, &now);
	assert_int_equal(load(&out, &err), SL_STORE_PARTLY);
	assert_row_contains("first", err.text, "workload 70 in ");
	assert_int_equal(out.workload_count, 1);
	assert_int_equal(out.workloads[0].id, 71);
	assert_int_equal(out.workloads[0].priority, 7);
	/* Client 99 is written, and goes with its workload, 70. */
	assert_int_equal(out.client_count, 0);
	sql_run(path, "UPDATE workload SET checksum = 1; UPDATE head SET checksum = 1");
	commit(store, NULL, &now);
	assert_int_equal(load(&out, &err), SL_STORE_OK);
	assert_int_equal(out.workload_count, 2);
	assert_int_equal(out.client_count, 3);
	assert_int_equal(out.clients[2].id, 99);
	now.client_count = 0;
	now.workload_count = 0;
	now.next_client = 100;
	fill(&before);
	before.clients[0].id = 99;
	(void)sl_store_change_free(sl_journal_change(NULL, &before)); /* sorts it */
	commit(store, &before, &now);
	assert_int_equal(load(&out, &err), SL_STORE_OK);
	assert_int_equal(out.workload_count + out.client_count, 0);
	assert_int_equal(out.next_client, 100);
	store = sl_store_free(store);
	sl_journal_fini(&before);
	sl_journal_fini(&now);
	sl_journal_fini(&out);
}

/* Head and GPUs, which all else needs, come twice. */
static void a_second_copy_serves(void **state)
{
	struct sl_journal in = {0}, out = {0};
	struct sl_store *store = new_store();
	struct sl_error err;

	fill(&in);
	commit(store, NULL, &in);
	store = sl_store_free(store);
	sql_run(path, "UPDATE head SET checksum = 1 WHERE number = 0");
	sql_run(path, "UPDATE gpu SET checksum = 1 WHERE number IN (0, 1)");
	assert_int_equal(load(&out, &err), SL_STORE_PARTLY);
	assert_row_contains("named", err.text, "head 0 in ");
	assert_string_equal(out.boot, "boot-1");
	assert_int_equal(out.gpu_count, 2);
	assert_int_equal(out.client_count, 3);
	check_part(&in, &out);
	sql_run(path, "UPDATE head SET checksum = 1");
	assert_int_equal(load(&out, &err), SL_STORE_BAD);
	assert_null(out.workloads);
	sl_journal_fini(&in);
}

/* Of workload 70. */
static void read_text(char *text, size_t size)
{
	sqlite3_stmt *statement = NULL;
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(db, "SELECT text FROM workload WHERE number = 70", -1,
			&statement, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	(void)snprintf(text, size, "%s", (const char *)sqlite3_column_text(statement, 0));
	(void)sqlite3_finalize(statement);
	(void)sqlite3_close(db);
}

/* Under a right checksum: left out, with words. */
static void nonsense_is_named(void **state)
{
	static const struct {
		const char *is, *was, *what;
	} rows[] = {
		{"\"uid\":4294967294", "\"uid\":-1", "'uid' is not what it may be"},
		{"\"token\":\"a0", "\"token\":\"", "'token' is not"},
		{"\"token\":\"a0", "\"token\":\"x0", "'token' is not"},
		{"\"name\":\"train\"", "\"name\":[]", "'name' is not"},
		{"\"request.kind\":1", "\"request.kind\":9", "'request.kind' is not"},
		{"\"priority\":-1000", "\"priority\":-1001", "'priority' is not"},
		{"\"priority\":-1000,", "", "'priority' is missing"},
		{"\"gpu_count\":1", "\"gpu_count\":0", "'gpu_count' is 0"},
		{"\"gpu_count\":1", "\"gpu_count\":33", "'gpu_count' is not"},
		{"\"park\":0", "\"park\":5", "'park' is not"},
		{"\"park\":0", "\"park\":0,\"bark\":0", "unknown keys"},
		{"\"park\":0", "\"park\":0,\"park\":0", "duplicate"},
		{"{", "", "byte "},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_journal in = {0}, out = {0};
		struct sl_store *store = new_store();
		struct sl_store_change *change = sl_store_change_new();
		char text[4096], edited[4096], *at;
		struct sl_error err;

		fill(&in);
		commit(store, NULL, &in);
		read_text(text, sizeof(text));
		at = strstr(text, rows[i].is);
		if (!at)
			fail_msg("row '%s': not in %s", rows[i].is, text);
		(void)snprintf(edited, sizeof(edited), "%.*s%s%s", (int)(at - text), text,
			rows[i].was, at + strlen(rows[i].is));
		sl_store_put(change, SL_KIND_WORKLOAD, 70, edited);
		assert_int_equal(sl_store_commit(store, change, on_done, NULL), 0);
		sl_store_finish(store);
		store = sl_store_free(store);
		if (load(&out, &err) != SL_STORE_PARTLY)
			fail_msg("row '%s': it was read", rows[i].was);
		assert_row_contains(rows[i].was, err.text, rows[i].what);
		assert_row_contains(rows[i].was, err.text, "workload 70 in ");
		/* Its clients go with it. */
		assert_int_equal(out.workload_count, 1);
		assert_int_equal(out.client_count, 1);
		check_part(&in, &out);
		sl_journal_fini(&in);
		sl_journal_fini(&out);
	}
}

/* Damage of any byte never changes a record, and is named where it costs one. */
static void every_damage_is_found(void **state)
{
	sl_cleanup(sl_freep) char *bytes = NULL;
	struct sl_journal in = {0}, out = {0};
	struct sl_store *store = new_store();
	struct sl_error err;
	size_t size = 0;
	int fd;

	fill(&in);
	commit(store, NULL, &in);
	store = sl_store_free(store);
	assert_int_equal(sl_file_read(path, 1 << 20, &bytes, &size), 0);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (size_t at = 0; at < size; at += 7) {
		char bad = (char)(bytes[at] ^ 1 << at % 8);
		int r;

		assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
		r = load(&out, &err);
		check_part(&in, &out);
		if (r == SL_STORE_OK &&
			(out.workload_count != 2 || out.client_count != 3 ||
				out.gpu_count != 2 || out.next_client != 91))
			fail_msg("byte %zu is not noticed", at);
		assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
	}
	(void)close(fd);
	sl_journal_fini(&in);
	sl_journal_fini(&out);
}

/* zlib's, of the same bytes. */
static void the_checksum_is_known(void **state)
{
	assert_int_equal(sl_crc32("", 0), 0);
	assert_int_equal(sl_crc32("123456789", 9), 0xcbf43926);
}

/* The user's bytes come back as they are. */
static void any_bytes_can_be_a_command(void **state)
{
	static const char *const rows[] = {"plain", "", "\"quoted\" \\ \t\n\x01\x1f\x7f",
		"\xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", "cut \xe2\x82",
		"\xff", "long \xc0\xaf", "surrogate \xed\xa0\x80",
		"beyond \xf4\x90\x80\x80", "alone \x80"};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_journal in = {0}, out = {0};
		struct sl_store *store = new_store();
		struct sl_error err;

		fill(&in);
		sl_wire_str(in.workloads[1].command, sizeof(in.workloads[1].command),
			rows[i]);
		commit(store, NULL, &in);
		store = sl_store_free(store);
		if (load(&out, &err) != SL_STORE_OK)
			fail_msg("row %zu: %s", i, err.text);
		assert_string_equal(out.workloads[1].command, rows[i]);
		sl_journal_fini(&in);
		sl_journal_fini(&out);
	}
}

/* What cannot be read stays until all of it is written anew, and then beside it. */
static void bad_files_are_kept_aside(void **state)
{
	struct sl_journal in = {0}, out = {0};
	struct sl_error err;
	char aside[160];

	fill(&in);
	for (int i = 1; i <= 2; i++) {
		struct sl_store *store;

		assert_int_equal(
			sl_file_replace(path, "{garbage, and more of it", 24, false), 0);
		assert_int_equal(load(&out, &err), SL_STORE_BAD);
		assert_row_contains("bad", err.text, "file is not a database");
		(void)snprintf(aside, sizeof(aside), "%s.bad-%d", path, i);
		assert_int_equal(access(aside, F_OK), -1);
		store = new_store();
		commit(store, NULL, &in);
		store = sl_store_free(store);
		assert_int_equal(access(aside, F_OK), 0);
		assert_int_equal(load(&out, &err), SL_STORE_OK);
		assert_int_equal(out.client_count, 3);
	}
	sl_journal_fini(&in);
	sl_journal_fini(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written_is_read),
		TEST(a_change_costs_what_differs),
		TEST(a_second_copy_serves),
		TEST(nonsense_is_named),
		TEST(every_damage_is_found),
		cmocka_unit_test(the_checksum_is_known),
		TEST(any_bytes_can_be_a_command),
		TEST(bad_files_are_kept_aside),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
