/*
 * Dispatch and the texts around it. The verbs' tables are gathered here by verbs.def; nothing
 * else knows all verbs.
 */
#include "cli/cli.h"

#include "cli/text.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB_TEXT_MAX 1536

const struct sl_verb sl_verbs[SL_VERBS] = {
#define SL_VERB(name, synopsis, summary) \
	{#name, synopsis, summary, sl_verb_##name, sl_verb_##name##_options},
#include "cli/verbs.def"
#undef SL_VERB
};

const struct sl_verb *sl_cli_verb(const char *name)
{
	for (size_t i = 0; i < SL_VERBS; i++)
		if (!strcmp(sl_verbs[i].name, name))
			return &sl_verbs[i];
	return NULL;
}

/* False if it could not be. */
static bool say_json(enum sl_exit status, const char *text)
{
	json_t *object = json_pack("{s:b, s:i, s:o}", "ok", 0, "exit", (int)status,
		"error", sl_text_json(text));
	bool ok = object && !json_dumpf(object, stderr, 0);

	if (ok)
		fputc('\n', stderr);
	json_decref(object);
	return ok;
}

int sl_cli_fail(
	enum sl_verb_id verb, bool json, enum sl_exit status, const char *format, ...)
{
	char text[VERB_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* What was printed before the trouble stands before it, also in a file that takes both. */
	fflush(stdout);
	if (json && say_json(status, text))
		return status;
	fprintf(stderr, "sluice %s: %s\n", sl_verbs[verb].name, text);
	return status;
}

int sl_cli_finish(enum sl_verb_id verb, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* A reader that went away (`sluice ps | head -1`) has what it wanted. */
	if (errno == EPIPE)
		return status;
	return sl_cli_fail(verb, false, SL_EXIT_SYSTEM, "cannot write the output: %s",
		strerror(errno));
}

static void print_option(const struct sl_option *row)
{
	char left[64], preset[32], help[256];

	snprintf(help, sizeof(help), "%s", row->help);
	if (row->type == SL_OPTION_SIZE && row->preset && row->preset != UINT64_MAX) {
		if (row->preset < SL_MIB)
			snprintf(preset, sizeof(preset), "%llu",
				(unsigned long long)row->preset);
		else
			sl_amount_format(&(struct sl_amount){.kind = SL_AMOUNT_BYTES,
						 .value = row->preset},
				preset, sizeof(preset));
		snprintf(help, sizeof(help), "%s Default %s.", row->help, preset);
	}
	if (row->letter)
		snprintf(help, sizeof(help), "%s Short: -%c.", row->help, row->letter);

	if (row->type == SL_OPTION_SECONDS)
		snprintf(left, sizeof(left), "--%s [%s]", row->name, row->value);
	else
		snprintf(left, sizeof(left), "--%s%s%s", row->name, row->value ? " " : "",
			row->value ? row->value : "");
	/* A long left side gets a line of its own instead of pushing the column. */
	if (strlen(left) > 22)
		printf("  %s\n  %-22s  %s\n", left, "", help);
	else
		printf("  %-22s  %s\n", left, help);
}

int sl_cli_print_help(const struct sl_verb *verb)
{
	printf("usage: sluice %s %s\n%s\n\n", verb->name, verb->synopsis, verb->summary);
	for (const struct sl_option *row = verb->options; row->type; row++)
		if (row->type == SL_OPTION_WORDS || row->type == SL_OPTION_OPERAND)
			printf("  %-22s  %s\n", row->name, row->help);
		else
			print_option(row);
	printf("  %-22s  %s\n", "--help", "Print this.");
	printf("\nMore: man sluice-%s\n", verb->name);
	return sl_cli_finish((enum sl_verb_id)(verb - sl_verbs), SL_EXIT_OK);
}

static bool takes_words(const struct sl_option *rows)
{
	for (; rows->type; rows++)
		if (rows->type == SL_OPTION_WORDS)
			return true;
	return false;
}

int sl_cli_parse(enum sl_verb_id verb, void *into, int argc, char **argv, int *first)
{
	const struct sl_verb *row = &sl_verbs[verb];
	struct sl_error err = {0};
	/* Who asks for JSON gets it for mistakes too, wherever among the options he asked. */
	bool json = sl_option_has_flag(
		row->options, "json", takes_words(row->options), argc, argv);

	switch (sl_option_parse(row->options, into, argc, argv, first, &err)) {
	case SL_OPTION_OK: break;
	case SL_OPTION_HELP: return sl_cli_print_help(row);
	default:
		return sl_cli_fail(verb, json, SL_EXIT_USAGE, "%s\nSee: sluice %s --help",
			err.text, row->name);
	}
	if (*first < argc && !takes_words(row->options))
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"unexpected word '%.60s'\nSee: sluice %s --help", argv[*first],
			row->name);
	return -1;
}

/* Whether JSON was asked for, of a verb whose options are not known. */
static bool wants_json(int argc, char **argv)
{
	for (int at = 2; at < argc && strcmp(argv[at], "--"); at++)
		if (!strcmp(argv[at], "--json"))
			return true;
	return false;
}

static int unknown_verb(int argc, char **argv)
{
	const char *names[SL_VERBS + 1];
	const char *near, *word = argv[1];
	char text[160];

	for (size_t i = 0; i < SL_VERBS; i++)
		names[i] = sl_verbs[i].name;
	names[SL_VERBS] = NULL;
	near = sl_option_nearest(word, names);
	snprintf(text, sizeof(text), "unknown verb '%.40s'%s%s%s", word,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	sl_text_tame(text);
	if (!wants_json(argc, argv) || !say_json(SL_EXIT_USAGE, text))
		fprintf(stderr, "sluice: %s\nSee: sluice help\n", text);
	return SL_EXIT_USAGE;
}

int sl_cli_main(int argc, char **argv)
{
	char help[] = "help", version[] = "version";
	char *words[] = {help, NULL};
	const struct sl_verb *verb;

	if (argc < 2) {
		/* The list of verbs helps, but a script that forgot the verb must not go on. */
		sl_verb_help(1, words);
		return SL_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		argv[1] = help;
	if (!strcmp(argv[1], "--version"))
		argv[1] = version;
	verb = sl_cli_verb(argv[1]);
	if (!verb)
		return unknown_verb(argc, argv);
	return verb->main(argc - 1, argv + 1);
}
