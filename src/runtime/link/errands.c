/*
 * errands - see errands.h
 *
 * Held bytes and measurements have a deadline each. The first change of a burst sets it; changes
 * until then go into the same message, and a change during the sending sets the next deadline. For
 * a while after contexts or modules changed, look_at_work polls the gate's counter of submissions,
 * which costs the submitting threads nothing.
 */
#include "runtime/link/errands.h"
#include "runtime/gate/gate.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"

#include <string.h>

/* From a first launch or load to its measurement: by then the driver has taken its memory. */
#define MEASURE_DELAY_NS (50 * SL_MS)
/* The daemon itself measures every process about once a second and finds later changes. */
#define LOOK_OUT_NS (1 * SL_S)
/* Between looks at the counter of submissions. */
#define LOOK_SPAN_NS (100 * SL_MS)
/* The daemon knows already, or the bytes are within the request, so no thread waits for this. */
#define HELD_DELAY_NS (5 * SL_MS)

static struct {
	bool measures, holds, looks_out; /* which of the times are set */
	sl_ns measure_at, held_at, look_at, look_out_end;
	uint64_t work_seen; /* submissions at the last measurement or look */
} errands;

sl_ns sl_errands_due(void)
{
	sl_ns at = SL_NS_NEVER;

	if (errands.measures)
		at = sl_min_u64(at, errands.measure_at);
	if (errands.holds)
		at = sl_min_u64(at, errands.held_at);
	if (errands.looks_out)
		at = sl_min_u64(at, errands.look_at);
	return at;
}

static void measure_soon(sl_ns now_ns)
{
	if (!errands.measures)
		errands.measure_at = now_ns + MEASURE_DELAY_NS;
	errands.measures = true;
}

/* Contexts or modules changed: their memory grows with the work to come. */
static void look_out(sl_ns now_ns)
{
	if (!errands.looks_out)
		errands.look_at = now_ns + LOOK_SPAN_NS;
	errands.looks_out = true;
	errands.look_out_end = now_ns + LOOK_OUT_NS;
}

static void look_at_work(sl_ns now_ns)
{
	uint64_t work = sl_gate_submissions();

	if (!errands.looks_out || now_ns < errands.look_at)
		return;
	errands.look_at = now_ns + LOOK_SPAN_NS;
	errands.looks_out = now_ns < errands.look_out_end;
	if (work == errands.work_seen)
		return;
	errands.work_seen = work;
	sl_measure_due_for_view();
	measure_soon(now_ns);
}

static void look_at_hidden(sl_ns now_ns)
{
	if (sl_measure_take(SL_MEASURE_FOR_AGENT)) {
		measure_soon(now_ns);
		look_out(now_ns);
	}
	if (!errands.measures || now_ns < errands.measure_at)
		return;
	/* Not sent while there is no daemon: it is sent to the next one. */
	errands.measures = !sl_session_measure_all();
	errands.measure_at = now_ns + LOOK_SPAN_NS;
}

static void look_at_held(sl_ns now_ns)
{
	/* Also cleared while a message is due already: a change after this wakes the agent
	 * again. */
	if (sl_held_is_due() && !errands.holds) {
		errands.holds = true;
		errands.held_at = now_ns + HELD_DELAY_NS;
	}
	if (!errands.holds || now_ns < errands.held_at)
		return;
	errands.holds = false;
	sl_held_tell(false);
}

void sl_errands_look(void)
{
	sl_ns now_ns = sl_clock_now();

	look_at_work(now_ns);
	look_at_hidden(now_ns);
	look_at_held(now_ns);
}

void sl_errands_forget(void)
{
	memset(&errands, 0, sizeof(errands));
}
