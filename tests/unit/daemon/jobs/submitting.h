/*
 * submitting - jobs handed to the daemon by a test
 */
#ifndef SL_TESTS_DAEMON_SUBMITTING_H
#define SL_TESTS_DAEMON_SUBMITTING_H

#include "../rig.h"

/* Set-up and its end: a rig of two GPUs of one kind, either of which may be had for the other. */
int two_gpus(void **state);
int two_gpus_end(void **state);

/* A control peer that has said hello. */
struct rig_peer greet(struct rig_peer peer);
/* One task of one GPU, preemptible. */
union sl_msg submit_msg(const char *name);
/* What runs these words of the shell, as SUBMIT carries it; the caller closes it. */
int spec_fd(const char *words, uint32_t *size);
void send_submit(const struct rig_peer *peer, union sl_msg *msg, const char *words);
struct sl_msg_submit_reply submit(
	const struct rig_peer *peer, union sl_msg msg, const char *words);

/* The row of the job; number 0: no such job. */
struct sl_msg_job_row row_of(const struct rig_peer *peer, const char *name);
/* JOB_STOP, JOB_WAIT or JOB_LOG of that job; and the answer, where it is a JOB_REPLY. */
void ask_job(const struct rig_peer *peer, enum sl_msg_type type, const char *name);
struct sl_msg_job_reply reply_of(
	const struct rig_peer *peer, enum sl_msg_type type, const char *name);
/* It is not taken, and the reason has these words. */
void expect_refusal(const struct rig_peer *peer, union sl_msg msg, const char *words);
/* Stops it and waits for its end. */
void stop_job(const struct rig_peer *peer, const char *name);

#endif
