/*
 * program - what CMD is, as far as it decides whether libsluice.so can be loaded into it
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
	SL_PROGRAM_UNFIT, /* would run, but without Sluice; err has why and the remedy */
};

/* Looks CMD up as execvp would, follows "#!" lines and env(1), and judges what it comes to.
 * path (SL_PATH_MAX bytes) is the file found for cmd itself; it is set on OK and UNFIT. */
SL_MUST_CHECK int sl_program_inspect(
	const char *cmd, char *path, size_t size, struct sl_error *err);

/* As sl_program_inspect of words[0], and where that is env, nice, timeout or the like, of the
 * command behind it, any number deep. words ends with NULL. What such a program does not find is
 * its own to report, so only UNFIT comes from behind it. */
SL_MUST_CHECK int sl_program_inspect_words(
	char *const *words, char *path, size_t size, struct sl_error *err);

/* The judgement of one executable file alone, for tests: OK, NOT_EXECUTABLE or UNFIT. */
SL_MUST_CHECK int sl_program_judge_file(const char *path, struct sl_error *err);

#endif
