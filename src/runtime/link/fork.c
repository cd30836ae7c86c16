/*
 * fork - see fork.h
 *
 * The handler runs in the child's only thread. Other threads of the parent may have held our locks
 * at the fork, so locks are made anew instead of unlocked. The data they guarded is discarded as a
 * whole, in whatever state it was. Nothing is freed: the C library handles the heap's own lock, and
 * the parent's pages are shared copy-on-write anyway.
 */
#include "runtime/link/fork.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/prove.h"
#include "runtime/driver/graph.h"
#include "runtime/driver/handle.h"
#include "runtime/driver/objects.h"
#include "runtime/driver/passed.h"
#include "runtime/driver/pool.h"
#include "runtime/driver/range.h"
#include "runtime/gate/control.h"
#include "runtime/gate/gate.h"
#include "runtime/gate/residency.h"
#include "runtime/hash/hash.h"
#include "runtime/link/agent.h"
#include "runtime/link/errands.h"
#include "runtime/link/gating.h"
#include "runtime/link/metering.h"
#include "runtime/link/pulse.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/peer.h"
#include "runtime/memory/sweep.h"
#include "runtime/session/device.h"
#include "runtime/session/held.h"
#include "runtime/session/measure.h"
#include "runtime/session/pids.h"
#include "runtime/session/state.h"
#include "runtime/session/visible.h"
#include "runtime/share/fetch.h"
#include "runtime/share/import.h"
#include "runtime/share/multicast.h"
#include "runtime/share/offer.h"
#include "runtime/store/store.h"
#include "runtime/swap/swap.h"

#include <errno.h>
#include <pthread.h>

static int watched;

static void in_child(void)
{
	int saved_errno = errno;

	sl_gate_forget();
	sl_control_forget();
	sl_session_forget();
	sl_visible_forget();
	sl_agent_forget();
	sl_gating_forget();
	sl_metering_forget();
	sl_capture_forget();
	sl_errands_forget();
	sl_measure_forget();
	sl_held_forget();
	sl_passed_forget();
	sl_pool_forget();
	sl_graph_forget();
	sl_pids_forget();
	sl_objects_forget();
	sl_offer_forget();
	sl_fetch_forget();
	sl_import_forget();
	sl_handle_forget();
	sl_range_forget();
	sl_multicast_forget();
	sl_peer_forget();
	sl_memory_forget();
	sl_device_forget();
	sl_sweep_forget();
	sl_prove_forget();
	sl_pulse_forget();
	sl_residency_forget();
	sl_swap_forget();
	sl_store_forget();
	sl_hasher_forget();
	errno = saved_errno;
}

void sl_fork_watch(void)
{
	if (!__atomic_exchange_n(&watched, 1, __ATOMIC_ACQ_REL))
		(void)pthread_atfork(NULL, NULL, in_child);
}
