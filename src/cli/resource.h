/*
 * resource - a compute resource: request, limit, GPUs and priority by a name that the daemon knows
 */
#ifndef SL_CLI_RESOURCE_H
#define SL_CLI_RESOURCE_H

#include "cli/launch.h"

/* Puts what launch->resource names where nothing else was said. -1 to go on, else the exit status,
 * after a message. */
SL_MUST_CHECK int sl_resource_take(enum sl_verb_id verb, struct sl_launch *launch);

#endif
