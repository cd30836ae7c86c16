/*
 * program - can libsluice.so be loaded into CMD?
 *
 * Reads files only; executes nothing. No locks. The answer describes the moment of the call.
 */
#ifndef SL_CLI_LINE_PROGRAM_H
#define SL_CLI_LINE_PROGRAM_H

#include "base/error.h"
#include "base/paths.h"

enum sl_program_outcome {
	SL_PROGRAM_OK = 0,
	SL_PROGRAM_NOT_FOUND,      /* as env(1): 127 */
	SL_PROGRAM_NOT_EXECUTABLE, /* as env(1): 126 */
	SL_PROGRAM_UNFIT, /* runs, but without Sluice; err has the reason and the remedy */
};

/* Looks CMD up as execvp would, follows "#!" lines and env(1), and judges the resulting program.
 * path (SL_PATH_MAX bytes) is the file found for cmd itself; set on OK and UNFIT. */
SL_MUST_CHECK int sl_program_inspect(
	const char *cmd, char *path, size_t size, struct sl_error *err);

/* As sl_program_inspect of words[0]. If that is env, nice, timeout or the like, the command behind
 * it is judged too, at any depth. Such a command can only give UNFIT: a missing one is reported by
 * the wrapper itself. words ends with NULL. */
SL_MUST_CHECK int sl_program_inspect_words(
	char *const *words, char *path, size_t size, struct sl_error *err);

/* The first of words that is neither an option nor the value of one; NULL if there is none. valued:
 * options whose value is the next word, as in wrappers.def. */
char *const *sl_program_operand(const char *valued, char *const *words);

/* Judges one executable file, for tests: OK, NOT_EXECUTABLE or UNFIT. */
SL_MUST_CHECK int sl_program_judge_file(const char *path, struct sl_error *err);

#endif
