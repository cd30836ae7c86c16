/*
 * gating - see gating.h
 */
#include "runtime/link/gating.h"
#include "runtime/contexts/prove.h"
#include "runtime/gate/door.h"
#include "runtime/session/state.h"
#include "runtime/store/store.h"

#include "base/step.h"

#include <string.h>

static struct {
	bool closed;
	bool pending; /* closed, and GATE_DONE is not sent */
	uint64_t order;
} gating;

static void done(union sl_msg *msg)
{
	sl_wire_init(msg, SL_MSG_GATE_DONE);
	msg->gate_done.order = gating.order;
	msg->gate_done.closed = gating.closed;
}

static bool tell(void)
{
	union sl_msg msg;

	done(&msg);
	return sl_session_send(&msg);
}

static void open_door(void)
{
	if (gating.closed) {
		sl_store_doubt();
		sl_door_open();
	}
	gating.closed = gating.pending = false;
}

bool sl_gating_order(const struct sl_msg_gate *msg)
{
	gating.order = msg->order;
	if (!msg->closed) {
		open_door();
		return tell();
	}
	if (!gating.closed)
		sl_door_close();
	gating.closed = gating.pending = true;
	return true;
}

bool sl_gating_look(void)
{
	struct sl_proof proof;
	bool told;

	if (!gating.pending || !sl_door_is_drained())
		return true;
	/* A thread of ours waits in the driver for a proof. */
	sl_prove_look(&proof);
	if (proof.running)
		return true;
	gating.pending = false;
	told = tell();
	sl_step(C_DOOR_SHUT);
	return told;
}

bool sl_gating_is_pending(void)
{
	return gating.pending;
}

void sl_gating_say_again(void)
{
	union sl_msg msg;

	if (!gating.closed)
		return;
	done(&msg);
	sl_session_say(&msg);
}

void sl_gating_lost(bool for_good)
{
	if (gating.pending || for_good)
		open_door();
}

void sl_gating_forget(void)
{
	memset(&gating, 0, sizeof(gating));
}
