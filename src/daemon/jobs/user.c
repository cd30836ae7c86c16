/*
 * user - what one user may have in the queue and on the disk
 *
 * Every user may submit, and the daemon keeps what they submit: without a bound one user could fill
 * the queue, or the disk of all. The bounds hold for root, too, whose loops run wild like others';
 * they are far above normal needs. Sizes are measured when a job is submitted, and only of this
 * user's jobs that may have written since.
 */
#include <inttypes.h>

#include "base/log.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/internal.h"

static uint64_t used_by(const struct sl_jobs *jobs, struct sl_job *job)
{
	bool writes = !job->over && job->row.started;

	if (job->used_known && !writes)
		return job->used_bytes;
	/* Not on the disk yet: the size was set when it was submitted. */
	if (!job->stored)
		return job->used_bytes;
	job->used_bytes =
		sl_jobs_files_used(jobs->folder, job->row.id, writes || job->over);
	job->used_known = !writes;
	return job->used_bytes;
}

/* May it be removed? Its end is told, and no write is pending. */
static bool may_go(const struct sl_job *job)
{
	return job->over && !job->reply_due && job->stored;
}

/* stored: count stored jobs only. */
static struct sl_queue_share share_of(struct sl_jobs *jobs, uid_t uid, bool stored)
{
	struct sl_queue_share share = {0};

	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);
		uint64_t bytes;

		if (job->row.uid != uid || job->foreground || (stored && !job->stored))
			continue;
		bytes = used_by(jobs, job);
		if (may_go(job)) {
			share.kept++;
			share.kept_bytes += bytes;
		} else {
			share.living++;
			share.living_bytes += bytes;
			share.tasks += job->row.task_count;
		}
	}
	return share;
}

static struct sl_queue_bounds bounds_in(const struct sl_jobs *jobs)
{
	const struct sl_config *config = &jobs->daemon->config;

	return (struct sl_queue_bounds){
		.jobs = config->jobs_per_user, .bytes = config->jobs_disk_per_user};
}

bool sl_jobs_user_may(struct sl_jobs *jobs, uid_t uid, uint32_t tasks, uint64_t bytes,
	struct sl_queue_verdict *verdict, struct sl_error *err)
{
	struct sl_queue_bounds bounds = bounds_in(jobs);
	struct sl_queue_share share = share_of(jobs, uid, false);
	char has[32], most[32];

	*verdict = sl_queue_judge(&share, &bounds, tasks, bytes);
	switch (verdict->outcome) {
	case SL_QUEUE_OK: return true;
	case SL_QUEUE_JOBS:
		sl_error_set(err,
			"user %u has %" PRIu32 " jobs in the queue, and may have %" PRIu32
			"; wait for some to end, or stop some (sluice ps), or have "
			"jobs_per_user raised (sluiced.conf)",
			(unsigned int)uid, share.living, bounds.jobs);
		break;
	case SL_QUEUE_TASKS:
		sl_error_set(err,
			"user %u has jobs with %" PRIu64
			" tasks in the queue, and with %" PRIu32
			" more would have above %u, ten for each of jobs_per_user "
			"(sluiced.conf); wait for some to end, or stop some (sluice ps)",
			(unsigned int)uid, share.tasks, tasks,
			bounds.jobs * SL_QUEUE_TASKS_PER_JOB);
		break;
	case SL_QUEUE_BYTES:
		sl_error_set(err,
			"jobs of user %u that have not ended have %s on the disk, and "
			"with "
			"this one would have above %s; have what writes much write to "
			"files of "
			"its own, stop some (sluice ps), or have jobs_disk_per_user "
			"raised "
			"(sluiced.conf)",
			(unsigned int)uid,
			sl_bytes_format(share.living_bytes, has, sizeof(has)),
			sl_bytes_format(bounds.bytes, most, sizeof(most)));
		break;
	}
	return false;
}

void sl_jobs_user_make_room(struct sl_jobs *jobs, struct sl_job *new)
{
	struct sl_queue_bounds bounds = bounds_in(jobs);
	struct sl_queue_share share;
	struct sl_queue_verdict verdict;
	uid_t uid = new->row.uid;
	uint32_t left;
	uint64_t bytes;

	if (!new->drops)
		return;
	new->drops = false;
	/* The share of now: later jobs of that user may have removed some already. */
	share = share_of(jobs, uid, true);
	verdict = sl_queue_excess(&share, &bounds);
	left = verdict.drop_jobs;
	bytes = verdict.drop_bytes;
	/* By number, which is roughly by age. */
	sl_list_foreach_safe (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (!left && !bytes)
			return;
		if (job->row.uid != uid || job->foreground || !may_go(job))
			continue;
		sl_info("job %" PRIu64 " (%s) of user %u is removed for a new one",
			job->row.id, job->row.name, job->row.uid);
		left -= left > 0;
		bytes = sl_sub_sat(bytes, job->used_bytes);
		if (!sl_jobs_remove(jobs, job))
			return;
	}
}
