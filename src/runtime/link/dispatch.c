/*
 * dispatch - see dispatch.h
 *
 * Joining (HELLO to REPORTED), and which module takes which message.
 */
#include "runtime/link/dispatch.h"
#include "runtime/contexts/prove.h"
#include "runtime/link/gating.h"
#include "runtime/process/futex.h"
#include "runtime/session/demand.h"
#include "runtime/session/pids.h"
#include "runtime/session/state.h"
#include "runtime/share/fetch.h"
#include "runtime/share/offer.h"
#include "runtime/store/store.h"
#include "runtime/swap/swap.h"

#include "base/log.h"
#include "base/step.h"

#include <limits.h>
#include <string.h>

bool sl_dispatch_greet(struct sl_line *line)
{
	union sl_msg msg;
	bool sent;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CLIENT;
	memcpy(msg.hello.token, sl_session.token, sizeof(msg.hello.token));
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	sl_session_lock();
	msg.hello.flags = sl_session.forked ? SL_HELLO_FORKED : 0;
	msg.hello.daemon_epoch = sl_session.daemon_epoch;
	sl_line_close(&sl_session.line);
	sl_session.line = *line;
	*line = (struct sl_line)SL_LINE_NONE;
	sent = sl_line_send(&sl_session.line, &msg);
	sl_session_unlock();
	sl_step(C_GREETED);
	return sent;
}

/* Reports the bytes on the host, and the files they are in. */
static void say_evicted(void)
{
	union sl_msg msg;

	sl_store_report();
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (sl_session.gpus[i].evicted_bytes == 0)
			continue;
		sl_wire_init(&msg, SL_MSG_EVICTED);
		msg.evicted.ordinal = sl_session.gpus[i].ordinal;
		msg.evicted.evicted_bytes = sl_session.gpus[i].evicted_bytes;
		sl_session_say(&msg);
		sl_step(C_EVICTED_TOLD);
	}
}

/* All GPUs are known: reports what is held, repeats waiting requests, and lets waiting threads
 * in. */
static void finish_join(void)
{
	bool again = sl_session.generation > 0;
	union sl_msg msg;

	sl_step(C_GPUS_KNOWN);
	sl_session.welcomed = true;
	sl_session.generation++;
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (!again && sl_session.gpus[i].backing_bytes == 0)
			continue;
		sl_wire_init(&msg, SL_MSG_REPORT);
		msg.report.ordinal = sl_session.gpus[i].ordinal;
		msg.report.backing_bytes = sl_session.gpus[i].backing_bytes;
		sl_session_say(&msg);
	}
	say_evicted();
	sl_session_say_held(true);
	sl_session_say_chunk();
	sl_gating_say_again();
	sl_wire_init(&msg, SL_MSG_REPORTED);
	sl_session_say(&msg);
	sl_swap_joined(true);
	if (again)
		sl_step(C_RECONNECTED);
	else
		sl_step(C_REPORTED);
	sl_demand_ask_again();
	sl_fetch_ask_again();
	sl_offer_again();
	sl_session.work_sent = 0;
	sl_session_set_state(SL_SESSION_JOINED);
	sl_info("joined as client of generation %u with %u GPUs", sl_session.generation,
		sl_session.gpu_count);
}

static int refuse(CUresult rejection)
{
	sl_session.rejection = rejection;
	/* The state first: threads that are refused ask sl_session_join for the reason. */
	sl_session_set_state(SL_SESSION_REFUSED);
	sl_demand_refuse_all();
	sl_fetch_refuse_all();
	sl_offer_refuse_all();
	/* No daemon will order memory on the host back. */
	sl_swap_joined(false);
	return SL_DISPATCH_REJECTED;
}

int sl_dispatch_distrust(const char *why)
{
	int r = SL_DISPATCH_LOST;

	sl_warning("%s", why);
	sl_session_lock();
	if (sl_session.generation == 0)
		r = refuse(CUDA_ERROR_NOT_PERMITTED);
	sl_session_unlock();
	return r;
}

static int on_reject(const struct sl_msg_reject *msg)
{
	sl_warning("the daemon says no: %.255s", msg->text);
	if (msg->reason == SL_REJECT_FULL)
		return SL_DISPATCH_LOST;
	return refuse(msg->reason == SL_REJECT_VERSION ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
						       : CUDA_ERROR_NOT_PERMITTED);
}

