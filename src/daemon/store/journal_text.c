/*
 * journal_text - the journal as text
 *
 * A record is a line "CRC SIZE {...}\n", eight hexadecimal digits each: the size of the JSON
 * object, and the checksum from the size to the object's end. So a reader finds the next record
 * even after a damaged one. The head and the GPUs, which all else needs, come twice, first and
 * last.
 *
 * The text is written without a JSON library: the objects are flat and known, and building a tree
 * first takes ten times as long, for each of a thousand workloads whenever one starts. journal.c
 * reads it with the library: reading happens once and must check everything.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "daemon/store/journal.h"

struct text {
	char *data;
	size_t size, room;
	bool failed;
};

static void put(struct text *text, const char *bytes, size_t size)
{
	if (text->size + size + 1 > text->room) {
		size_t room = 2 * (text->size + size) + 4096;
		char *grown = text->failed ? NULL : realloc(text->data, room);

		if (!grown) {
			text->failed = true;
			return;
		}
		text->data = grown;
		text->room = room;
	}
	memcpy(text->data + text->size, bytes, size);
	text->size += size;
}

static void put_text(struct text *text, const char *bytes)
{
	put(text, bytes, strlen(bytes));
}

/* ,"key": or, as the first of an object, {"key": */
static void put_key(struct text *text, const char *key)
{
	put_text(text, text->size && text->data[text->size - 1] == '{' ? "\"" : ",\"");
	put_text(text, key);
	put_text(text, "\":");
}

/* The reader takes signed 64-bit numbers; nothing here comes near 2^63. */
static void put_number(struct text *text, const char *key, uint64_t value)
{
	char digits[24], *at = digits + sizeof(digits);

	value = sl_min_u64(value, INT64_MAX);
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_key(text, key);
	put(text, at, (size_t)(digits + sizeof(digits) - at));
}

static void put_signed(struct text *text, const char *key, int64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, value);
	put_key(text, key);
	put_text(text, digits);
}

/* Length of the UTF-8 character at c; 0 if it is invalid (a surrogate, or overlong). */
static size_t character(const unsigned char *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = c[0] < 0x80             ? 1
			: (c[0] & 0xe0) == 0xc0 ? 2
			: (c[0] & 0xf0) == 0xe0 ? 3
			: (c[0] & 0xf8) == 0xf0 ? 4
						: 0;
	uint32_t code = length < 2 ? c[0] : c[0] & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3fu);
	}
	if (length && (code < least[length] || code > 0x10ffff ||
			      (code >= 0xd800 && code < 0xe000)))
		return 0;
	return length;
}

static bool is_utf8(const char *bytes)
{
	const unsigned char *c = (const unsigned char *)bytes;

	while (*c) {
		size_t length = character(c);

		if (!length)
			return false;
		c += length;
	}
	return true;
}

/* Names were checked, but commands are the user's bytes, and JSON must be UTF-8. */
static void put_string(struct text *text, const char *key, const char *bytes)
{
	size_t plain;

	put_key(text, key);
	put(text, "\"", 1);
	if (!is_utf8(bytes))
		bytes = "?";
	for (;; bytes++) {
		char escape[8];

		for (plain = 0; (unsigned char)bytes[plain] >= 0x20 &&
				bytes[plain] != '"' && bytes[plain] != '\\';)
			plain++;
		put(text, bytes, plain);
		bytes += plain;
		if (!*bytes)
			break;
		(void)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)*bytes);
		put_text(text, escape);
	}
	put(text, "\"", 1);
}

/* --- records ------------------------------------------------------------------------------ */

/* Returns where the record begins. */
static size_t open_record(struct text *text, const char *kind)
{
	size_t at = text->size;

	put_text(text, "00000000 00000000 {");
	put_string(text, "record", kind);
	return at;
}

static void put_digits(struct text *text, size_t at, uint32_t number)
{
	char digits[SL_JOURNAL_DIGITS + 1];

	(void)snprintf(digits, sizeof(digits), "%08" PRIx32, number);
	memcpy(text->data + at, digits, SL_JOURNAL_DIGITS);
}

static void close_record(struct text *text, size_t at)
{
	size_t from = at + SL_JOURNAL_DIGITS + 1;

	put_text(text, "}");
	if (text->failed)
		return;
	put_digits(text, from, (uint32_t)(text->size - at - SL_JOURNAL_FRAME));
	put_digits(text, at, sl_crc32(text->data + from, text->size - from));
	put_text(text, "\n");
}

