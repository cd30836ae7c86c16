/* Round trips and damage. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/file.h"
#include "daemon/store/journal_writer.h"

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

static void what_is_written_is_read(void **state)
{
	struct sl_journal in = {0}, out = {0};
	struct sl_error err = {0};
	char *text = NULL;
	size_t size = 0;

	fill(&in);
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	if (sl_journal_decode(text, size, &out, &err) != SL_JOURNAL_OK)
		fail_msg("%s", err.text);
	assert_string_equal(out.boot, in.boot);
	assert_int_equal(out.next_workload, 78);
	assert_int_equal(out.next_client, 91);
	assert_int_equal(out.gpu_count, 2);
	assert_int_equal(out.workload_count, 2);
	assert_int_equal(out.client_count, 3);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(&out.gpus[i], &in.gpus[i], sizeof(in.gpus[i]));
	/* The second GPU of a workload of one is not written. */
	memset(in.workloads[0].gpus[1], 0, SL_WIRE_UUID_BYTES);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(
			&out.workloads[i], &in.workloads[i], sizeof(in.workloads[i]));
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(
			&out.clients[i], &in.clients[i], sizeof(in.clients[i]));
	free(text);
	sl_journal_fini(&in);
	sl_journal_fini(&out);
}

/* As if it had been written so: sizes and checksums of all lines. */
static void seal(char *text)
{
	char *line = text, *end;

	for (; (end = strchr(line, '\n')); line = end + 1) {
		size_t size = (size_t)(end - line) - SL_JOURNAL_FRAME;
		char digits[24];

		(void)snprintf(digits, sizeof(digits), "%08zx", size);
		memcpy(line + 9, digits, 8);
		(void)snprintf(digits, sizeof(digits), "%08x",
			(unsigned int)sl_crc32(line + 9, size + 9));
		memcpy(line, digits, 8);
	}
}

/* Replaces the first `from` in a good journal by `to`, under a right checksum: it is left out, with
 * words. */
static void nonsense_is_named(void **state)
{
	static const struct {
		const char *from, *to, *words;
		size_t workloads, clients;
	} rows[] = {
		{"\"format\":2", "\"format\":1",
			"line 1 (head): format is another version's", 2, 3},
		{"\"format\":2", "\"form\":2", "format", 2, 3},
		{"\"next_client\":91", "\"next_client\":-1", "next_client", 2, 3},
		{"\"next_client\":91", "\"next_client\":\"91\"", "next_client", 2, 3},
		{"\"record\":\"gpu\"", "\"record\":\"cpu\"", "of no kind", 2, 3},
		{"\"id\":71", "\"id\":73", "names none", 2, 2},
		{"\"uid\":4294967294", "\"uid\":4294967296",
			"line 4 (workload): uid is not a number in range; without it "
			"there are 1 of "
			"2 workloads and 1 of 3 clients",
			1, 1},
		{"\"uid\":4294967294", "\"uid\":1.5", "uid", 1, 1},
		{"\"priority\":-1000", "\"priority\":-1001", "priority", 1, 1},
		{"\"flags\":3", "\"flags\":16", "flags", 1, 2},
		{"\"flags\":3", "\"flags\":\"3\"", "flags", 1, 2},
		{"\"wait_max\":2199023255552", "\"wait_max\":-1", "wait_max", 1, 2},
		{"\"kill_at\":4398046511104", "\"kill_at\":-1", "kill_at", 1, 2},
		{"\"token\":\"a0", "\"token\":\"x0", "token", 1, 1},
		{"\"token\":\"a0", "\"token\":\"", "token", 1, 1},
		{"\"gpus\":[\"GPU-4", "\"gpus\":[\"GPU-x", "UUID", 1, 1},
		{"\"request_kind\":1", "\"request_kind\":3", "request_kind", 1, 1},
		{"\"pid\":500", "\"pid\":5000000000", "(client): pid", 2, 2},
		{"\"reserve_bytes\":2147483648", "\"reserve_bytes\":99999999999999",
			"reserve", 2, 3},
		{"\"name\":\"train\"",
			"\"name\":"
			"\"01234567890123456789012345678901234567890123456789012345678901"
			"23"
			"\"",
			"name", 1, 1},
		{"\"name\":\"train\"", "\"name\":\"tr\\u0000in\"", "line 4", 1, 1},
		{"{", "[", "line 1", 2, 3},
	};
	struct sl_journal in = {0};
	char *text = NULL;
	size_t size = 0;

	fill(&in);
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const char *at = strstr(text, rows[i].from);
		char *bad = NULL;
		struct sl_journal out = {0};
		struct sl_error err = {0};

		if (!at)
			fail_msg("row %zu: no %s in %s", i, rows[i].from, text);
		assert_true(asprintf(&bad, "%.*s%s%s", (int)(at - text), text, rows[i].to,
				    at + strlen(rows[i].from)) > 0);
		seal(bad);
		if (sl_journal_decode(bad, strlen(bad), &out, &err) != SL_JOURNAL_PARTLY)
			fail_msg("row %zu: %s: %s", i, err.text, bad);
		if (!strstr(err.text, rows[i].words))
			fail_msg("row %zu: want '%s', got '%s'", i, rows[i].words,
				err.text);
		if (out.gpu_count != 2 || out.workload_count != rows[i].workloads ||
			out.client_count != rows[i].clients)
			fail_msg("row %zu: %zu GPUs, %zu workloads, %zu clients", i,
				out.gpu_count, out.workload_count, out.client_count);
		sl_journal_fini(&out);
		free(bad);
	}
	free(text);
	sl_journal_fini(&in);
}

