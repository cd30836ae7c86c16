/*
 * parking - what park and resume share: the order, and the wait until it is carried out
 *
 * The daemon answers the order at once and carries it out by itself. The wait only reads the
 * daemon's lists several times a second, so ending the wait cancels nothing.
 */
#ifndef SL_CLI_CONN_PARKING_H
#define SL_CLI_CONN_PARKING_H

#include "cli/line/cli.h"

struct sl_parking {
	struct sl_strings names;
	const char *gpus; /* of a move: where to */
	bool no_wait, json;
};

/* The options of both; `until` names the state waited for. */
#define SL_PARKING_OPTIONS(until)                                                  \
	SL_OPT_OPERANDS(struct sl_parking, names, "NAME",                          \
		"The workloads: their names or IDs, as sluice ps shows them."),    \
		SL_OPT_AS("no-wait", struct sl_parking, no_wait, FLAG, NULL, 0, 0, \
			"Do not wait until it is " until "."),                     \
		SL_OPT_AS("json", struct sl_parking, json, FLAG, NULL, 0, 0,       \
			"Print a JSON object for each."),                          \
		SL_OPT_END

/* The verb: parks or resumes each named workload in turn. A workload in the wanted state already is
 * no failure. Returns the exit status of the first failure, if any; a signal during the wait ends
 * the process by that signal. */
int sl_parking_main(enum sl_verb_id verb, bool parks, int argc, char **argv);

#endif
