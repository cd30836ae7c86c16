/*
 * client - one process of a workload that uses CUDA
 *
 * Translates a client's messages into the policy's events, and the policy's answers back. Ordinals
 * on the wire are the workload's; GPU numbers are the daemon's.
 */
#ifndef SL_DAEMON_CLIENTS_CLIENT_H
#define SL_DAEMON_CLIENTS_CLIENT_H

#include "daemon/link/peer.h"
#include "daemon/state/client.h"

/* Most open demands of one client; a peer with more is broken. */
#define SL_CLIENT_DEMANDS_MAX 1024

/* MEASUREs of one client per second; more are answered from the last sample. */
#define SL_CLIENT_MEASURES_MAX 20

/* Makes a client of a workload. Consumes one reference to process, even if it returns NULL (no
 * memory). The policy does not know the client yet. */
struct sl_client *sl_client_new(struct sl_daemon *daemon, struct sl_workload *workload,
	struct sl_process *process, uint64_t id);
/* Tells the policy. peer NULL: the client is from the journal, and expected to come back. */
void sl_client_join(struct sl_client *client, struct sl_peer *peer);
/* The client lost its connection and is back. */
void sl_client_reconnected(struct sl_client *client, struct sl_peer *peer);
/* The client's connection is gone; its process may live. Part of settling: never inside an
 * action. */
void sl_client_disconnected(struct sl_client *client);
/* The client's process is dead, or (superseded) runs another program: its bytes are dying now. */
void sl_client_exit(struct sl_client *client, bool superseded);
/* Notes how many bytes a dying client still has on this GPU, and forgets the client once it has
 * none on any GPU. True: they became fewer, and the caller must pass *event to the policy. */
bool sl_client_released(struct sl_client *client, uint32_t ordinal,
	uint64_t remaining_bytes, struct sl_event *event);
/* The same because the GPU is lost: the policy knows already. */
void sl_client_gone_with_gpu(struct sl_client *client, uint32_t ordinal);
/* A message of a greeted client's peer. Takes the descriptors that it keeps out of fds. */
void sl_client_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* GPUs to measure before this client's REPORT is judged, one bit per GPU number. 0: the books are
 * enough, or another REPORT of the same connection has been judged already. */
uint32_t sl_client_unseen(const struct sl_client *client);

/* After its report the client was measured by NVML, or waited long enough for that. Never inside an
 * action. */
void sl_client_measured(struct sl_client *client);

/* Actions. Unknown clients and demands are ignored. */
void sl_client_granted(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint64_t epoch, uint64_t bytes);
void sl_client_denied(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint32_t reason, uint64_t available_bytes);

/* Does the client have a grant that is neither committed nor failed? */
bool sl_client_has_grant(const struct sl_client *client);
void sl_client_bury(struct sl_daemon *daemon);

#endif
