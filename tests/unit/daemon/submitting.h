/*
 * submitting - jobs handed to the daemon by a test
 */
#ifndef SL_TESTS_DAEMON_SUBMITTING_H
#define SL_TESTS_DAEMON_SUBMITTING_H

#include "rig.h"

/* A control peer that has said hello. */
struct rig_peer greet(struct rig_peer peer);
/* One task of one GPU, preemptible. */
union sl_msg submit_msg(const char *name);
/* What runs these words of the shell, as SUBMIT carries it; the caller closes it. */
int spec_fd(const char *words, uint32_t *size);
void send_submit(const struct rig_peer *peer, union sl_msg *msg, const char *words);
struct sl_msg_submit_reply submit(
	const struct rig_peer *peer, union sl_msg msg, const char *words);

#endif
