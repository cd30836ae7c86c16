/* Questions go to standard error, so that scripts can look at them. */
#include "fake-jobs.h"

#include "base/sl.h"
#include "wire/jobspec.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SUBMITTED_MS 1700000000000
#define MINUTE_MS    60000

static const struct {
	const char *name, *why;
	uint64_t workload;
	uint32_t state, exit_status, tasks, queued, running, parked;
} jobs[] = {
	{"train", "project research has its 2 GPUs\033[31m; it starts when one is free",
		0, SL_JOB_QUEUED, 0, 4, 4, 0, 0},
	{"a-model-server-1", "", 2, SL_JOB_RUNNING, 0, 1, 0, 1, 0},
	{"nap", "others have the GPUs; it comes back by itself", 3, SL_JOB_PARKED, 0, 1,
		0, 0, 1},
	{"made", "", 0, SL_JOB_DONE, 0, 1, 0, 0, 0},
	{"broken", "it failed 3 times", 0, SL_JOB_FAILED, 3 << 8, 1, 0, 0, 0},
	{"killed", "", 0, SL_JOB_FAILED, 9, 1, 0, 0, 0},
	{"unseen", "", 0, SL_JOB_FAILED, SL_JOB_LOST, 1, 0, 0, 0},
	{"cancelled", "", 0, SL_JOB_STOPPED, 0, 1, 0, 0, 0},
	{"made", "", 0, SL_JOB_FAILED, 1 << 8, 1, 0, 0, 0},
};

/* The output of the running job, once it has been asked for. */
static int output = -1;

static size_t row_of(uint64_t job)
{
	return job >= 1 && job <= SL_ARRAY_LEN(jobs) ? (size_t)job - 1 : 0;
}

void fake_jobs_list(int fd, fake_send_fn send)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(jobs); i++) {
		bool over = jobs[i].state >= SL_JOB_DONE;
		union sl_msg msg;
		struct sl_msg_job_row *row = &msg.job_row;

		sl_wire_init(&msg, SL_MSG_JOB_ROW);
		row->job = i + 1;
		row->workload = jobs[i].workload;
		row->state = jobs[i].state;
		row->exit_status = jobs[i].exit_status;
		row->tasks = jobs[i].tasks;
		row->queued = jobs[i].queued;
		row->running = jobs[i].running;
		row->parked = jobs[i].parked;
		row->ended = over;
		row->gpu_count = 1;
		row->flags = SL_SUBMIT_PREEMPTIBLE;
		row->priority_biased = SL_PRIORITY_BIAS + 7;
		row->request_kind = SL_AMOUNT_FRACTION;
		row->request_value = SL_AMOUNT_WHOLE / 2;
		row->submitted_ms = SUBMITTED_MS;
		row->started_ms =
			i && strcmp(jobs[i].name, "cancelled") ? SUBMITTED_MS : 0;
		row->ended_ms = over ? SUBMITTED_MS + 5 * MINUTE_MS : 0;
		sl_wire_str(row->name, sizeof(row->name), jobs[i].name);
		sl_wire_str(row->project, sizeof(row->project), "research");
		sl_wire_str(row->command, sizeof(row->command), "python3 train.py");
		sl_wire_str(row->why, sizeof(row->why), jobs[i].why);
		send(fd, &msg, -1);
	}
}

void fake_jobs_queue(int fd, fake_send_fn send)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_QUEUE_ROW);
	msg.queue_row.job = 1;
	msg.queue_row.waiting = 1;
	sl_wire_str(msg.queue_row.name, sizeof(msg.queue_row.name), jobs[0].name);
	sl_wire_str(msg.queue_row.project, sizeof(msg.queue_row.project), "research");
	sl_wire_str(msg.queue_row.why, sizeof(msg.queue_row.why), jobs[0].why);
	send(fd, &msg, -1);
}

/* Of the environment what tests set, and what must not be there. */
static void tell_spec(const struct sl_wire_fds *fds, uint32_t bytes)
{
	static const char *const names[] = {
		"T_", "LD_PRELOAD=", "CUDA_", "SLUICE_SOCKET=", "SLUICE_WORKLOAD="};
	sl_cleanup(sl_jobspec_fini) struct sl_jobspec spec = {0};
	struct sl_error err = {0};
	const char *value;
	size_t at = 0;

	if (fds->count != 1 ||
		sl_jobspec_from_fd(fds->fd[0], bytes, false, &spec, &err)) {
		fprintf(stderr, "SPEC bad: %s\n", err.text);
		return;
	}
	while ((value = sl_jobspec_next(&spec, SL_JOBSPEC_ARG, &at)))
		fprintf(stderr, "arg=%s\n", value);
	at = 0;
	while ((value = sl_jobspec_next(&spec, SL_JOBSPEC_ENV, &at)))
		for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
			if (!strncmp(value, names[i], strlen(names[i])))
				fprintf(stderr, "env=%s\n", value);
	at = 0;
	fprintf(stderr, "dir=%s", sl_jobspec_next(&spec, SL_JOBSPEC_DIR, &at));
	at = 0;
	fprintf(stderr, " umask=%s", sl_jobspec_next(&spec, SL_JOBSPEC_UMASK, &at));
	at = 0;
	value = sl_jobspec_next(&spec, SL_JOBSPEC_DELAY, &at);
	fprintf(stderr, "%s%s\n", value ? " delay=" : "", value ? value : "");
}

