/*
 * agent - a poll loop over the line and the pipe that wakes it
 *
 * It never calls the driver: a driver call may wait for the GPU as long as a kernel runs, and
 * meanwhile no grant would reach a waiting thread. So another thread, the sweeper, frees
 * quarantined memory.
 */
#include "runtime/link/agent.h"
#include "runtime/gate/gate.h"
#include "runtime/link/dispatch.h"
#include "runtime/link/errands.h"
#include "runtime/link/gating.h"
#include "runtime/link/metering.h"
#include "runtime/link/pulse.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/wake.h"
#include "runtime/session/state.h"
#include "runtime/swap/swap.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* Pauses between tries to connect: first and longest. */
#define RETRY_MIN_NS (50 * SL_MS)
#define RETRY_MAX_NS (1 * SL_S)
/* While the gate is closed the agent checks this often whether the last thread is out. */
#define DRAIN_POLL_MS 1
/* Between tries to send while too many descriptors are in flight. No lock is held meanwhile. */
#define CROWDED_POLL_MS 1
/* Without its pipe the agent cannot be woken and polls. */
#define DEAF_POLL_MS 100

/* Sleeps for span_ns or until woken. */
static void pause_agent(sl_ns span_ns)
{
	struct pollfd item = {.fd = sl_wake_fd(), .events = POLLIN};

	(void)poll(&item, 1, (int)(span_ns / SL_MS));
	sl_wake_drain();
}

/* --- one connection --------------------------------------------------------------------- */

/* Messages that the agent carries out itself. False: the line is lost. */
static bool obey(const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_GATE: return sl_gating_order(&msg->gate);
	case SL_MSG_PROBE: sl_pulse_probe(&msg->probe); return true;
	case SL_MSG_METER: sl_metering_order(&msg->meter); return true;
	default: sl_swap_order(msg); return true;
	}
}

/* Reads all available messages. Outcomes of sl_dispatch_message. */
static int read_messages(void)
{
	struct sl_wire_fds fds;
	union sl_msg msg;
	int r;

	while ((r = sl_session_recv(&msg, &fds)) == SL_WIRE_OK) {
		r = sl_dispatch_message(&msg, &fds);
		sl_wire_fds_close(&fds);
		if (r == SL_DISPATCH_AGENT)
			r = obey(&msg) ? SL_DISPATCH_OK : SL_DISPATCH_LOST;
		if (r != SL_DISPATCH_OK)
			return r;
	}
	return r == SL_WIRE_AGAIN ? SL_DISPATCH_OK : SL_DISPATCH_LOST;
}

static int wait_ms(bool crowded)
{
	sl_ns now_ns = sl_clock_now(),
	      at_ns = sl_min_u64(sl_errands_due(), sl_pulse_due());
	sl_ns span_ns;

	at_ns = sl_min_u64(at_ns, sl_swap_due());
	span_ns = sl_sub_sat(at_ns, now_ns);
	if (sl_gating_is_pending())
		return DRAIN_POLL_MS;
	if (crowded)
		return span_ns ? CROWDED_POLL_MS : 0;
	if (at_ns == SL_NS_NEVER)
		return sl_wake_fd() >= 0 ? -1 : DEAF_POLL_MS;
	if (span_ns == 0)
		return 0;
	span_ns = span_ns / SL_MS + 1;
	return sl_wake_fd() >= 0 || span_ns < DEAF_POLL_MS
		       ? (int)sl_min_u64(span_ns, INT_MAX)
		       : DEAF_POLL_MS;
}

/* Serves one line until it is lost or the daemon rejects us. */
static int serve(void)
{
	int r = SL_DISPATCH_OK;

	while (r == SL_DISPATCH_OK) {
		bool crowded = sl_session_is_crowded();
		struct pollfd items[2] = {
			{.fd = sl_session_fd(), .events = POLLIN},
			{.fd = sl_wake_fd(), .events = POLLIN},
		};

		/* The socket of a crowded line has room: poll would return at once. */
		if (!crowded && sl_session_has_kept())
			items[0].events |= POLLOUT;
		(void)poll(items, 2, wait_ms(crowded));
		if (items[1].revents)
			pause_agent(0);
		r = read_messages();
		sl_errands_look();
		sl_swap_look();
		if (r == SL_DISPATCH_OK &&
			(!sl_gating_look() || !sl_metering_look() || !sl_pulse_look() ||
				!sl_session_flush()))
			r = SL_DISPATCH_LOST;
	}
	return r;
}

/* SL_DISPATCH_OK: connected, and HELLO is out. */
static int connect_once(const char *path)
{
	struct sl_error err = {0};
	struct sl_line line = SL_LINE_NONE;
	int r;

	/* A report during an order would be inconsistent. The agent is woken when the order has
	 * ended. */
	if (!sl_swap_connects())
		return SL_DISPATCH_LOST;
	r = sl_line_open(&line, path, &err);
	if (r == SL_LINE_UNTRUSTED)
		return sl_dispatch_distrust(err.text);
	if (r < 0) {
		sl_warning("waiting for the daemon: %s", err.text);
		/* The process may never get a free descriptor. */
		if (r == -EMFILE || r == -ENFILE)
			sl_session_starve();
		return SL_DISPATCH_LOST;
	}
	sl_step(C_CONNECTED);
	return sl_dispatch_greet(&line) ? SL_DISPATCH_OK : SL_DISPATCH_LOST;
}

static void *agent_main(void *arg)
{
	sl_ns retry_ns = RETRY_MIN_NS;
	int r = SL_DISPATCH_LOST;

	(void)prctl(PR_SET_NAME, "sluice-agent", 0, 0, 0);
	while (r != SL_DISPATCH_REJECTED) {
		r = connect_once(arg);
		if (r == SL_DISPATCH_OK) {
			sl_ns start_ns = sl_clock_now();

			r = serve();
			/* A line that lasted was good: start with short pauses again. */
			if (sl_clock_now() - start_ns > RETRY_MAX_NS)
				retry_ns = RETRY_MIN_NS;
		}
		sl_session_drop_line();
		sl_pulse_stop();
		sl_swap_stop();
		sl_metering_lost();
		sl_step(C_LINE_LOST);
		sl_gating_lost(r == SL_DISPATCH_REJECTED);
		if (r == SL_DISPATCH_LOST)
			pause_agent(retry_ns);
		retry_ns = sl_min_u64(2 * retry_ns, RETRY_MAX_NS);
	}
	return NULL;
}

int sl_agent_start(const char *path)
{
	int r = sl_wake_open();

	if (r < 0) {
		sl_warning("cannot join: no descriptors are left for a pipe");
		return r;
	}
	sl_gate_on_entry = sl_wake_agent;
	r = -sl_libc_start_thread(agent_main, (void *)path);
	if (r != 0)
		sl_wake_close();
	return r;
}

void sl_agent_forget(void)
{
	sl_wake_close();
}
