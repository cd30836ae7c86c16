/*
 * submitting - see the header
 */
#include "submitting.h"

#include <string.h>
#include <unistd.h>

#include "wire/jobspec.h"

int two_gpus(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	memcpy(rig.nvml->gpus[1].name, rig.nvml->gpus[0].name,
		sizeof(rig.nvml->gpus[1].name));
	*state = &rig;
	return 0;
}

int two_gpus_end(void **state)
{
	rig_fini(*state);
	return 0;
}

struct rig_peer greet(struct rig_peer peer)
{
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

/* One task of one GPU that runs the shell's words. */
union sl_msg submit_msg(const char *name)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SUBMIT);
	msg.submit.gpu_count = msg.submit.tasks = 1;
	msg.submit.priority_biased = SL_PRIORITY_BIAS;
	msg.submit.flags = SL_SUBMIT_PREEMPTIBLE;
	sl_wire_str(msg.submit.name, sizeof(msg.submit.name), name);
	sl_wire_str(msg.submit.command, sizeof(msg.submit.command), "sh");
	return msg;
}

int spec_fd(const char *words, uint32_t *size)
{
	struct sl_jobspec spec = {0};
	int fd;

	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_ARG, "/bin/sh"), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_ARG, "-c"), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_ARG, words), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_DIR, "/"), 0);
	*size = (uint32_t)spec.size;
	fd = sl_jobspec_to_fd(&spec);
	assert_true(fd >= 0);
	sl_jobspec_fini(&spec);
	return fd;
}

void send_submit(const struct rig_peer *peer, union sl_msg *msg, const char *words)
{
	int fd = spec_fd(words, &msg->submit.spec_bytes);

	assert_int_equal(sl_wire_send_fds(peer->fd, msg, &fd, 1), SL_WIRE_OK);
	(void)close(fd);
}

struct sl_msg_submit_reply submit(
	const struct rig_peer *peer, union sl_msg msg, const char *words)
{
	send_submit(peer, &msg, words);
	rig_expect(peer, SL_MSG_SUBMIT_REPLY, &msg);
	return msg.submit_reply;
}

struct sl_msg_job_row row_of(const struct rig_peer *peer, const char *name)
{
	struct sl_msg_job_row found = {.job = 0};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_JOBS;
	rig_send(peer, &msg);
	for (;;) {
		char buf[4096];

		assert_true(read(peer->fd, buf, sizeof(buf)) > 0);
		memcpy(&msg, buf, sizeof(msg));
		if (msg.head.type == SL_MSG_LIST_END)
			return found;
		assert_int_equal(msg.head.type, SL_MSG_JOB_ROW);
		if (strcmp(msg.job_row.name, name) == 0)
			found = msg.job_row;
	}
}

void ask_job(const struct rig_peer *peer, enum sl_msg_type type, const char *name)
{
	union sl_msg msg;

	sl_wire_init(&msg, type);
	if (type == SL_MSG_JOB_STOP) {
		msg.job_stop.grace_ms = 1000;
		sl_wire_str(msg.job_stop.name, sizeof(msg.job_stop.name), name);
	} else if (type == SL_MSG_JOB_WAIT) {
		sl_wire_str(msg.job_wait.name, sizeof(msg.job_wait.name), name);
	} else {
		sl_wire_str(msg.job_log.name, sizeof(msg.job_log.name), name);
	}
	rig_send(peer, &msg);
}

struct sl_msg_job_reply reply_of(
	const struct rig_peer *peer, enum sl_msg_type type, const char *name)
{
	union sl_msg msg;

	ask_job(peer, type, name);
	rig_expect(peer, SL_MSG_JOB_REPLY, &msg);
	return msg.job_reply;
}

void expect_refusal(const struct rig_peer *peer, union sl_msg msg, const char *words)
{
	struct sl_msg_submit_reply said = submit(peer, msg, "exec sleep 60");

	if (said.ok || !strstr(said.text, words))
		fail_msg("ok %u, '%s' lacks '%s'", said.ok, said.text, words);
}

void stop_job(const struct rig_peer *peer, const char *name)
{
	assert_true(reply_of(peer, SL_MSG_JOB_STOP, name).ok);
	rig_until(row_of(peer, name).state == SL_JOB_STOPPED);
}
