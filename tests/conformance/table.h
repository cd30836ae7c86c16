/*
 * table - one record of conformance cases: set up, played, judged
 *
 * What the records leave open is filled in by these rules, the same for all of them:
 *   a task asks for 1 core and 1 GB, a node has 20 cores, 20 GB and GPUs of 100 MiB;
 *   where a node's memory is given in small numbers (below 10^6) those are the units, else MB;
 *   a job has to run whole unless it names its least; sub groups, whose least the records do not
 *   have, need one task each; jobs can be preempted below priority 100; those with higher task
 *   priority come first within a job; queues are guaranteed no GPUs, and cores and memory without
 *   bound; over-quota weight 0 of GPUs, 1 of cores and memory; priority 100; a department's weight
 *   is its quota; a best-effort job asks for a thousandth of a core; running tasks without a named
 *   GPU stand on the first that has room.
 */
#ifndef SL_TESTS_CONFORMANCE_TABLE_H
#define SL_TESTS_CONFORMANCE_TABLE_H

#include <jansson.h>

#include "policy/cluster.h"

struct verdict {
	char differs[512];   /* the first state that is not the table's; empty: none */
	char violation[512]; /* empty: none */
	const char *reason;  /* the known reason; NULL: none */
	bool placed;         /* on the nodes that it names, too */
};

void table_play(
	const json_t *record, const char *action, bool verbose, struct verdict *verdict);

#endif