static void submit(int fd, const struct sl_msg_submit *ask, const struct sl_wire_fds *fds,
	bool refuses, fake_send_fn send)
{
	union sl_msg msg;
	struct sl_msg_submit_reply *reply = &msg.submit_reply;

	tell_spec(fds, ask->spec_bytes);
	fprintf(stderr,
		"SUBMIT request=%u:%llu limit=%u:%llu warm=%llu gpus=%u priority=%d "
		"flags=%x wait=%u tasks=%u least=%u retries=%u name=%s project=%s "
		"command=%s visible=%s%s\n",
		ask->request_kind, (unsigned long long)ask->request_value,
		ask->limit_kind, (unsigned long long)ask->limit_value,
		(unsigned long long)ask->warm_after_ms, ask->gpu_count,
		(int)(ask->priority_biased - SL_PRIORITY_BIAS),
		ask->flags & ~SL_RUN_VISIBLE_SET, ask->longest_wait_ms, ask->tasks,
		ask->least, ask->retries, ask->name, ask->project, ask->command,
		ask->flags & SL_RUN_VISIBLE_SET ? "set:" : "unset", ask->visible);
	sl_wire_init(&msg, SL_MSG_SUBMIT_REPLY);
	reply->ok = !refuses;
	/* The first one of the list never ends. */
	reply->job = refuses || ask->flags & SL_SUBMIT_TRY ? 0
		     : strcmp(ask->name, "train")          ? 2
							   : 1;
	sl_wire_str(reply->name, sizeof(reply->name), ask->name[0] ? ask->name : "job2");
	sl_wire_str(reply->text, sizeof(reply->text),
		refuses ? "no GPU has\033[2J 64 GiB; ask for less"
			: "it waits: project research has its 2 GPUs");
	send(fd, &msg, -1);
}

/* The one that runs writes another line, and is done. */
static void wait_for(int fd, const struct sl_msg_job_wait *ask, fake_send_fn send)
{
	static const struct timespec moment = {.tv_nsec = 300000000};
	size_t i = row_of(ask->job);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_JOB_REPLY);
	if (jobs[i].state < SL_JOB_DONE) {
		nanosleep(&moment, NULL);
		if (output >= 0)
			/* The reader has the same description, and its offset. */
			(void)!pwrite(output, "four\n", 5, 14);
	}
	fprintf(stderr, "JOB_WAIT job=%llu\n", (unsigned long long)ask->job);
	msg.job_reply.ok = 1;
	msg.job_reply.job = ask->job;
	msg.job_reply.state = jobs[i].state < SL_JOB_DONE ? SL_JOB_FAILED : jobs[i].state;
	msg.job_reply.exit_status =
		jobs[i].state < SL_JOB_DONE ? 42 << 8 : jobs[i].exit_status;
	sl_wire_str(msg.job_reply.name, sizeof(msg.job_reply.name), jobs[i].name);
	/* One that never ends. */
	if (jobs[i].state != SL_JOB_QUEUED)
		send(fd, &msg, -1);
}

static void stop(
	int fd, const struct sl_msg_job_stop *ask, bool refuses, fake_send_fn send)
{
	size_t i = row_of(ask->job);
	union sl_msg msg;

	fprintf(stderr, "JOB_STOP job=%llu grace=%u\n", (unsigned long long)ask->job,
		ask->grace_ms);
	sl_wire_init(&msg, SL_MSG_JOB_REPLY);
	msg.job_reply.ok = !refuses && jobs[i].state < SL_JOB_DONE;
	msg.job_reply.job = ask->job;
	msg.job_reply.state = jobs[i].running ? SL_JOB_STOPPING : SL_JOB_STOPPED;
	msg.job_reply.processes = jobs[i].running;
	sl_wire_str(msg.job_reply.name, sizeof(msg.job_reply.name), jobs[i].name);
	if (!msg.job_reply.ok)
		sl_wire_str(msg.job_reply.text, sizeof(msg.job_reply.text),
			"it has ended already");
	send(fd, &msg, -1);
}

static void log_of(int fd, const struct sl_msg_job_log *ask, fake_send_fn send)
{
	union sl_msg msg;

	if (jobs[row_of(ask->job)].state == SL_JOB_QUEUED) {
		sl_wire_init(&msg, SL_MSG_JOB_REPLY);
		sl_wire_str(msg.job_reply.text, sizeof(msg.job_reply.text),
			"it has not started yet");
		send(fd, &msg, -1);
		return;
	}
	output = memfd_create("output", MFD_CLOEXEC);
	(void)!write(output, "one\ntwo\nthree\n", 14);
	sl_wire_init(&msg, SL_MSG_JOB_LOG_FILE);
	msg.job_log_file.job = ask->job;
	msg.job_log_file.task = ask->task;
	msg.job_log_file.state = jobs[row_of(ask->job)].state;
	send(fd, &msg, output);
}

bool fake_jobs_answer(int fd, const union sl_msg *msg, const struct sl_wire_fds *fds,
	bool refuses, fake_send_fn send)
{
	switch (msg->head.type) {
	case SL_MSG_SUBMIT: submit(fd, &msg->submit, fds, refuses, send); break;
	case SL_MSG_JOB_WAIT: wait_for(fd, &msg->job_wait, send); break;
	case SL_MSG_JOB_STOP: stop(fd, &msg->job_stop, refuses, send); break;
	case SL_MSG_JOB_LOG: log_of(fd, &msg->job_log, send); break;
	default: return false;
	}
	return true;
}
