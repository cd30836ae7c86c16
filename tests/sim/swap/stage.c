/*
 * stage - see the header
 */
#include "stage.h"

#include <stdarg.h>
#include <stdio.h>

#define PLAYED_MOST 4000

struct played played[PLAYED_MOST];
uint32_t played_count;
char wrong[400];

static void watch(struct swap_world *w, const struct sl_action *a)
{
	struct played l = {.at = w->now - 1 * SL_S, .type = a->type};

	switch (a->type) {
	case SL_ACTION_EVICT:
		l.client = a->evict.client;
		l.bytes = a->evict.bytes;
		break;
	case SL_ACTION_RESTORE:
		l.client = a->restore.client;
		l.bytes = a->restore.bytes;
		break;
	case SL_ACTION_DETACH:
		l.client = a->detach.client;
		l.bytes = a->detach.bytes;
		break;
	case SL_ACTION_ATTACH: l.client = a->attach.client; break;
	case SL_ACTION_RESUMED:
	case SL_ACTION_CALLS: break;
	case SL_ACTION_DENY:
		l.client = a->deny.client;
		l.bytes = a->deny.bytes;
		l.reason = a->deny.reason;
		break;
	case SL_ACTION_STOP:
		l.client = a->stop.client;
		l.bytes = a->stop.bytes;
		l.reason = a->stop.reason;
		break;
	case SL_ACTION_NOTE: l.reason = a->note.reason; break;
	case SL_ACTION_REFUSE: l.reason = a->refuse.reason; break;
	case SL_ACTION_PARKED:
	case SL_ACTION_SET_DONE: break;
	default: return;
	}
	if (played_count < PLAYED_MOST)
		played[played_count++] = l;
}

void expect(bool holds, const char *format, ...)
{
	va_list args;

	if (holds || wrong[0])
		return;
	va_start(args, format);
	(void)vsnprintf(wrong, sizeof(wrong), format, args);
	va_end(args);
}

uint32_t how_many(enum sl_action_type type, uint64_t client, uint64_t reason)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < played_count; i++)
		n += played[i].type == type && (!client || played[i].client == client) &&
		     (!reason || played[i].reason == reason);
	return n;
}

/* The first of this type at or after the nth line; NULL: none. */
const struct played *first_of(enum sl_action_type type, uint64_t client)
{
	for (uint32_t i = 0; i < played_count; i++) {
		if (played[i].type == type && (!client || played[i].client == client))
			return &played[i];
	}
	return NULL;
}

void stage(struct swap_world *w, uint32_t gpus, uint64_t pool)
{
	swap_world_init(w, 7);
	played_count = 0;
	w->watch = watch;
	w->gpus = gpus;
	for (uint32_t gpu = 0; gpu < gpus; gpu++) {
		w->capacity[gpu] = 16 * GIB; /* of which a sixteenth is kept */
		w->link_out[gpu] = w->link_in[gpu] = LINK;
	}
	w->pool = pool;
	w->config = (struct sl_event){.type = SL_EVENT_CONFIG,
		.config = {.wait_max = 20 * SL_S,
			.head_pass = SL_S,
			.idle_wait = SL_S,
			.recover_wait = 2 * SL_S,
			.pool_bytes = pool,
			.slack_bytes = 64 * SL_MIB,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
			.untakeable_after = 30 * SL_S}};
	swap_world_script(w);
	w->rules.quiet = true;
}

/* A workload of one process; returns the slot of both. */
uint32_t enter(struct swap_world *w, struct swap_workload wl)
{
	uint32_t at;

	wl.limit = UINT64_MAX;
	if (!wl.piece)
		wl.piece = 10 * SL_MS;
	at = swap_world_workload(w, wl);
	return swap_world_client(w, at);
}

uint32_t enter_idle(struct swap_world *w, uint64_t bytes)
{
	return enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.size = bytes,
				.pieces = 1,
				.pause = 1000 * SL_S});
}

struct swap_client *client(struct swap_world *w, uint32_t slot)
{
	return &w->client[slot];
}

double share(struct swap_world *w, uint32_t slot, sl_ns since_open, sl_ns span)
{
	return (double)(swap_open(w, client(w, slot)) - since_open) / (double)span;
}

/* So many seconds after the beginning. */
bool until(struct swap_world *w, double seconds)
{
	return swap_world_until(w, 1 * SL_S + (sl_ns)(seconds * 1e9));
}

struct sl_node_workload_view view(struct swap_world *w, uint32_t slot)
{
	return sl_node_workload(w->node, w->workload[client(w, slot)->workload].id);
}

void person(struct swap_world *w, enum sl_event_type type, uint32_t slot)
{
	/* The workload is the first field of each. */
	struct sl_event e = {.type = type,
		.workload_park = {.workload = w->workload[client(w, slot)->workload].id}};

	swap_step(w, e);
}
