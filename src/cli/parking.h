/*
 * parking - what park and resume have in common: the order, and the wait until it is carried out
 *
 * The daemon answers at once and goes on by itself; the wait is only a look at its lists, several
 * times a second. So whoever gives up waiting takes nothing back.
 */
#ifndef SL_CLI_PARKING_H
#define SL_CLI_PARKING_H

#include "cli/cli.h"

struct sl_parking {
	const char *name;
	bool no_wait, json;
};

/* The options of both, by what is waited for. */
#define SL_PARKING_OPTIONS(until)                                                  \
	SL_OPT_OPERAND(struct sl_parking, name, "NAME",                            \
		"The workload: its name, or its id in sluice ps --json."),         \
		SL_OPT_AS("no-wait", struct sl_parking, no_wait, FLAG, NULL, 0, 0, \
			"Do not wait until it is " until "."),                     \
		SL_OPT_AS("json", struct sl_parking, json, FLAG, NULL, 0, 0,       \
			"Print a JSON object."),                                   \
		SL_OPT_END

/* The verb: parks, or resumes. Returns the exit status; ends by the signal if one comes in the
 * wait. */
int sl_parking_main(enum sl_verb_id verb, bool parks, int argc, char **argv);

#endif
