/*
 * dispatch - see the header
 */
#include "daemon/loop/dispatch.h"

#include "daemon/clients/client.h"
#include "daemon/clients/views.h"
#include "daemon/control/control.h"
#include "daemon/control/entry.h"
#include "daemon/control/recount.h"
#include "daemon/history/history.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/resources.h"
#include "daemon/projects/registry.h"
#include "daemon/state/process.h"
#include "daemon/workloads/container.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/workload.h"

/* --- peers -------------------------------------------------------------------------------- */

static void take(struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	if (peer->control)
		sl_control_take(peer, msg, fds);
	else
		sl_client_take(peer, msg, fds);
}

void sl_dispatch_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	if ((peer->control || peer->client) && sl_recount_first(peer, msg))
		return;
	take(peer, msg, fds);
}

void sl_dispatch_recounted(struct sl_daemon *daemon)
{
	sl_ns now = sl_clock_now();
	struct sl_peer *peer;
	union sl_msg msg;

	while ((peer = sl_recount_next(daemon, now, &msg))) {
		struct sl_wire_fds none = {0}; /* messages that wait bring none */

		take(peer, &msg, &none);
		sl_peer_rested(peer);
	}
	sl_recount_arm(daemon);
}

int sl_dispatch_late(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_dispatch_recounted(daemon);
	daemon->up->settle(daemon);
	return 0;
}

void sl_dispatch_drained(struct sl_peer *peer)
{
	if (peer->list.active)
		sl_control_list_more(peer);
	if (!peer->doomed && !peer->first && peer->client && peer->client->view_owed)
		sl_views_catch_up(peer->client);
}

void sl_dispatch_gone(struct sl_peer *peer)
{
	sl_registry_leave(peer);
	sl_jobs_peer_gone(peer);
	sl_resources_peer_gone(peer);
	sl_history_peer_gone(peer);
	sl_recount_forget(peer);
}

/* --- ends --------------------------------------------------------------------------------- */

void sl_dispatch_process_died(struct sl_process *process)
{
	if (process->client)
		sl_client_exit(process->client, false);
	sl_list_foreach_safe (link, &process->roots) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, root_link);

		if (sl_container_follow(workload))
			continue;
		sl_jobs_supervisor_gone(process->daemon, workload);
		sl_workload_root_died(workload);
	}
	sl_jobs_process_died(process->daemon);
}

void sl_dispatch_workload_over(struct sl_daemon *daemon, struct sl_workload *workload)
{
	sl_jobs_workload_over(daemon, workload->id);
	sl_entry_over(workload);
	sl_meters_forget(workload);
}
