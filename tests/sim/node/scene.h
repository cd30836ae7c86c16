/*
 * scene - a short exact play: events in, and word for word what must come out
 *
 * Each row is an event at a time and the actions it must cause, in order, written compactly
 * and joined by "; " ("" for none):
 *   `ADMIT w m1 r20 l50`: workload, mask (hex), request, limit
 *   `REFUSE w REASON wanted available`
 *   `GRANT c/ask g0 60 e1`: client/ask, GPU, bytes, epoch
 *   `DENY c/ask REASON available`
 *   `VIEW w g0`
 *   `NOTE REASON g0 w/other bytes`
 *   `SET w r20 l50 p0 over0`: SET_DONE
 *   `STOP c/w TERM REASON`: client 0 means all of the workload
 *   `STOP c TERM REASON g0 for w`: for the demand of workload w
 *   `STRANGER s TERM g0 bytes`: STOP_STRANGER
 *   `PROBE c WATCH`, or OFF, PROVE
 * WAKE_AT is left out. Bytes are small plain numbers where only their relations matter.
 */
#ifndef SL_SIM_SCENE_H
#define SL_SIM_SCENE_H

#include "policy/node.h"

struct scene_row {
	uint64_t at_ms;
	struct sl_event event;
	const char *expected;
};

struct scene {
	const char *name;
	const struct scene_row *rows;
	size_t count;
};

/* Plays it on a fresh node, which is checked after every row. False after the first
 * difference, which is printed with both texts. */
bool scene_play(const struct scene *scene, bool quiet);

/* --- the events, by their fields in the order that reads best --- */
#define CONFIG(wait, pass, idle, recover)            \
	{                                            \
		.type = SL_EVENT_CONFIG, .config = { \
			(wait)*SL_MS,                \
			(pass)*SL_MS,                \
			(idle)*SL_MS,                \
			(recover)*SL_MS,             \
			0,                           \
			0                            \
		}                                    \
	}
#define POOL(pool, slack)                                               \
	{                                                               \
		.type = SL_EVENT_CONFIG, .config = {                    \
			60 * SL_S,                                      \
			SL_S,                                           \
			SL_S,                                           \
			2 * SL_S,                                       \
			pool,                                           \
			slack,                                          \
			SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0) \
		}                                                       \
	}
#define GPU(gpu_, capacity, reserve)                                             \
	{                                                                        \
		.type = SL_EVENT_GPU_ADD, .gpu_add = { gpu_, capacity, reserve } \
	}
#define NONE                          \
	{                             \
		SL_AMOUNT_UNSET, 0, 0 \
	}
#define BYTES(n)                      \
	{                             \
		SL_AMOUNT_BYTES, 0, n \
	}
#define PCT(n)                                   \
	{                                        \
		SL_AMOUNT_FRACTION, 0, (n)*10000 \
	}
#define WORKLOAD(id, request_, limit_, gpus, mask, priority_)    \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_ADD, .workload_add = { \
			id,                                      \
			request_,                                \
			limit_,                                  \
			gpus,                                    \
			mask,                                    \
			priority_,                               \
			0                                        \
		}                                                \
	}
#define FIRST_CALL(id, mask)                                                      \
	{                                                                         \
		.type = SL_EVENT_WORKLOAD_BEGINS, .workload_begins = { id, mask } \
	}
#define RECOVERED(id, request_, limit_, mask)                    \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_ADD, .workload_add = { \
			id,                                      \
			request_,                                \
			limit_,                                  \
			1,                                       \
			mask,                                    \
			0,                                       \
			1                                        \
		}                                                \
	}
#define REMOVE(id)                                                          \
	{                                                                   \
		.type = SL_EVENT_WORKLOAD_REMOVE, .workload_remove = { id } \
	}
#define JOIN(c, w)                                                       \
	{                                                                \
		.type = SL_EVENT_CLIENT_JOIN, .client_join = { c, w, 0 } \
	}
/* Its library moves memory. */
#define SWAPPER(c, w)                                                       \
	{                                                                   \
		.type = SL_EVENT_CLIENT_JOIN, .client_join = { c, w, 0, 1 } \
	}
#define EXPECT(c, w)                                                     \
	{                                                                \
		.type = SL_EVENT_CLIENT_JOIN, .client_join = { c, w, 1 } \
	}
#define REPORT(c, g, n)                                                      \
	{                                                                    \
		.type = SL_EVENT_CLIENT_REPORT, .client_report = { c, g, n } \
	}
