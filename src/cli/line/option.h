/*
 * option - one row per option gives the parser, --help and the check of the man pages
 *
 * A verb declares a struct for its settings and a table of rows that point into it. Options are
 * long, "--name VALUE" or "--name=VALUE", and a few flags also have a letter. The last value wins,
 * except for rows that collect values. Options end at "--", or at the first word without "-". For a
 * verb that takes operands, a word without "-" is an operand, and options may follow it. Pure but
 * for memory; no locks.
 */
#ifndef SL_CLI_LINE_OPTION_H
#define SL_CLI_LINE_OPTION_H

#include "base/amount.h"
#include "base/error.h"
#include "base/sl.h"

enum sl_option_type {
	SL_OPTION_END = 0,
	SL_OPTION_FLAG,    /* bool */
	SL_OPTION_STRING,  /* const char *, points into argv */
	SL_OPTION_NAME,    /* const char *; 1..63 printable bytes without blanks */
	SL_OPTION_AMOUNT,  /* struct sl_amount */
	SL_OPTION_INTEGER, /* int64_t within min..max */
	SL_OPTION_SIZE, /* uint64_t within (uint64_t)min..max; "512MiB" or plain digits */
	SL_OPTION_DURATION, /* sl_ns within min..max milliseconds */
	SL_OPTION_SECONDS, /* like DURATION, but the value may be left out: then min is taken */
	SL_OPTION_SWITCH, /* enum sl_switch; value is its two words, "on|off": the first is ON */
	SL_OPTION_STRINGS, /* struct sl_strings; may be given any number of times */
	/* The rows from here on are not options. */
	SL_OPTION_WORDS,    /* words may follow; help describes them */
	SL_OPTION_OPERAND,  /* const char *, the one word; options may follow it */
	SL_OPTION_OPERANDS, /* struct sl_strings; options may stand between them */
};

/* Value of a switch whose absence has a meaning of its own. */
enum sl_switch { SL_SWITCH_UNSET = 0, SL_SWITCH_ON, SL_SWITCH_OFF };

/* Values of an option that may come several times, in order. Zeroed is empty. */
struct sl_strings {
	const char **all; /* point into argv */
	size_t count;
};
void sl_strings_fini(struct sl_strings *strings);

struct sl_option {
	const char *name; /* without dashes; CMD or the like for SL_OPTION_WORDS */
	enum sl_option_type type;
	const char *value; /* name of the value in --help, NULL for flags */
	size_t offset;     /* into the settings */
	int64_t min, max;
	const char *help; /* one line */
	uint64_t preset;  /* printed behind the help of a SIZE unless 0 or UINT64_MAX */
	char letter;      /* of a FLAG that has a short form too (-f), else 0 */
};

/* For the tables: SL_OPT(struct run_settings, request, AMOUNT, "AMOUNT", 0, 0, "..."). */
#define SL_OPT(settings, member, kind, value, min, max, help) \
	SL_OPT_AS(#member, settings, member, kind, value, min, max, help)
#define SL_OPT_AS(name, settings, member, kind, value, min, max, help)               \
	{                                                                            \
		name, SL_OPTION_##kind, value, offsetof(settings, member), min, max, \
			help, 0, 0                                                   \
	}
/* A flag with a short form: SL_OPT_SHORT(struct settings, follow, 'f', "..."). */
#define SL_OPT_SHORT(settings, member, letter, help)                                   \
	{                                                                              \
#member, SL_OPTION_FLAG, NULL, offsetof(settings, member), 0, 0, help, \
			0, letter                                                      \
	}
/* The one word of a verb, NULL if it is absent: SL_OPT_OPERAND(struct settings, name, "NAME",
 * "..."). */
#define SL_OPT_OPERAND(settings, member, word, help)                                   \
	{                                                                              \
		word, SL_OPTION_OPERAND, NULL, offsetof(settings, member), 0, 0, help, \
			0, 0                                                           \
	}
#define SL_OPT_OPERANDS(settings, member, word, help)                                   \
	{                                                                               \
		word, SL_OPTION_OPERANDS, NULL, offsetof(settings, member), 0, 0, help, \
			0, 0                                                            \
	}
#define SL_OPT_JSON(settings) SL_OPT(settings, json, FLAG, NULL, 0, 0, "Print JSON.")
#define SL_OPT_WORDS(name, help)                                 \
	{                                                        \
		name, SL_OPTION_WORDS, NULL, 0, 0, 0, help, 0, 0 \
	}
#define SL_OPT_END                                             \
	{                                                      \
		NULL, SL_OPTION_END, NULL, 0, 0, 0, NULL, 0, 0 \
	}

enum sl_option_outcome {
	SL_OPTION_OK = 0,
	SL_OPTION_HELP, /* --help or -h is among the options */
	SL_OPTION_BAD,  /* err names the option and the remedy */
};

/* argv[0] is skipped. *first is set on OK: the index after the options (and after "--"). */
SL_MUST_CHECK int sl_option_parse(const struct sl_option *rows, void *into, int argc,
	char **argv, int *first, struct sl_error *err);

/* Is the flag --name among the options? Also answers when another option is wrong. has_words: the
 * words end with a command, so the search ends at the first word that is neither option nor value.
 * Without it all words are searched. False if the rows have no such flag. */
bool sl_option_has_flag(const struct sl_option *rows, const char *name, bool has_words,
	int argc, char *const *argv);

#endif
