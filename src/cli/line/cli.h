/*
 * cli - verbs, exit statuses and the one way to fail
 *
 * One process, one thread, one verb. A verb is a function that returns the exit status. It prints
 * results on standard output and errors through sl_cli_fail. Nothing here keeps state between
 * calls, so unit tests may call verbs one after the other.
 */
#ifndef SL_CLI_LINE_CLI_H
#define SL_CLI_LINE_CLI_H

#include "base/sl.h"
#include "cli/line/option.h"

enum sl_exit {
#define SL_EXIT(NAME, code, text) SL_EXIT_##NAME = code,
#include "cli/line/exits.def"
#undef SL_EXIT
};

enum sl_verb_id {
#define SL_VERB(name, synopsis, summary) SL_VERB_##name,
#include "cli/line/verbs.def"
#undef SL_VERB
	SL_VERBS
};

/* argv[0] is the verb. Returns the exit status; `run` and `softgpu` may not return at all. */
typedef int (*sl_verb_fn)(int argc, char **argv);

struct sl_verb {
	const char *name, *synopsis, *summary;
	sl_verb_fn main;
	const struct sl_option *options;
};

/* By enum sl_verb_id. */
extern const struct sl_verb sl_verbs[SL_VERBS];

#define SL_VERB(name, synopsis, summary)           \
	int sl_verb_##name(int argc, char **argv); \
	extern const struct sl_option sl_verb_##name##_options[];
#include "cli/line/verbs.def"
#undef SL_VERB

/* Everything main() does. argv[0] is the program. */
int sl_cli_main(int argc, char **argv);

/* NULL if there is no such verb. */
const struct sl_verb *sl_cli_verb(const char *name);

/* err says that there is no such verb, and which one may be meant: a similar name, or another
 * tool's name for it. */
void sl_cli_unknown_verb(const char *word, struct sl_error *err);

/* Prints the help of a verb on standard output. Returns SL_EXIT_OK, or SYSTEM on a write error. */
int sl_cli_print_help(const struct sl_verb *verb);

/*
 * Parses the options of a verb into *into. Returns -1 to go on, with *first the index in argv of
 * the first word that is not an option; else the exit status to leave with (0 after --help). A verb
 * without SL_OPTION_WORDS among its rows refuses words.
 */
SL_MUST_CHECK int sl_cli_parse(
	enum sl_verb_id verb, void *into, int argc, char **argv, int *first);

/* What a verb does for ACTION [WORD]. A table ends with a row without name. */
struct sl_cli_action {
	const char *name, *word; /* word: what follows the name, or NULL */
	bool needs_word;
	int (*act)(const void *settings); /* returns the exit status */
};

/* Parses as sl_cli_parse(), with options on either side of the word, and calls the action. action
 * and word point to the members of *into that the rows fill; *word is NULL if absent. Returns the
 * exit status. */
int sl_cli_act(enum sl_verb_id verb, const struct sl_cli_action *actions, void *into,
	const char **action, const char **word, int argc, char **argv);

/* sl_cli_fail() for a wrong command line, with a pointer to the help. */
int sl_cli_usage(enum sl_verb_id verb, bool json, const char *text);

/* Prints "sluice VERB: text" on standard error, or {"ok": false, "exit": ..., "error": text} if
 * json. Returns status, for `return sl_cli_fail(...)`. */
int sl_cli_fail(enum sl_verb_id verb, bool json, enum sl_exit status, const char *format,
	...) SL_PRINTF(4, 5);

/* Flushes standard output. Returns status, or SYSTEM with a message on a write error (a full disk
 * must not look like an empty list). */
int sl_cli_finish(enum sl_verb_id verb, int status);

#endif