static int on_welcome(const struct sl_msg_welcome *msg)
{
	if (sl_session.welcomed || msg->gpu_count > SL_GPUS_MAX)
		return SL_DISPATCH_LOST;
	sl_session.gpus_expected = msg->gpu_count;
	__atomic_store_n(
		&sl_session.rdma, (msg->flags & SL_WELCOME_RDMA) != 0, __ATOMIC_RELAXED);
	sl_session.gpus_seen = 0;
	sl_step(C_WELCOMED);
	if (msg->gpu_count == 0)
		finish_join();
	sl_session.daemon_epoch = msg->daemon_epoch;
	return SL_DISPATCH_OK;
}

/* NULL: there are too many. */
static struct sl_gpu *gpu_of(const struct sl_msg_gpu *msg)
{
	struct sl_gpu *gpu = sl_session.gpus;

	for (uint32_t i = 0; i < sl_session.gpu_count; i++, gpu++)
		if (gpu->ordinal == msg->ordinal)
			return gpu;
	if (sl_session.gpu_count == SL_GPUS_MAX)
		return NULL;
	sl_session.gpu_count++;
	gpu->ordinal = msg->ordinal;
	memcpy(gpu->uuid[SL_GPU_JOINED], msg->uuid, sizeof(msg->uuid));
	return gpu;
}

static int on_gpu(const struct sl_msg_gpu *msg)
{
	struct sl_gpu *gpu = gpu_of(msg);

	if (!gpu)
		return SL_DISPATCH_LOST;
	memcpy(gpu->uuid[SL_GPU_NOW], msg->uuid, sizeof(msg->uuid));
	memcpy(gpu->uuid[SL_GPU_FIRST], msg->first_uuid, sizeof(msg->first_uuid));
	gpu->number = msg->number;
	gpu->first_number = msg->first_number;
	gpu->total_bytes = msg->total_bytes;
	gpu->limit_bytes = msg->limit_bytes;
	gpu->request_bytes = msg->request_bytes;
	gpu->others_bytes = msg->others_bytes;
	__atomic_fetch_add(&gpu->serial, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&gpu->serial, INT_MAX);
	if (!sl_session.welcomed && ++sl_session.gpus_seen == sl_session.gpus_expected)
		finish_join();
	return SL_DISPATCH_OK;
}

/* Only HELLO was sent before, so nothing is kept and this goes out at once. */
static int on_challenge(const union sl_msg *msg)
{
	union sl_msg proof;

	sl_wire_proof(&proof, msg);
	return sl_line_send(&sl_session.line, &proof) ? SL_DISPATCH_OK : SL_DISPATCH_LOST;
}

static int handle(const union sl_msg *msg, struct sl_wire_fds *fds)
{
	switch (msg->head.type) {
	case SL_MSG_CHALLENGE: return on_challenge(msg);
	case SL_MSG_REJECT: return on_reject(&msg->reject);
	case SL_MSG_WELCOME: return on_welcome(&msg->welcome);
	case SL_MSG_GPU: return on_gpu(&msg->gpu);
	case SL_MSG_GRANT: sl_demand_on_grant(&msg->grant); return SL_DISPATCH_OK;
	case SL_MSG_DENY: sl_demand_on_deny(&msg->deny); return SL_DISPATCH_OK;
	case SL_MSG_PIDS_ROWS: sl_pids_on_rows(&msg->pids_rows); return SL_DISPATCH_OK;
	case SL_MSG_IPC_OFFERED:
		sl_offer_on_offered(&msg->ipc_offered);
		return SL_DISPATCH_OK;
	case SL_MSG_IPC_OPENED:
		sl_fetch_on_opened(&msg->ipc_opened);
		return SL_DISPATCH_OK;
	case SL_MSG_IPC_TAKE:
		sl_fetch_on_take(&msg->ipc_take, fds);
		return SL_DISPATCH_OK;
	case SL_MSG_STORE:
		sl_store_on_store(&msg->store, fds);
		sl_prove_hash_all();
		return SL_DISPATCH_OK;
	case SL_MSG_TRIM: sl_store_on_trim(&msg->trim); return SL_DISPATCH_OK;
	case SL_MSG_GATE:
	case SL_MSG_PROBE:
	case SL_MSG_METER:
	case SL_MSG_EVICT:
	case SL_MSG_RESTORE:
	case SL_MSG_ABORT: return SL_DISPATCH_AGENT;
	default: return SL_DISPATCH_OK;
	}
}

int sl_dispatch_message(const union sl_msg *msg, struct sl_wire_fds *fds)
{
	int r;

	sl_debug("got %s", sl_wire_name(msg->head.type));
	sl_session_lock();
	r = handle(msg, fds);
	sl_session_unlock();
	return r;
}
