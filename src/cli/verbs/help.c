/* sluice help: the list of verbs, or one verb's --help. */
#include "cli/line/cli.h"
#include "cli/verbs/complete.h"

#include <stdio.h>
#include <string.h>

struct settings {
	bool names, exits, complete;
};

const struct sl_option sl_verb_help_options[] = {
	SL_OPT(struct settings, names, FLAG, NULL, 0, 0,
		"Print only the verbs, one per line."),
	SL_OPT(struct settings, exits, FLAG, NULL, 0, 0, "Print the exit statuses."),
	SL_OPT(struct settings, complete, FLAG, NULL, 0, 0,
		"For shells: print completions of the last word."),
	SL_OPT_WORDS("VERB", "The verb to explain; without it, all are listed."),
	SL_OPT_END,
};

static int print_exits(void)
{
#define SL_EXIT(NAME, code, text) printf("%-3d  %s\n", code, text);
#include "cli/line/exits.def"
#undef SL_EXIT
	return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
}

static int print_names(void)
{
	for (size_t i = 0; i < SL_VERBS; i++)
		puts(sl_verbs[i].name);
	return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
}

static int print_overview(void)
{
	printf("usage: sluice VERB [options]\n"
	       "Lets several CUDA programs share GPUs by request (guaranteed) and limit "
	       "(burst).\n\n");
	for (size_t i = 0; i < SL_VERBS; i++)
		printf("  %-8s  %s\n", sl_verbs[i].name, sl_verbs[i].summary);
	printf("\nOptions of a verb: sluice VERB --help\n");
	return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
}

int sl_verb_help(int argc, char **argv)
{
	struct settings settings = {0};
	struct sl_error err = {0};
	const struct sl_verb *verb;
	int first, status;

	status = sl_cli_parse(SL_VERB_help, &settings, argc, argv, &first);
	if (status >= 0)
		return status;
	if (settings.exits)
		return print_exits();
	if (settings.names)
		return print_names();
	if (settings.complete)
		return sl_complete(argc - first, argv + first);
	if (first == argc)
		return print_overview();
	verb = sl_cli_verb(argv[first]);
	if (!verb) {
		sl_cli_unknown_verb(argv[first], &err);
		return sl_cli_fail(SL_VERB_help, false, SL_EXIT_USAGE,
			"%s\nSee: sluice help", err.text);
	}
	return sl_cli_print_help(verb);
}
