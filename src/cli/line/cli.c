/*
 * Dispatch and the texts around it. verbs.def fills the table of verbs; only this file knows all of
 * them.
 */
#include "cli/line/cli.h"

#include "base/nearest.h"
#include "cli/line/text.h"

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
#include "cli/line/verbs.def"
#undef SL_VERB
};

const struct sl_verb *sl_cli_verb(const char *name)
{
	for (size_t i = 0; i < SL_VERBS; i++)
		if (!strcmp(sl_verbs[i].name, name))
			return &sl_verbs[i];
	return NULL;
}

/* Names of the same verb in other tools. */
static const struct {
	const char *word, *verb;
} other_words[] = {
	{"cancel", "stop"},
	{"continue", "resume"},
	{"delete", "stop"},
	{"describe", "why"},
	{"end", "stop"},
	{"exec", "run"},
	{"info", "gpus"},
	{"jobs", "ps"},
	{"kill", "stop"},
	{"list", "ps"},
	{"ls", "ps"},
	{"pause", "park"},
	{"projects", "project"},
	{"queue", "ps"},
	{"quota", "project"},
	{"rm", "stop"},
	{"start", "run"},
	{"stat", "ps"},
	{"status", "ps"},
	{"suspend", "park"},
	{"update", "set"},
	{"web", "page"},
};

void sl_cli_unknown_verb(const char *word, struct sl_error *err)
{
	struct sl_nearest near = sl_nearest_to(word);

	for (size_t i = 0; i < SL_VERBS; i++)
		sl_nearest_offer(&near, sl_verbs[i].name);
	for (size_t i = 0; i < SL_ARRAY_LEN(other_words); i++)
		if (!strcmp(other_words[i].word, word))
			near.best = other_words[i].verb;
	sl_error_set(err, "unknown verb '%.40s'", word);
	sl_nearest_add(&near, "; to start a program: sluice run -- CMD", err);
	sl_text_tame(err->text);
}

/* False if it could not be written. */
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
	/* Flush earlier output first, so the error stands behind it if both go to one file. */
	fflush(stdout);
	if (json && say_json(status, text))
		return status;
	fprintf(stderr, "sluice %s: %s\n", sl_verbs[verb].name, text);
	return status;
}

int sl_cli_usage(enum sl_verb_id verb, bool json, const char *text)
{
	return sl_cli_fail(verb, json, SL_EXIT_USAGE, "%s\nSee: sluice %s --help", text,
		sl_verbs[verb].name);
}

int sl_cli_finish(enum sl_verb_id verb, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	/* A reader that closed the pipe (`sluice ps | head -1`) has what it needs. */
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
	/* A long left side gets a line of its own and keeps the column. */
	if (strlen(left) > 22)
		printf("  %s\n  %-22s  %s\n", left, "", help);
	else
		printf("  %-22s  %s\n", left, help);
}

int sl_cli_print_help(const struct sl_verb *verb)
{
	printf("usage: sluice %s %s\n%s\n\n", verb->name, verb->synopsis, verb->summary);
	for (const struct sl_option *row = verb->options; row->type; row++)
		if (row->type >= SL_OPTION_WORDS)
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
	/* With --json errors are JSON, too, wherever the option stands. */
	bool json = sl_option_has_flag(
		row->options, "json", takes_words(row->options), argc, argv);

	switch (sl_option_parse(row->options, into, argc, argv, first, &err)) {
	case SL_OPTION_OK: break;
	case SL_OPTION_HELP: return sl_cli_print_help(row);
	default: return sl_cli_usage(verb, json, err.text);
	}
	if (*first < argc && !takes_words(row->options))
		return sl_cli_fail(verb, json, SL_EXIT_USAGE,
			"unexpected word '%.60s'\nSee: sluice %s --help", argv[*first],
			row->name);
	return -1;
}

/* -1 to go on. */
static int parse_action(enum sl_verb_id verb, bool json, void *into, const char **action,
	const char **word, int argc, char **argv)
{
	const char *asked;
	int first, last, status = sl_cli_parse(verb, into, argc, argv, &first);

	*word = NULL;
	if (status >= 0 || first == argc)
		return status;
	*word = argv[first];
	/* The word is skipped as argv[0]; a second word would be the action. */
	asked = sl_steal(action);
	status = sl_cli_parse(verb, into, argc - first, argv + first, &last);
	if (status < 0 && (*action || last < argc - first))
		status = sl_cli_usage(verb, json, "one word too many");
	*action = asked;
	return status;
}

/* Lists the actions that exist. */
static int unknown_action(enum sl_verb_id verb, bool json,
	const struct sl_cli_action *actions, const char *asked)
{
	struct sl_nearest near = sl_nearest_to(asked ? asked : "");
	struct sl_error err = {0};
	char all[160] = "write";
	size_t used = strlen(all);

	for (const struct sl_cli_action *a = actions; a->name; a++) {
		sl_nearest_offer(&near, a->name);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s%s%s%s%s",
			a == actions ? " "
			: a[1].name  ? ", "
				     : " or ",
			a->name, a->word ? " " : "", a->word && !a->needs_word ? "[" : "",
			a->word ? a->word : "", a->word && !a->needs_word ? "]" : "");
	}
	if (!asked)
		return sl_cli_usage(verb, json, all);
	sl_error_set(&err, "unknown action '%.40s'", asked);
	sl_nearest_add(&near, "", &err);
	sl_text_tame(err.text);
	return sl_cli_usage(verb, json, err.text);
}

int sl_cli_act(enum sl_verb_id verb, const struct sl_cli_action *actions, void *into,
	const char **action, const char **word, int argc, char **argv)
{
	bool json = sl_option_has_flag(sl_verbs[verb].options, "json", false, argc, argv);
	int status = parse_action(verb, json, into, action, word, argc, argv);
	const struct sl_cli_action *a = actions;
	char text[160];

	if (status >= 0)
		return status;
	while (a->name && (!*action || strcmp(*action, a->name) != 0))
		a++;
	if (!a->name)
		return unknown_action(verb, json, actions, *action);
	(void)snprintf(text, sizeof(text), a->word ? "%s needs a %s" : "%s takes no word",
		a->name, a->word);
	if (a->word ? a->needs_word && (!*word || !**word) : !!*word)
		return sl_cli_usage(verb, json, text);
	return a->act(into);
}

/* Finds --json on the command line of an unknown verb. */
static bool wants_json(int argc, char **argv)
{
	for (int at = 2; at < argc && strcmp(argv[at], "--"); at++)
		if (!strcmp(argv[at], "--json"))
			return true;
	return false;
}

static int unknown_verb(int argc, char **argv)
{
	struct sl_error err = {0};

	sl_cli_unknown_verb(argv[1], &err);
	if (!wants_json(argc, argv) || !say_json(SL_EXIT_USAGE, err.text))
		fprintf(stderr, "sluice: %s\nSee: sluice help\n", err.text);
	return SL_EXIT_USAGE;
}

int sl_cli_main(int argc, char **argv)
{
	char help[] = "help", version[] = "version";
	char *words[] = {help, NULL};
	const struct sl_verb *verb;

	if (argc < 2) {
		/* The list of verbs helps a user, but a script that forgot the verb must stop. */
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