#define REPORTED(c)                                                        \
	{                                                                  \
		.type = SL_EVENT_CLIENT_REPORTED, .client_reported = { c } \
	}
#define EXIT(c)                                                    \
	{                                                          \
		.type = SL_EVENT_CLIENT_EXIT, .client_exit = { c } \
	}
#define RELEASED(c, g, n)                                          \
	{                                                          \
		.type = SL_EVENT_RELEASED, .released = { c, g, n } \
	}
#define ASK(c, a, g, n)                                     \
	{                                                   \
		.type = SL_EVENT_ASK, .ask = { c, a, g, n } \
	}
#define CANCEL(c, a)                                        \
	{                                                   \
		.type = SL_EVENT_CANCEL, .cancel = { c, a } \
	}
#define COMMIT(c, e, n)                                        \
	{                                                      \
		.type = SL_EVENT_COMMIT, .commit = { c, e, n } \
	}
#define CREATE_FAILED(c, e)                                               \
	{                                                                 \
		.type = SL_EVENT_CREATE_FAILED, .create_failed = { c, e } \
	}
#define FREED(c, g, n)                                       \
	{                                                    \
		.type = SL_EVENT_FREED, .freed = { c, g, n } \
	}
#define WORK(c)                                      \
	{                                            \
		.type = SL_EVENT_WORK, .work = { c } \
	}
#define HIDDEN(c, g, n)                                        \
	{                                                      \
		.type = SL_EVENT_HIDDEN, .hidden = { c, g, n } \
	}
#define UNMANAGED(g, n)                                           \
	{                                                         \
		.type = SL_EVENT_UNMANAGED, .unmanaged = { g, n } \
	}
#define SETTINGS(...)                                \
	{                                            \
		.type = SL_EVENT_CONFIG, .config = { \
			.wait_max = 60 * SL_S,       \
			.head_pass = SL_S,           \
			.idle_wait = SL_S,           \
			.recover_wait = 2 * SL_S,    \
			__VA_ARGS__                  \
		}                                    \
	}
#define WORKLOAD_WITH(id, ...)                                   \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_ADD, .workload_add = { \
			.workload = id,                          \
			.gpu_count = 1,                          \
			__VA_ARGS__                              \
		}                                                \
	}
#define SET(id, which_, ...)                                     \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_SET, .workload_set = { \
			.workload = id,                          \
			.which = which_,                         \
			__VA_ARGS__                              \
		}                                                \
	}
/* Of a user with bounds; it may have all of the GPU. */
#define BOUNDED(id, owned_, ...)                                 \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_ADD, .workload_add = { \
			.workload = id,                          \
			.gpu_mask = 1,                           \
			.owned = owned_,                         \
			.bounds = {__VA_ARGS__}                  \
		}                                                \
	}
#define FLAGGED(id, request_, limit_, priority_, flags_)         \
	{                                                        \
		.type = SL_EVENT_WORKLOAD_ADD, .workload_add = { \
			.workload = id,                          \
			.request = request_,                     \
			.limit = limit_,                         \
			.gpu_mask = 1,                           \
			.priority = priority_,                   \
			.flags = flags_                          \
		}                                                \
	}
#define STOP_WORKLOAD(id, ms)                                                       \
	{                                                                           \
		.type = SL_EVENT_WORKLOAD_STOP, .workload_stop = { id, (ms)*SL_MS } \
	}
#define LOST(gpu_)                                                  \
	{                                                           \
		.type = SL_EVENT_GPU_LOST, .gpu_lost = { gpu_, 79 } \
	}
#define STRANGER(id, gpu_, n)                                          \
	{                                                              \
		.type = SL_EVENT_STRANGER, .stranger = { id, gpu_, n } \
	}
#define PULSE(c, idle_, busy_, proven_)            \
	{                                          \
		.type = SL_EVENT_PULSE, .pulse = { \
			c,                         \
			(idle_)*SL_MS,             \
			(busy_)*SL_MS,             \
			proven_                    \
		}                                  \
	}
#define CONDITION(c, condition_)                                           \
	{                                                                  \
		.type = SL_EVENT_CONDITION, .condition = { c, condition_ } \
	}
#define STOP_FAILED(c)                                             \
	{                                                          \
		.type = SL_EVENT_STOP_FAILED, .stop_failed = { c } \
	}
#define TIME                          \
	{                             \
		.type = SL_EVENT_TIME \
	}

#endif
