/*
 * workload - registered by `sluice run`, and the processes that belong to it
 *
 * A workload lives until its root process and all its clients are dead; one that is claimed
 * (entry.h) until its end is told, besides. The container of a `sluice run` goes on as its root
 * (container.h). A process belongs to it by that socket, by its token, or by having
 * its root or one of its clients as an ancestor.
 */
#ifndef SL_DAEMON_WORKLOADS_WORKLOAD_H
#define SL_DAEMON_WORKLOADS_WORKLOAD_H

#include "daemon/state/daemon.h"
#include "daemon/state/workload.h"

enum {
	SL_WORKLOAD_OK = 0,
	SL_WORKLOAD_NONE, /* in no workload */
	SL_WORKLOAD_USER, /* of another user */
	SL_WORKLOAD_MANY, /* several have this name */
};

/* A workload in the lists, without GPUs and root, unknown to the policy. NULL: no memory. */
struct sl_workload *sl_workload_new(struct sl_daemon *daemon, uint64_t id);
/* Sets its GPUs from the policy's mask, in the order of CUDA ordinals. */
void sl_workload_bind(
	struct sl_daemon *daemon, struct sl_workload *workload, uint32_t gpu_mask);
/* The numbers of its GPUs, as a mask. */
uint32_t sl_workload_gpus(const struct sl_workload *workload);
/* Takes over one use of process. */
void sl_workload_set_root(struct sl_workload *workload, struct sl_process *process);
/* Call when its root is dead. */
void sl_workload_root_died(struct sl_workload *workload);
/* Ends the workload if all its processes are dead: tells the policy, unlinks. */
void sl_workload_check_end(struct sl_daemon *daemon, struct sl_workload *workload);
/* Unlinks a workload that the policy refused. */
void sl_workload_discard(struct sl_daemon *daemon, struct sl_workload *workload);
/* Likewise, for one that the policy admitted but that will not start after all. */
void sl_workload_dismiss(struct sl_daemon *daemon, struct sl_workload *workload);
/* The policy's event for the workload, on gpu_count of the GPUs in gpu_mask. The caller adds bounds
 * and history. */
/* Thousandths of the GPU's time that workloads there but this one have requested. Parked ones have
 * given theirs up. */
uint32_t sl_workload_compute_pm(
	const struct sl_daemon *daemon, uint32_t gpu, const struct sl_workload *but);
/* The GPUs, a bit each, where these leave less than request_pm. */
uint32_t sl_workload_compute_full(
	const struct sl_workload *workload, uint32_t request_pm);
/* Is memory or time guaranteed to it, for which it counts in its project? */
static inline bool sl_workload_has_request(const struct sl_workload *workload)
{
	return workload->request_bytes || workload->compute.request_pm;
}
struct sl_event sl_workload_event(
	const struct sl_workload *workload, uint32_t gpu_count, uint32_t gpu_mask);
/* Does the policy admit it? daemon->admission has the details, or the reason why not. */
bool sl_workload_propose(struct sl_daemon *daemon, const struct sl_event *event);
/* Finds the workload of a process. */
SL_MUST_CHECK int sl_workload_find(struct sl_daemon *daemon,
	const uint8_t token[SL_WIRE_TOKEN_BYTES], pid_t pid, uid_t uid,
	struct sl_workload **out);
/* A living workload of this user with this name, or NULL. */
struct sl_workload *sl_workload_named(
	struct sl_daemon *daemon, uid_t uid, const char *name);
/*
 * Finds the living workload with number id or, if id is 0, with that name: the caller's own first,
 * then another user's, then the workload whose number the name is. OK, NONE, MANY; unless OK, err
 * has the remedy.
 */
SL_MUST_CHECK int sl_workload_pick(struct sl_daemon *daemon, uid_t uid, uint64_t id,
	const char *name, struct sl_workload **out, struct sl_error *err);
/* Ordinal of a GPU number in the workload, or -1. */
int sl_workload_ordinal(const struct sl_workload *workload, uint32_t gpu);
/* The number of its processes that a signal would reach. */
uint32_t sl_workload_processes(const struct sl_workload *workload);
/* Notes for the journal that it is being stopped: a later daemon goes on. Sends no signal. */
void sl_workload_note_stop(
	struct sl_daemon *daemon, struct sl_workload *workload, sl_ns grace);
/* SIGTERM to all its processes now, SIGKILL after grace. Returns how many processes there are. */
uint32_t sl_workload_stop(
	struct sl_daemon *daemon, struct sl_workload *workload, sl_ns grace);
/* SL_WORKLOAD_* for SL_RUN_*. */
uint32_t sl_workload_flags(const struct sl_daemon *daemon, uint32_t run_flags);
/* The value of CUDA_VISIBLE_DEVICES for its programs; 128 bytes suffice. */
void sl_workload_visible(const struct sl_daemon *daemon,
	const struct sl_workload *workload, char *buf, size_t size);
void sl_workload_bury(struct sl_daemon *daemon);

#endif
