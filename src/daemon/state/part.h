/*
 * part - health of the optional parts: supervisor, projects, jobs, history, page, metrics
 *
 * The daemon shares GPUs without these parts, too. So a fault in one stops nothing else; `sluice
 * doctor` shows it. The supervisor's program is looked for at the time of the question; the other
 * parts report their last error. Loop only.
 */
#ifndef SL_DAEMON_STATE_PART_H
#define SL_DAEMON_STATE_PART_H

#include "base/error.h"
#include "wire/wire.h"

struct sl_part {
	enum sl_health health;
	uint64_t count;       /* as in PART_ROW */
	char path[256];       /* "": not found */
	struct sl_error text; /* the fault, with the remedy; "" if there is none */
};

#endif
