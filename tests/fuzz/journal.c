/*
 * The part of a journal that is taken can be written, and is the same when read again. The input
 * is a file, or, with an odd first byte, a list of edits (place, byte) of a good one: chance
 * alone would never write that.
 */
#include "fuzz.h"

#include "base/crc.h"
#include "daemon/store/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct sl_journal *journal)
{
	if (sl_journal_reserve(journal, 1, 2, 2) < 0)
		abort();
	sl_wire_str(journal->boot, sizeof(journal->boot), "boot");
	journal->next_workload = 3;
	journal->next_client = 9;
	memset(journal->gpus[0].uuid, 0x40, SL_WIRE_UUID_BYTES);
	journal->gpus[0].capacity_bytes = 1ull << 36;
	for (uint64_t i = 0; i < 2; i++) {
		struct sl_journal_workload *workload = &journal->workloads[i];

		workload->id = i + 1;
		workload->root_pid = 17;
		sl_wire_str(workload->name, sizeof(workload->name), "train");
		sl_wire_str(
			workload->command, sizeof(workload->command), "\"\\\t\xc3\xa9");
		workload->priority = -7;
		workload->warm_after = 3000000000;
		workload->park = SL_PARK_PARKED;
		workload->gpu_count = 1;
		memset(workload->gpus[0], 0x40, SL_WIRE_UUID_BYTES);
		journal->clients[i] = (struct sl_journal_client){.id = i + 7,
			.workload = i + 1,
			.pid = 18,
			.start_ticks = 19,
			.swaps = 1};
	}
}

static void encode(const struct sl_journal *journal, char **text, size_t *size)
{
	if (sl_journal_encode(journal, text, size) < 0)
		abort();
}

/* Sizes and checksums of lines as they are. */
static void seal(char *text, size_t size)
{
	char *end, *line = text;

	for (; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
		size_t object = (size_t)(end - line);
		char digits[24];

		if (object < SL_JOURNAL_FRAME)
			continue;
		object -= SL_JOURNAL_FRAME;
		(void)snprintf(digits, sizeof(digits), "%08zx", object);
		memcpy(line + 9, digits, 8);
		(void)snprintf(digits, sizeof(digits), "%08x",
			(unsigned int)sl_crc32(line + 9, object + 9));
		memcpy(line, digits, 8);
	}
}

static void try_text(const char *text, size_t size)
{
	struct sl_journal one = {0}, two = {0};
	char *first = NULL, *second = NULL;
	size_t first_size = 0, second_size = 0;
	struct sl_error err = {{0}};
	int r;

	r = sl_journal_decode(text, size, &one, &err);
	if (r != SL_JOURNAL_OK && !err.text[0])
		abort();
	if (r == SL_JOURNAL_BAD) {
		if (one.gpus || one.workloads || one.clients)
			abort();
		return;
	}
	encode(&one, &first, &first_size);
	if (sl_journal_decode(first, first_size, &two, &err) != SL_JOURNAL_OK)
		abort();
	encode(&two, &second, &second_size);
	if (first_size != second_size || memcmp(first, second, first_size) != 0)
		abort();
	free(first);
	free(second);
	sl_journal_fini(&one);
	sl_journal_fini(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_journal good = {0};
	char *text = NULL;
	size_t length = 0;

	if (size < 1)
		return 0;
	if (!(data[0] & 1)) {
		try_text((const char *)data + 1, size - 1);
		return 0;
	}
	fill(&good);
	encode(&good, &text, &length);
	/* One edit in most inputs: two good ones in a row are rare enough. Half of them are under a
	 * right checksum. */
	for (size_t i = 1; i + 2 < size && i < 3 * (1u + (data[0] >> 6)); i += 3)
		text[(data[i] << 8 | data[i + 1]) % length] = (char)data[i + 2];
	if (data[0] & 2)
		seal(text, length);
	try_text(text, length);
	free(text);
	sl_journal_fini(&good);
	return 0;
}