/* Nothing tells which of them is meant. */
static void an_id_comes_once(void **state)
{
	struct sl_journal in = {0}, out = {0};
	struct sl_error err = {0};
	char *text = NULL;
	size_t size = 0;

	fill(&in);
	in.clients[1].id = in.clients[0].id;
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	assert_int_equal(sl_journal_decode(text, size, &out, &err), SL_JOURNAL_BAD);
	assert_non_null(strstr(err.text, "the id of a client comes twice"));
	assert_null(out.workloads);
	free(text);
	in.clients[1].id = 89;
	in.workloads[1].id = in.workloads[0].id;
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	assert_int_equal(sl_journal_decode(text, size, &out, &err), SL_JOURNAL_BAD);
	assert_non_null(strstr(err.text, "the id of a workload comes twice"));
	free(text);
	sl_journal_fini(&in);
}

/* What of the good journal is in the other: it has nothing else. */
static void check_part(const struct sl_journal *in, const struct sl_journal *out)
{
	size_t found = 0;

	for (size_t i = 0; i < in->workload_count && found < out->workload_count; i++)
		found += memcmp(&out->workloads[found], &in->workloads[i],
				 sizeof(in->workloads[i])) == 0;
	assert_int_equal(found, out->workload_count);
	found = 0;
	for (size_t i = 0; i < in->client_count && found < out->client_count; i++)
		found += memcmp(&out->clients[found], &in->clients[i],
				 sizeof(in->clients[i])) == 0;
	assert_int_equal(found, out->client_count);
	/* In any order, for the second copy may have to do. */
	found = 0;
	for (size_t i = 0; i < in->gpu_count; i++) {
		for (size_t j = 0; j < out->gpu_count; j++)
			found += memcmp(&out->gpus[j], &in->gpus[i],
					 sizeof(in->gpus[i])) == 0;
	}
	assert_int_equal(found, out->gpu_count);
	assert_string_equal(out->boot, in->boot);
	assert_int_equal(out->next_client, in->next_client);
}

/* Whatever becomes of one byte is found, and costs at most the record that it is in, with the
 * clients of that. */
static void every_damage_is_found(void **state)
{
	static const unsigned char others[] = {'\n', '0', '}'};
	struct sl_journal in = {0};
	char *text = NULL;
	size_t size = 0, damages = 0;

	fill(&in);
	memset(in.workloads[0].gpus[1], 0, SL_WIRE_UUID_BYTES);
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	for (size_t at = 0; at < size; at++) {
		char was = text[at];

		for (size_t i = 0; i < 8 + sizeof(others); i++) {
			struct sl_journal out = {0};
			struct sl_error err = {0};

			text[at] = (char)(i < 8 ? was ^ 1 << i : others[i - 8]);
			if (text[at] == was)
				continue;
			damages++;
			if (sl_journal_decode(text, size, &out, &err) !=
				SL_JOURNAL_PARTLY)
				fail_msg("byte %zu as %02x: %s", at,
					(unsigned char)text[at], err.text);
			if (!err.text[0] || out.gpu_count != 2 ||
				out.workload_count + 1 < in.workload_count ||
				(out.workload_count == in.workload_count &&
					out.client_count + 1 < in.client_count))
				fail_msg("byte %zu as %02x: %zu workloads, %zu clients: "
					 "%s",
					at, (unsigned char)text[at], out.workload_count,
					out.client_count, err.text);
			check_part(&in, &out);
			sl_journal_fini(&out);
		}
		text[at] = was;
	}
	assert_true(damages > 10 * size);
	free(text);
	sl_journal_fini(&in);
}

