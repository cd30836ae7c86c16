/* Names in an event are other people's, so the sentence is tamed after it was made. */
#include "cli/told.h"

#include "cli/text.h"
#include "policy/reason.h"

#include <stdio.h>

const char *sl_told_sentence(const struct sl_msg_event_row *row, char *buf, size_t size)
{
	const struct sl_reason_facts facts = {
		.reason = row->reason,
		.gpu = row->gpu,
		.name = row->name,
		.other = row->other_name,
		.bytes = row->bytes,
		.available_bytes = row->available_bytes,
		.other_bytes = row->other_bytes,
		.span = row->span_ms * SL_MS,
		.pid = row->pid,
	};

	if (row->reason >= SL_REASONS)
		snprintf(buf, size,
			"reason %u, which a newer sluice than this one can explain",
			row->reason);
	else
		sl_reason_sentence(&facts, buf, size);
	sl_text_tame(buf);
	return buf;
}

json_t *sl_told_json(const struct sl_msg_event_row *row)
{
	char sentence[SL_TOLD_TEXT_MAX];

	return json_pack("{s:I, s:I, s:s, s:i, s:s, s:s, s:b, s:i, s:I, s:I, s:I, s:I, "
			 "s:I, s:I, s:i, s:i, s:i, s:o, s:o}",
		"serial", (json_int_t)row->serial, "realtime_ms",
		(json_int_t)row->realtime_ms, "reason", sl_reason_name(row->reason),
		"reason_number", (int)row->reason, "kind",
		sl_reason_kind_name(sl_reason_kind(row->reason)), "sentence",
		sl_told_sentence(row, sentence, sizeof(sentence)), "current",
		(int)row->current, "gpu", (int)row->gpu, "workload",
		(json_int_t)row->workload, "other", (json_int_t)row->other, "bytes",
		(json_int_t)row->bytes, "available_bytes",
		(json_int_t)row->available_bytes, "other_bytes",
		(json_int_t)row->other_bytes, "span_ms", (json_int_t)row->span_ms, "pid",
		(int)row->pid, "uid", (int)row->uid, "lost", (int)row->lost, "name",
		sl_text_json(row->name), "other_name", sl_text_json(row->other_name));
}

int sl_told_refusal(enum sl_verb_id verb, bool json, uint32_t reason, const char *text,
	const char *hint)
{
	json_t *object = NULL;
	char tamed[1024];

	snprintf(tamed, sizeof(tamed), "%s", text);
	sl_text_tame(tamed);
	if (json)
		object = json_pack("{s:b, s:i, s:s, s:s, s:s*}", "ok", 0, "exit",
			SL_EXIT_REFUSED, "reason", sl_reason_name(reason), "error", tamed,
			"hint", hint);
	if (!object)
		return sl_cli_fail(verb, json, SL_EXIT_REFUSED, "refused: %s%s%s%s",
			tamed, hint ? "\n(" : "", hint ? hint : "", hint ? ")" : "");
	json_dumpf(object, stderr, 0);
	fputc('\n', stderr);
	json_decref(object);
	return SL_EXIT_REFUSED;
}

void sl_told_warning(enum sl_verb_id verb, char *text)
{
	sl_text_tame(text);
	if (text[0])
		fprintf(stderr, "sluice %s: warning: %s\n", sl_verbs[verb].name, text);
}
