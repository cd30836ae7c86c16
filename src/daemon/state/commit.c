/*
 * commit - see the header
 */
#include "daemon/state/commit.h"

void sl_commit_soon(struct sl_daemon *daemon)
{
	struct sl_commit *commit = &daemon->commit;

	/* The earlier daemon's journal is replaced only after it was read. */
	if (commit->pending || !commit->source || !daemon->recovered)
		return;
	commit->pending = true;
	commit->since = sl_clock_now();
	if (!commit->writing)
		(void)sd_event_source_set_enabled(commit->source, SD_EVENT_ONESHOT);
}

uint64_t sl_commit_next(const struct sl_daemon *daemon)
{
	return daemon->commit.begun + 1;
}

bool sl_commit_is_done(const struct sl_daemon *daemon, uint64_t number)
{
	return daemon->commit.done >= number;
}
