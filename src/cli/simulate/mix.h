/*
 * mix - other mixes of jobs, made from those of a trace
 */
#ifndef SL_CLI_SIMULATE_MIX_H
#define SL_CLI_SIMULATE_MIX_H

#include "base/draw.h"
#include "cli/simulate/trace.h"

/* Replaces the jobs of the trace by the named mix: jobs drawn from the trace with the seed, of
 * about the same total demand. BAD: no mix has that name, or the trace lacks a kind of job that it
 * needs. */
SL_MUST_CHECK int sl_simulate_mix(
	struct sl_trace *trace, const char *name, uint64_t seed, struct sl_error *err);

/* The name by number, NULL behind the last; *text describes it. */
const char *sl_simulate_mix_name(uint32_t number, const char **text);

/* A state for sl_draw(). */
uint64_t sl_simulate_seeded(uint64_t seed);

#endif
