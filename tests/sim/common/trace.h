/*
 * trace - the last events and actions, kept for the moment something breaks
 *
 * A ring of copies; nothing is formatted until it is printed. One thread.
 */
#ifndef SL_SIM_TRACE_H
#define SL_SIM_TRACE_H

#include <stdio.h>

#include "policy/node.h"

#define SL_TRACE_LINES 120

struct sl_trace_line {
	sl_ns at;
	uint64_t number; /* of the event; actions carry that of their event */
	bool is_action;
	union {
		struct sl_event event;
		struct sl_action action;
	};
};

struct sl_trace {
	struct sl_trace_line line[SL_TRACE_LINES];
	uint64_t count;
};

void sl_trace_event(
	struct sl_trace *trace, sl_ns at, uint64_t number, const struct sl_event *event);
void sl_trace_action(struct sl_trace *trace, sl_ns at, uint64_t number,
	const struct sl_action *action);
/* One line each, oldest first. */
void sl_trace_print(const struct sl_trace *trace, FILE *out);
/* The youngest one. */
void sl_trace_print_last(const struct sl_trace *trace, FILE *out);
void sl_trace_print_event(const struct sl_event *event, FILE *out);
void sl_trace_print_action(const struct sl_action *action, FILE *out);

#endif