static void put_gpu(struct text *text, const struct sl_journal_gpu *gpu)
{
	char uuid[41];
	size_t at;

	sl_wire_uuid_format(gpu->uuid, uuid);
	at = open_record(text, "gpu");
	put_string(text, "uuid", uuid);
	put_string(text, "name", gpu->name);
	put_string(text, "pci", gpu->pci);
	put_number(text, "pci_key", gpu->pci_key);
	put_number(text, "capacity_bytes", gpu->capacity_bytes);
	put_number(text, "reserve_bytes", gpu->reserve_bytes);
	close_record(text, at);
}

static void put_workload(struct text *text, const struct sl_journal_workload *workload)
{
	char token[33], uuid[41];
	size_t at;

	sl_wire_token_format(workload->token, token);
	at = open_record(text, "workload");
	put_number(text, "id", workload->id);
	put_string(text, "token", token);
	put_number(text, "uid", workload->uid);
	put_signed(text, "root_pid", workload->root_pid);
	put_number(text, "root_start", workload->root_start);
	put_string(text, "name", workload->name);
	put_string(text, "project", workload->project);
	put_string(text, "command", workload->command);
	put_string(text, "entry", workload->entry);
	put_number(text, "request_kind", workload->request.kind);
	put_number(text, "request_value", workload->request.value);
	put_number(text, "limit_kind", workload->limit.kind);
	put_number(text, "limit_value", workload->limit.value);
	put_number(text, "request_bytes", workload->request_bytes);
	put_number(text, "limit_bytes", workload->limit_bytes);
	put_number(text, "born", workload->born);
	put_signed(text, "priority", workload->priority);
	put_key(text, "gpus");
	for (uint32_t i = 0; i < workload->gpu_count; i++) {
		sl_wire_uuid_format(workload->gpus[i], uuid);
		put_text(text, i ? ",\"" : "[\"");
		put_text(text, uuid);
		put_text(text, "\"");
	}
	put_text(text, workload->gpu_count ? "]" : "[]");
	put_number(text, "flags", workload->flags);
	put_number(text, "wait_max", workload->wait_max);
	put_number(text, "kill_at", workload->kill_at);
	put_number(text, "warm_after", workload->warm_after);
	put_number(text, "idle_grace", workload->idle_grace);
	put_number(text, "park", workload->park);
	put_number(text, "by_queue", workload->by_queue);
	put_number(text, "leaving", workload->leaving);
	put_number(text, "former_limit_bytes", workload->former_limit_bytes);
	close_record(text, at);
}

static void put_client(struct text *text, const struct sl_journal_client *client)
{
	size_t at = open_record(text, "client");

	put_number(text, "id", client->id);
	put_number(text, "workload", client->workload);
	put_signed(text, "pid", client->pid);
	put_number(text, "start_ticks", client->start_ticks);
	put_number(text, "swaps", client->swaps);
	close_record(text, at);
}

static void put_head(struct text *text, const struct sl_journal *journal)
{
	size_t at = open_record(text, "head");

	put_number(text, "format", SL_JOURNAL_FORMAT);
	put_string(text, "boot", journal->boot);
	put_number(text, "next_workload", journal->next_workload);
	put_number(text, "next_client", journal->next_client);
	put_number(text, "gpus", journal->gpu_count);
	put_number(text, "workloads", journal->workload_count);
	put_number(text, "clients", journal->client_count);
	close_record(text, at);
}

int sl_journal_encode(const struct sl_journal *journal, char **out, size_t *size)
{
	struct text text = {0};

	put_head(&text, journal);
	for (size_t i = 0; i < journal->gpu_count; i++)
		put_gpu(&text, &journal->gpus[i]);
	for (size_t i = 0; i < journal->workload_count; i++)
		put_workload(&text, &journal->workloads[i]);
	for (size_t i = 0; i < journal->client_count; i++)
		put_client(&text, &journal->clients[i]);
	for (size_t i = 0; i < journal->gpu_count; i++)
		put_gpu(&text, &journal->gpus[i]);
	put_head(&text, journal);
	if (text.failed) {
		free(text.data);
		return sl_err_origin(-ENOMEM);
	}
	text.data[text.size] = '\0'; /* put() leaves room for it */
	*out = text.data;
	*size = text.size;
	return 0;
}
