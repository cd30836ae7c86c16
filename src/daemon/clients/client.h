/*
 * client - one process of a workload that uses CUDA
 *
 * Translates its messages into the policy's events and the policy's answers back. Ordinals on
 * the wire are the workload's; GPU numbers are the daemon's.
 */
#ifndef SL_DAEMON_CLIENTS_CLIENT_H
#define SL_DAEMON_CLIENTS_CLIENT_H

#include "daemon/link/peer.h"
#include "daemon/state/client.h"

/* Open demands of one client; more is a broken peer. */
#define SL_CLIENT_DEMANDS_MAX 1024

/* Per second; what it asks more is answered from the last sample. */
#define SL_CLIENT_MEASURES_MAX 20

/* Makes a client of a workload; takes over one use of process. NULL without memory (the use
 * is then given back). The policy does not know it yet. */
struct sl_client *sl_client_new(struct sl_daemon *daemon, struct sl_workload *workload,
	struct sl_process *process, uint64_t id);
/* Tells the policy. peer NULL: named by the journal, expected to come back. */
void sl_client_join(struct sl_client *client, struct sl_peer *peer);
/* It lost its connection and is back. */
void sl_client_reconnected(struct sl_client *client, struct sl_peer *peer);
/* Its connection is gone; its process is not, as far as we know. Part of settling: never from
 * inside an action. */
void sl_client_disconnected(struct sl_client *client);
/* Its process is dead or (superseded) runs another program: bytes are dying from now on. */
void sl_client_exit(struct sl_client *client, bool superseded);
/* Its bytes on this GPU, or what remains of them. Forgets it when nothing remains anywhere. */
void sl_client_released(
	struct sl_client *client, uint32_t ordinal, uint64_t remaining_bytes);
/* The same because the GPU is lost: the policy knows already. */
void sl_client_gone_with_gpu(struct sl_client *client, uint32_t ordinal);
/* A message of a greeted client's peer. fds: the descriptors that came with it; those that are
 * wanted are taken out. */
void sl_client_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* GPUs, a bit per number, that a REPORT which comes now is judged by; 0: the books are enough, or
 * another REPORT of the same moment was judged. */
uint32_t sl_client_unseen(const struct sl_client *client);

/* What NVML shows of it is known, or was waited for long enough, after its report. Never inside an
 * action. */
void sl_client_measured(struct sl_client *client);

/* Actions. Unknown clients and demands are ignored. */
void sl_client_granted(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint64_t epoch, uint64_t bytes);
void sl_client_denied(struct sl_daemon *daemon, uint64_t id, uint64_t ask,
	uint32_t reason, uint64_t available_bytes);

/* It has a grant of memory that is neither committed nor failed. */
bool sl_client_has_grant(const struct sl_client *client);
void sl_client_bury(struct sl_daemon *daemon);

#endif
