/*
 * told - programs that obey commands on stdin, a line at a time
 *
 * Every command is answered by one line of JSON with the driver's result and a value; the test
 * decides what should have been. "& COMMAND" runs COMMAND in a new thread, in the context that is
 * current when the line is read. Its answer has "async":1, and may come after answers to later
 * lines. A line that is no command is answered by "nothing".
 */
#ifndef SL_TESTS_TOLD_H
#define SL_TESTS_TOLD_H

#include "prog.h"

struct told_command {
	const char *name;
	int words; /* with the name */
	/* word[0] is the name. Answers by itself. */
	void (*run)(char **word);
};

/* Says "start" with the process's pid, then obeys until told_end() or until stdin ends. */
void told_obey(const struct told_command *commands, size_t count);
/* No command is read after this one. */
void told_end(void);

void told_answer(const char *did, CUresult result, uint64_t value);
void told_answer_more(const char *did, CUresult result, uint64_t value, const char *more,
	uint64_t more_value);

/* A command: a child that sleeps for half a minute and touches nothing; value: its pid. */
void told_fork(char **word);

/* By cuIpc. Handles travel in files, as programs send them through whatever they have. */
CUresult told_export(CUdeviceptr at, const char *path);
CUipcMemHandle told_import(const char *path);

#endif
