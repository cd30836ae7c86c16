/* sluice doctor: prints what the checks find. Exit 1 if any of them failed. */
#include "cli/doctor.h"

#include "cli/cli.h"
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
	bool json;
};

const struct sl_option sl_verb_doctor_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object."),
	SL_OPT_END,
};

static const char *const level_names[] = {
	[SL_LEVEL_OK] = "ok",
	[SL_LEVEL_WARN] = "warn",
	[SL_LEVEL_FAIL] = "FAIL",
};

#define INDENT    17
#define WIDTH_MIN 40

/* Prints text behind what already stands on the line, broken between words; width 0: never. */
static void print_wrapped(const char *text, unsigned int width, unsigned int indent)
{
	unsigned int column = indent, room = width > WIDTH_MIN ? width : WIDTH_MIN;

	while (*text) {
		unsigned int len = (unsigned int)strcspn(text, " ");

		if (width && column > indent && column + 1 + len > room) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print(const char *name, const struct sl_finding *finding, unsigned int width)
{
	printf("%-4s  %-9s  ", level_names[finding->level], name);
	print_wrapped(finding->text, width, INDENT);
	if (!finding->remedy[0])
		return;
	printf("%*s-> ", INDENT, "");
	print_wrapped(finding->remedy, width, INDENT + 3);
}

static json_t *to_json(const char *name, const struct sl_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:s?}", "check", name, "level",
		finding->level == SL_LEVEL_FAIL ? "fail" : level_names[finding->level],
		"text", finding->text, "remedy",
		finding->remedy[0] ? finding->remedy : NULL);
}

int sl_verb_doctor(int argc, char **argv)
{
	struct settings s = {0};
	unsigned int counts[SL_LEVEL_FAIL + 1] = {0};
	struct sl_facts *facts;
	json_t *array = NULL;
	int first, status;

	status = sl_cli_parse(SL_VERB_doctor, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	facts = calloc(1, sizeof(*facts));
	if (!facts)
		return sl_cli_fail(
			SL_VERB_doctor, s.json, SL_EXIT_SYSTEM, "out of memory");
	sl_doctor_gather(facts);
	if (s.json)
		array = json_array();
	for (const struct sl_check *check = sl_doctor_checks; check->name; check++) {
		struct sl_finding finding = {0};

		check->fn(facts, &finding);
		counts[finding.level]++;
		if (s.json)
			json_array_append_new(array, to_json(check->name, &finding));
		else
			print(check->name, &finding,
				sl_table_terminal_width(STDOUT_FILENO));
	}
	sl_doctor_facts_fini(facts);
	free(facts);
	status = counts[SL_LEVEL_FAIL] ? SL_EXIT_FAILED : SL_EXIT_OK;
	if (s.json) {
		int written = sl_rows_print_json(
			SL_VERB_doctor, json_pack("{s:b, s:o}", "ok",
						!counts[SL_LEVEL_FAIL], "checks", array));

		return written ? written : status;
	}
	printf("%u ok, %u to look at, %u failed\n", counts[SL_LEVEL_OK],
		counts[SL_LEVEL_WARN], counts[SL_LEVEL_FAIL]);
	return sl_cli_finish(SL_VERB_doctor, status);
}
