/*
 * parking - what park and resume have in common: the order, and the wait until it is carried out
 *
 * The daemon answers at once and goes on by itself; the wait is only a look at its lists, several
 * times a second. So whoever gives up waiting takes nothing back.
 */
#ifndef SL_CLI_CONN_PARKING_H
#define SL_CLI_CONN_PARKING_H

#include "cli/line/cli.h"

struct sl_parking {
	struct sl_strings names;
	bool no_wait, json;
};

/* The options of both, by what is waited for. */
#define SL_PARKING_OPTIONS(until)                                                  \
	SL_OPT_OPERANDS(struct sl_parking, names, "NAME",                          \
		"The workloads: their names or IDs, as sluice ps shows them."),    \
		SL_OPT_AS("no-wait", struct sl_parking, no_wait, FLAG, NULL, 0, 0, \
			"Do not wait until it is " until "."),                     \
		SL_OPT_AS("json", struct sl_parking, json, FLAG, NULL, 0, 0,       \
			"Print a JSON object for each."),                          \
		SL_OPT_END

/* The verb: parks, or resumes, one after the other; what is so already is said, and is no failure.
 * Returns the exit status, of the first that failed if any did; ends by the signal if one comes in
 * the wait. */
int sl_parking_main(enum sl_verb_id verb, bool parks, int argc, char **argv);

#endif
