/*
 * part - what the daemon needs for projects, jobs and its history, and whether it is well
 *
 * The daemon shares GPUs also without them, so what is wrong with one stops nothing but is told
 * here, to `sluice doctor`: the supervisor's program is looked for now, of database and folder it
 * is what was met last. Only the loop calls.
 */
#ifndef SL_DAEMON_STATE_PART_H
#define SL_DAEMON_STATE_PART_H

#include "base/error.h"
#include "wire/wire.h"

struct sl_part {
	enum sl_health health;
	uint64_t count;       /* as in PART_ROW */
	char path[256];       /* "": it was not found */
	struct sl_error text; /* what is wrong, with the remedy; "" if it is well */
};

#endif
