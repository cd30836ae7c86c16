/*
 * control - what the command line asks
 *
 * RUN checks the form of what was asked and hands it to the policy, which admits or refuses;
 * the words of a refusal are made here, from the policy's numbers. LIST is for everyone, as
 * ps(1) is, and is answered row by row as the peer reads.
 */
#ifndef SL_DAEMON_CONTROL_CONTROL_H
#define SL_DAEMON_CONTROL_CONTROL_H

#include "daemon/link/peer.h"

/* A message of a greeted control peer: now, or after a look at the GPUs (control/recount.h). fds: what came
 * along; what is left in it is closed. */
void sl_control_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
void sl_control_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* Sends more rows of what is going out, as many as are due in one turn. */
void sl_control_list_more(struct sl_peer *peer);
/* What RUN and SET may carry. */
bool sl_control_is_amount(uint32_t kind, uint64_t value);
bool sl_control_is_priority(uint32_t biased);
/* What is wrong with these fields of a RUN, whoever sends them, and the remedy; NULL: nothing. */
const char *sl_control_mistake(const struct sl_msg_run *run);
/* "python-7" of "/usr/bin/python train.py", mark and number. */
void sl_control_make_name(
	const char *command, const char *mark, uint64_t id, char name[64]);
/* RUN_REPLY: what it got, or, if workload is NULL, why nothing. */
void sl_control_answer_run(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text);
/* Takes out what a terminal would act on. */
void sl_control_tame(char *text);
/* SL_WORKLOAD_* of SL_RUN_*. */
uint32_t sl_control_flags(const struct sl_daemon *daemon, uint32_t flags);
/* The value of CUDA_VISIBLE_DEVICES for its programs; 128 bytes suffice. */
void sl_control_visible(const struct sl_daemon *daemon,
	const struct sl_workload *workload, char *buf, size_t size);

#endif