/* A daemon killed while writing leaves the old file; but disks and people cut files. The whole
 * records are taken. */
static void every_cut_is_found(void **state)
{
	struct sl_journal in = {0};
	size_t size = 0, head;
	char *text = NULL;

	fill(&in);
	memset(in.workloads[0].gpus[1], 0, SL_WIRE_UUID_BYTES);
	assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
	head = (size_t)(strchr(text, '\n') - text);
	for (size_t cut = 0; cut < size; cut++) {
		struct sl_journal out = {0};
		struct sl_error err = {0};
		int wanted = cut < head ? SL_JOURNAL_BAD : SL_JOURNAL_PARTLY;

		if (sl_journal_decode(text, cut, &out, &err) != wanted || !err.text[0])
			fail_msg("the first %zu of %zu bytes: %s", cut, size, err.text);
		if (wanted == SL_JOURNAL_PARTLY)
			check_part(&in, &out);
		sl_journal_fini(&out);
	}
	free(text);
	sl_journal_fini(&in);
}

/* zlib's, of the same bytes. */
static void the_checksum_is_known(void **state)
{
	assert_int_equal(sl_crc32("", 0), 0);
	assert_int_equal(sl_crc32("123456789", 9), 0xcbf43926);
}

/* The user's bytes come back as they are, or, where no JSON can hold them, as "?". */
static void any_bytes_can_be_a_command(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain", "plain"},
		{"\"quoted\" \\ \t\n\x01\x1f\x7f", "\"quoted\" \\ \t\n\x01\x1f\x7f"},
		{"\xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf",
			"\xc2\x80 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"},
		{"cut \xe2\x82", "?"},
		{"\xff", "?"},
		{"long \xc0\xaf", "?"},
		{"long \xe0\x80\xaf", "?"},
		{"surrogate \xed\xa0\x80", "?"},
		{"beyond \xf4\x90\x80\x80", "?"},
		{"alone \x80", "?"},
	};
	struct sl_journal in = {0};

	fill(&in);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_journal out = {0};
		struct sl_error err = {0};
		char *text = NULL;
		size_t size = 0;

		sl_wire_str(in.workloads[1].command, sizeof(in.workloads[1].command),
			rows[i].in);
		assert_int_equal(sl_journal_encode(&in, &text, &size), 0);
		if (sl_journal_decode(text, size, &out, &err) != SL_JOURNAL_OK)
			fail_msg("row %zu: %s in %s", i, err.text, text);
		assert_string_equal(out.workloads[1].command, rows[i].out);
		free(text);
		sl_journal_fini(&out);
	}
	sl_journal_fini(&in);
}

static void write_numbered(struct sl_journal_writer *writer, uint64_t number)
{
	struct sl_journal *journal = sl_journal_writer_begin(writer);

	assert_non_null(journal);
	if (!journal->gpus)
		fill(journal);
	journal->next_client = number;
	sl_journal_writer_start(writer);
}

static uint64_t number_in(const char *path)
{
	struct sl_journal journal = {0};
	struct sl_error err = {0};
	uint64_t number;

	if (sl_journal_read(path, &journal, &err) != SL_JOURNAL_OK)
		fail_msg("%s", err.text);
	number = journal.next_client;
	sl_journal_fini(&journal);
	return number;
}

