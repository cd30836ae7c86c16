/*
 * settle - see the header
 */
#include "daemon/loop/settle.h"

#include "daemon/clients/client.h"
#include "daemon/clients/views.h"
#include "daemon/jobs/jobs.h"
#include "daemon/link/peer.h"
#include "daemon/loop/saving.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

static void bury_peers(struct sl_daemon *daemon)
{
	struct sl_peer *peer;

	/* Telling the policy may doom further peers. */
	while ((peer = sl_peer_take_dead(daemon))) {
		if (peer->client)
			sl_client_disconnected(peer->client);
		sl_peer_free(peer);
	}
}

void sl_settle(struct sl_daemon *daemon)
{
	/* First: it may step the policy, and the results need settling as well. */
	sl_drive_open_inbox(daemon);
	sl_jobs_settle(daemon);
	sl_saving_settle(daemon);
	sl_views_settle(daemon);
	sl_meters_settle(daemon);
	bury_peers(daemon);
	sl_client_bury(daemon);
	sl_workload_bury(daemon);
	sl_process_bury(daemon);
	sl_drive_arm(daemon);
}
