/*
 * errands - see errands.h
 *
 * Two deadlines and a look-out. The first wish of a burst sets the deadline; those that come until
 * then are served with it, and one that comes while the message is being sent sets the next. The
 * look-out reads the gate's counter of submissions, which costs the submitting threads nothing.
 */
#include "runtime/link/errands.h"
#include "runtime/gate/gate.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"

#include <string.h>

/* From a first launch or load to its measurement: the driver takes what it takes by then. */
#define MEASURE_DELAY_NS (50 * SL_MS)
/* The daemon measures everybody about once a second: what comes later is its affair. */
#define LOOK_OUT_NS (1 * SL_S)
/* Between looks at the counter of submissions. */
#define LOOK_SPAN_NS (100 * SL_MS)
/* What becomes held is known to the daemon already, or within the request: nobody waits for
 * this. */
#define HELD_DELAY_NS (5 * SL_MS)

static struct {
	bool measures, holds, looks_out; /* which of the times are meant */
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

/* Contexts or modules changed: what they hold grows with the work to come. */
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
	/* Not heard while there is no daemon: it is told when there is one. */
	errands.measures = !sl_session_measure_all();
	errands.measure_at = now_ns + LOOK_SPAN_NS;
}

static void look_at_held(sl_ns now_ns)
{
	/* Taken also while a message is due already: what comes after this look wakes the agent
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
