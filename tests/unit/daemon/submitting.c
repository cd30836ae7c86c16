/*
 * submitting - see the header
 */
#include "submitting.h"

#include <string.h>
#include <unistd.h>

#include "wire/jobspec.h"

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
