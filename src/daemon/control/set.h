/*
 * set - changing and ending workloads that run: SET and STOP
 *
 * Only root, the daemon's own user and the workload's own may. Who may is told everything in the
 * reply; others are rejected (DENIED). What a SET changed is in the journal before the reply
 * leaves.
 */
#ifndef SL_DAEMON_CONTROL_SET_H
#define SL_DAEMON_CONTROL_SET_H

#include "daemon/link/peer.h"

/* The workload that may be changed by this peer; NULL after saying why not: in *text, or by
 * rejecting the peer. */
struct sl_workload *sl_set_changeable(struct sl_peer *peer, uint64_t id, const char *name,
	const char *verb, struct sl_error *text);
/* Answers a change that was made; remark: what is to be known of it, "" for nothing. */
void sl_set_reply_done(
	struct sl_peer *peer, const struct sl_workload *workload, const char *remark);
/* Answers a change that was made (reason NONE, no text), or was not. */
void sl_set_reply(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text);

void sl_set_set(struct sl_peer *peer, const struct sl_msg_set *set);
void sl_set_stop(struct sl_peer *peer, const struct sl_msg_stop *stop);

#endif
