/*
 * session - greeting
 *
 * One living process is at most one client. HELLO tells which it is when a process connects again:
 *   - the same program that lost its connection (daemon_epoch set): the same client;
 *   - another program in the same process (exec; daemon_epoch 0): the old client's bytes died with
 *     its address space. So the old client exits, and a new one joins.
 * The journal is written before WELCOME leaves, so every later daemon knows a welcomed client.
 */
#include "daemon/clients/session.h"

#include "base/log.h"
#include "base/step.h"
#include "daemon/clients/client.h"
#include "daemon/clients/views.h"
#include "daemon/link/places.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

static void welcome(struct sl_peer *peer, const struct sl_client *client)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WELCOME);
	msg.welcome.daemon_epoch = peer->daemon->epoch;
	sl_wire_str(msg.welcome.version, sizeof(msg.welcome.version), SL_VERSION);
	if (client) {
		msg.welcome.client = client->id;
		msg.welcome.workload = client->workload->id;
		msg.welcome.gpu_count = client->gpu_count;
		if (client->workload->flags & SL_WORKLOAD_RDMA)
			msg.welcome.flags = SL_WELCOME_RDMA;
		sl_wire_str(msg.welcome.name, sizeof(msg.welcome.name),
			client->workload->name);
	}
	sl_peer_send(peer, &msg);
}

static int find_workload(
	struct sl_peer *peer, const struct sl_msg_hello *hello, struct sl_workload **out)
{
	int r;

	if (peer->entry) {
		*out = sl_map_get(&peer->daemon->workloads, peer->entry);
		if (*out)
			return SL_WORKLOAD_OK;
		sl_peer_reject(peer, SL_REJECT_WORKLOAD,
			"the workload of this socket is over; start the container anew");
		return SL_WORKLOAD_NONE;
	}
	r = sl_workload_find(peer->daemon, hello->token, peer->pid, peer->uid, out);

	if (r == SL_WORKLOAD_NONE)
		sl_peer_reject(peer, SL_REJECT_WORKLOAD,
			"process %d belongs to no workload; start it with `sluice run -- "
			"CMD`",
			(int)peer->pid);
	else if (r == SL_WORKLOAD_USER)
		sl_peer_reject(peer, SL_REJECT_USER,
			"process %d runs as user %u, and its workload belongs to "
			"another; start "
			"it with `sluice run` as that user",
			(int)peer->pid, (unsigned int)peer->uid);
	return r;
}

static void greet_client(struct sl_peer *peer, const struct sl_msg_hello *hello)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_workload *workload = NULL;
	struct sl_process *process = NULL;
	struct sl_client *client;
	int r;

	sl_step(D_HELLO_TAKEN);
	if (find_workload(peer, hello, &workload) != SL_WORKLOAD_OK)
		return;
	r = sl_process_get(daemon, peer->pid, &peer->pidfd, peer->start_ticks, &process);
	if (r != SL_PROCESS_OK) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced cannot watch process %d; try again", (int)peer->pid);
		return;
	}
	client = process->client;
	if (client && (hello->daemon_epoch == 0 || client->workload != workload)) {
		if (sl_peer_may_log(daemon, SL_LOG_INFO))
			sl_info("process %d runs another program now", (int)peer->pid);
		sl_client_exit(client, true);
		client = NULL;
	}
	/* That exit, or a death noticed meanwhile, may have ended the workload. */
	if (workload->over) {
		process = sl_process_put(process);
		sl_peer_reject(peer, SL_REJECT_WORKLOAD,
			"the workload of process %d is over", (int)peer->pid);
		return;
	}
	if (client) {
		process = sl_process_put(process);
		sl_client_reconnected(client, peer);
		sl_step(D_RECONNECTED);
	} else if (!peer->entry && sl_places_clients_full(daemon, peer->uid)) {
		process = sl_process_put(process);
		sl_peer_reject(peer, SL_REJECT_FULL,
			"no place for another process; end some, or raise max_clients in "
			"sluiced's configuration");
		return;
	} else {
		if (sl_list_is_empty(&workload->clients))
			daemon->up->workload_begins(daemon, workload);
		client = sl_client_new(daemon, workload, process, daemon->next_client++);
		if (!client) {
			sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
			return;
		}
		sl_client_join(client, peer);
		sl_step(D_JOINED);
	}
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	welcome(peer, client);
	sl_views_send_all(client);
}

void sl_session_greet(struct sl_peer *peer, const union sl_msg *msg)
{
	if (msg->head.type != SL_MSG_HELLO) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "%s before HELLO",
			sl_wire_name(msg->head.type));
		return;
	}
	/* A thread of the daemon has no GPU memory of its own to share. */
	if (peer->who && msg->hello.role != SL_ROLE_CONTROL) {
		sl_peer_reject(peer, SL_REJECT_DENIED, "no client is inside of sluiced");
		return;
	}
	if (peer->entry && msg->hello.role != SL_ROLE_CLIENT) {
		sl_peer_reject(peer, SL_REJECT_DENIED,
			"a workload's own socket is for its programs; the command line "
			"works outside of its container");
		return;
	}
	peer->greeted = true;
	peer->control = msg->hello.role == SL_ROLE_CONTROL;
	sl_list_unlink(&peer->link);
	sl_list_push_tail(&peer->daemon->peers->all, &peer->link);
	if (peer->control)
		welcome(peer, NULL);
	else
		greet_client(peer, &msg->hello);
}
