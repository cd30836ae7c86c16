/* sluice doctor: prints the findings of the checks. Exit status 1 if any failed. */
#include "cli/doctor/doctor.h"

#include "cli/line/cli.h"
#include "cli/line/table.h"

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

enum {
	CHECKS = 0
#define SL_CHECK(name) +1
#include "cli/doctor/checks.def"
#undef SL_CHECK
};

static const char *const level_names[] = {
	[SL_LEVEL_OK] = "ok",
	[SL_LEVEL_WARN] = "warn",
	[SL_LEVEL_FAIL] = "FAIL",
	[SL_LEVEL_UNKNOWN] = "-",
};

#define INDENT    17
#define WIDTH_MIN 40

/* Prints text behind the present content of the line, broken between words; width 0: never. */
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

struct row {
	const char *name;
	struct sl_finding finding;
};

/* Prints one line for each missing source, with the checks that need it. */
static void print_unknown(struct row *rows, size_t count, unsigned int width)
{
	for (size_t i = 0; i < count; i++) {
		struct sl_finding line = rows[i].finding;
		size_t used = strlen(line.text);

		if (line.level != SL_LEVEL_UNKNOWN)
			continue;
		for (size_t j = i; j < count; j++) {
			struct sl_finding *other = &rows[j].finding;

			if (other->level != line.level ||
				strcmp(other->text, rows[i].finding.text) != 0)
				continue;
			used += (size_t)snprintf(line.text + used,
				sizeof(line.text) - used, "%s %s", j == i ? ":" : ",",
				rows[j].name);
			if (j > i)
				other->level = SL_LEVELS;
		}
		print("", &line, width);
	}
}

static json_t *to_json(const char *name, const struct sl_finding *finding)
{
	return json_pack("{s:s, s:s, s:s, s:s?}", "check", name, "level",
		finding->level == SL_LEVEL_FAIL      ? "fail"
		: finding->level == SL_LEVEL_UNKNOWN ? "unknown"
						     : level_names[finding->level],
		"text", finding->text, "remedy",
		finding->remedy[0] ? finding->remedy : NULL);
}

int sl_verb_doctor(int argc, char **argv)
{
	struct settings s = {0};
	unsigned int counts[SL_LEVELS] = {0};
	unsigned int width = sl_table_terminal_width(STDOUT_FILENO);
	struct row rows[CHECKS] = {0};
	size_t count = 0;
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
	array = s.json ? json_array() : NULL;
	for (const struct sl_check *check = sl_doctor_checks; check->name; check++) {
		struct row *row = &rows[count++];

		row->name = check->name;
		check->fn(facts, &row->finding);
		counts[row->finding.level]++;
	}
	for (size_t i = 0; i < count; i++) {
		if (s.json)
			json_array_append_new(
				array, to_json(rows[i].name, &rows[i].finding));
		else if (rows[i].finding.level != SL_LEVEL_UNKNOWN)
			print(rows[i].name, &rows[i].finding, width);
	}
	if (!s.json)
		print_unknown(rows, count, width);
	sl_doctor_facts_fini(facts);
	free(facts);
	status = counts[SL_LEVEL_FAIL] ? SL_EXIT_FAILED : SL_EXIT_OK;
	if (s.json) {
		int written = sl_rows_print_json(
			SL_VERB_doctor, json_pack("{s:b, s:o}", "ok",
						!counts[SL_LEVEL_FAIL], "checks", array));

		return written ? written : status;
	}
	printf("%u ok, %u to look at, %u failed", counts[SL_LEVEL_OK],
		counts[SL_LEVEL_WARN], counts[SL_LEVEL_FAIL]);
	if (counts[SL_LEVEL_UNKNOWN])
		printf(", %u not known", counts[SL_LEVEL_UNKNOWN]);
	putchar('\n');
	return sl_cli_finish(SL_VERB_doctor, status);
}