/* Handed-over data is in the file when the store says so, and the next may only begin then. */
static void the_thread_writes_in_order(void **state)
{
	char dir[] = "/tmp/sluice-journal-XXXXXX", path[64], command[80];
	struct sl_journal_writer *writer = NULL;
	int r = 1;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/journal", dir);
	assert_int_equal(sl_journal_writer_new(path, &writer), 0);
	assert_false(sl_journal_writer_take(writer, &r));
	for (uint64_t i = 1; i <= 200; i++) {
		write_numbered(writer, i);
		assert_null(sl_journal_writer_begin(writer));
		sl_journal_writer_wait(writer);
		assert_null(sl_journal_writer_begin(writer));
		assert_true(sl_journal_writer_take(writer, &r));
		assert_false(sl_journal_writer_take(writer, &r));
		assert_int_equal(r, 0);
		assert_int_equal(number_in(path), i);
	}
	/* The folder goes away and comes back: said, and over when it is. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	write_numbered(writer, 201);
	sl_journal_writer_wait(writer);
	assert_true(sl_journal_writer_take(writer, &r));
	assert_true(r < 0);
	assert_int_equal(mkdir(dir, 0700), 0);
	/* Its end waits for handed-over data. */
	write_numbered(writer, 202);
	writer = sl_journal_writer_free(writer);
	assert_int_equal(number_in(path), 202);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Killed at any moment of a write, the daemon leaves the old journal or the new one, whole. */
static void a_crash_keeps_a_whole_file(void **state)
{
	char dir[] = "/tmp/sluice-journal-XXXXXX", path[64], command[80];
	char left[80], bad[80];
	uint64_t last = 0;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/journal", dir);
	for (int round = 0; round < 60; round++) {
		pid_t pid = fork();
		uint64_t number;

		assert_true(pid >= 0);
		if (pid == 0) {
			struct sl_journal journal = {0};

			fill(&journal);
			for (journal.next_client = last + 1;; journal.next_client++)
				(void)!sl_journal_write(path, &journal);
		}
		while (access(path, F_OK) != 0)
			(void)usleep(100);
		(void)usleep((useconds_t)(round * 37 % 1000));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		number = number_in(path);
		assert_true(number >= last);
		last = number;
	}
	/* What half-written ones are left goes; the journal, and bad ones, stay. */
	(void)snprintf(left, sizeof(left), "%s.aB3dE6", path);
	assert_int_equal(sl_file_replace(left, "x", 1, false), 0);
	(void)snprintf(bad, sizeof(bad), "%s.bad-10", path);
	assert_int_equal(sl_file_replace(bad, "x", 1, false), 0);
	sl_journal_sweep(path);
	assert_int_equal(access(left, F_OK), -1);
	assert_int_equal(access(bad, F_OK), 0);
	assert_int_equal(number_in(path), last);
	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void bad_files_are_kept_aside(void **state)
{
	char dir[] = "/tmp/sluice-journal-XXXXXX", path[64], aside[80], command[80];
	struct sl_journal journal = {0};
	struct sl_error err = {0};

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/journal", dir);
	assert_int_equal(sl_journal_read(path, &journal, &err), SL_JOURNAL_NONE);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(sl_file_replace(path, "{garbage", 8, false), 0);
		assert_int_equal(sl_journal_read(path, &journal, &err), SL_JOURNAL_BAD);
		(void)snprintf(aside, sizeof(aside), "%s.bad-%d", path, i);
		assert_int_equal(access(aside, F_OK), 0);
		assert_int_not_equal(access(path, F_OK), 0);
		assert_non_null(strstr(err.text, aside));
	}
	fill(&journal);
	assert_int_equal(sl_journal_write(path, &journal), 0);
	sl_journal_fini(&journal);
	assert_int_equal(sl_journal_read(path, &journal, &err), SL_JOURNAL_OK);
	assert_int_equal(journal.client_count, 3);
	sl_journal_fini(&journal);
	/* Of one with a good part both stay, until the next is written. */
	assert_int_equal(truncate(path, 1000), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			sl_journal_read(path, &journal, &err), SL_JOURNAL_PARTLY);
		assert_non_null(strstr(err.text, "kept as"));
		assert_int_equal(journal.gpu_count, 2);
		sl_journal_fini(&journal);
	}
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(the_checksum_is_known),
		cmocka_unit_test(nonsense_is_named),
		cmocka_unit_test(an_id_comes_once),
		cmocka_unit_test(every_damage_is_found),
		cmocka_unit_test(every_cut_is_found),
		cmocka_unit_test(any_bytes_can_be_a_command),
		cmocka_unit_test(the_thread_writes_in_order),
		cmocka_unit_test(a_crash_keeps_a_whole_file),
		cmocka_unit_test(bad_files_are_kept_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
