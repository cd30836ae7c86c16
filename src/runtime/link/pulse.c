/*
 * pulse - see pulse.h
 *
 * The daemon moves idle clients for busy ones, so a moment without work must not count for a whole
 * span: a busy program has such moments between two pieces of work. After a client is reported idle
 * its gate listens, and the next submission is reported at once. A thread that waits at the closed
 * gate counts as work, too, since it submits as soon as the gate opens.
 */
#include "runtime/link/pulse.h"
#include "runtime/contexts/prove.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/session/state.h"

#include <string.h>

/* A shorter span would leave us no time for anything else. */
#define SPAN_MIN_NS (10 * SL_MS)
/* A shorter proof had nothing to wait for: the work had ended before. */
#define PROMPT_NS (20 * SL_MS)

static struct {
	uint32_t mode; /* enum sl_wire_probe */
	sl_ns span_ns, due_ns;
	bool fresh;     /* asked, and not answered yet */
	bool proving;   /* waiting for a proof to end */
	bool listening; /* the gate will report when work begins */
	/* Kept while no PROBE is active: an unchanged count stays valid. */
	bool looked;
	uint64_t seen;
	sl_ns changed_ns;
	/* As last reported. */
	bool working, proven, busy;
	uint32_t trips; /* residency trips at the last look */
} pulse;

void sl_pulse_probe(const struct sl_msg_probe *msg)
{
	pulse.mode = msg->mode;
	pulse.span_ns = sl_max_u64(msg->span_ms * SL_MS, SPAN_MIN_NS);
	pulse.due_ns = 0;
	pulse.fresh = true;
}

sl_ns sl_pulse_due(void)
{
	return pulse.mode == SL_WIRE_PROBE_OFF ? SL_NS_NEVER : pulse.due_ns;
}

void sl_pulse_stop(void)
{
	pulse.mode = SL_WIRE_PROBE_OFF;
}

void sl_pulse_forget(void)
{
	memset(&pulse, 0, sizeof(pulse));
}

/* Is a thread about to submit? The parked ones are counted first: a thread that passes the gate is
 * inside before it stops being parked, so it shows in one of the two. */
static bool is_inside(void)
{
	bool parked = sl_gate_parked() > 0;

	return !sl_gate_is_drained() || parked;
}

/* Work was submitted, or is about to be, since the client was reported idle. */
static bool has_begun(void)
{
	return pulse.listening && !sl_gate_is_listening();
}

/* When a client's memory has come back, the daemon counts it as busy. So a new report is due, even
 * if no work follows: the memory may have come back for a call that submits nothing. */
static void look_at_trips(void)
{
	uint32_t trips = sl_residency_trips();

	if (trips == pulse.trips || sl_residency_is_partial())
		return;
	pulse.trips = trips;
	pulse.fresh = true;
}

/* Work submitted before the gate listened is looked at soon. */
static void listen_for_work(void)
{
	if (pulse.listening)
		return;
	pulse.listening = true;
	sl_gate_listen();
	if (is_inside() || sl_gate_submissions() != pulse.seen)
		pulse.due_ns = 0;
}

/* Has anything been submitted since the last look, or is a thread about to? */
static bool has_moved(uint64_t submissions, bool inside, sl_ns now_ns)
{
	bool moved = !pulse.looked || submissions != pulse.seen || inside;

	pulse.looked = true;
	pulse.seen = submissions;
	if (moved)
		pulse.changed_ns = now_ns;
	return moved;
}

/* Evaluates the proof. If it was refused, only `moved` counts. If the driver failed, nothing is
 * known, and the client counts as working. */
static bool judge(const struct sl_proof *proof, bool moved, bool inside, sl_ns now_ns,
	struct sl_msg_pulse *out)
{
	out->proven = proof->submissions == out->submissions && !inside;
	if (proof->running)
		out->busy_ms = sl_sub_sat(now_ns, proof->started_ns) / SL_MS;
	if (!out->proven)
		return moved || pulse.fresh || !proof->refused || proof->failed;
	if (!proof->running && proof->ended_ns - proof->started_ns >= PROMPT_NS)
		pulse.changed_ns = sl_max_u64(pulse.changed_ns, proof->ended_ns);
	return false;
}

/* Sends the message if something changed, or at the end of a span with work. The end of work counts
 * as a change, since without a message the daemon assumes that it still runs. */
static bool tell(union sl_msg *msg, bool working, bool tick, sl_ns now_ns)
{
	bool proven = msg->pulse.proven, busy = msg->pulse.busy_ms > 0;

	if (!pulse.fresh && !(tick && working) && working == pulse.working &&
		proven == pulse.proven && (busy || !pulse.busy))
		return true;
	pulse.fresh = false;
	pulse.working = working;
	pulse.proven = proven;
	pulse.busy = busy;
	/* 0 would mean that it works. */
	if (!working)
		msg->pulse.idle_ms =
			sl_max_u64(1, sl_sub_sat(now_ns, pulse.changed_ns) / SL_MS);
	return sl_session_send(msg);
}

bool sl_pulse_look(void)
{
	sl_ns now_ns = sl_clock_now();
	bool inside, working, begun, told, tick = now_ns >= pulse.due_ns;
	struct sl_proof proof;
	union sl_msg msg;

	if (pulse.mode == SL_WIRE_PROBE_OFF)
		return true;
	look_at_trips();
	/* The proof is read before the submissions: it covers no later ones. */
	sl_prove_look(&proof);
	begun = has_begun();
	if (!tick && !(pulse.proving && !proof.running) && !begun)
		return true;
	pulse.listening = pulse.listening && !begun;
	pulse.proving = pulse.proving && proof.running;
	sl_wire_init(&msg, SL_MSG_PULSE);
	inside = is_inside();
	msg.pulse.submissions = sl_gate_submissions();
	working = has_moved(msg.pulse.submissions, inside, now_ns);
	if (pulse.mode == SL_WIRE_PROBE_PROVE)
		working = judge(&proof, working, inside, now_ns, &msg.pulse);
	if (tick)
		pulse.due_ns = now_ns + pulse.span_ns;
	/* At most one proof per span, to leave a busy process time to work. None while the door is
	 * closed: it would wait in the driver. */
	if (tick && pulse.mode == SL_WIRE_PROBE_PROVE && !msg.pulse.proven &&
		!sl_door_is_closed()) {
		sl_prove_ask();
		pulse.proving = true;
	}
	told = tell(&msg, working, tick, now_ns);
	if (!working)
		listen_for_work();
	return told;
}
