/* See told.h. */
#include "cli/conn/told.h"

#include "cli/line/text.h"
#include "policy/words/reason.h"

#include <stdio.h>

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
