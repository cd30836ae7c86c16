/* See warm.h; run and set share it. */
#include "cli/conn/warm.h"

static uint64_t in_ms(sl_ns span)
{
	return span == SL_WARM_UNSET ? SL_WARM_AS_IT_IS : span / SL_MS;
}

int sl_warm_tell(struct sl_conn *conn, uint64_t workload, const char *name,
	sl_ns warm_after, sl_ns idle_grace, union sl_msg *reply, struct sl_error *err)
{
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_SET_WARM);
	ask.set_warm.workload = workload;
	ask.set_warm.warm_after_ms = in_ms(warm_after);
	ask.set_warm.idle_grace_ms = in_ms(idle_grace);
	sl_wire_str(ask.set_warm.name, sizeof(ask.set_warm.name), name);
	return sl_conn_call(conn, &ask, SL_MSG_SET_REPLY, reply, err);
}
