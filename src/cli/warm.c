/* See warm.h; run and set share it. */
#include "cli/warm.h"

int sl_warm_check(const struct sl_conn *conn, struct sl_error *err)
{
	return sl_conn_needs(conn, sl_wire_since(SL_MSG_SET_WARM), "--warm-after", err);
}

int sl_warm_tell(struct sl_conn *conn, uint64_t workload, const char *name,
	sl_ns warm_after, union sl_msg *reply, struct sl_error *err)
{
	union sl_msg ask;

	sl_wire_init(&ask, SL_MSG_SET_WARM);
	ask.set_warm.workload = workload;
	ask.set_warm.warm_after_ms = warm_after / SL_MS;
	sl_wire_str(ask.set_warm.name, sizeof(ask.set_warm.name), name);
	return sl_conn_call(conn, &ask, SL_MSG_SET_REPLY, reply, err);
}
