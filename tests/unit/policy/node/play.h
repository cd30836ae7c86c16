/*
 * play - the node driven by hand: one event, and its actions as one line of text
 *
 * The node's own check runs after every event. Actions are joined by "; ", in order:
 *   `ADMIT w m1 r20 l50`: workload, mask (hex), request, limit
 *   `REFUSE w REASON g0 wanted available`
 *   `SET w r20 l50 p0 over0`: SET_DONE
 *   `GRANT c/ask g0 60`: client/ask, GPU, bytes
 *   `DENY c/ask REASON g0`
 *   `VIEW w g0`
 *   `STOP c w TERM REASON`: client 0 means all of the workload
 *   `STRANGER s TERM g0 60`: STOP_STRANGER
 *   `PROBE c 1`
 *   `NOTE REASON g0 w/other 60`: workload/other, bytes
 *   `PARKED w 60`; `RESUMED w 60`: bytes, request
 *   `DETACH c 60`; `ATTACH c`: bytes
 *   `DETACHES w`; `CALLS w`
 *   `MOVES w g0 g1`: from, to
 *   `LEFT w c 60`: only with shows_left
 *   `WAKE 1000`: WAKE_AT in ms, or "never"; only with shows_wakes
 */
#ifndef SL_TESTS_PLAY_H
#define SL_TESTS_PLAY_H

#include <stdio.h>

#include "../../base/test.h"

#include "policy/node.h"

/* Long after the clock began: a process can have been idle before its play. */
#define PLAY_BEGINS (1000000 * SL_S)

struct play {
	struct sl_arena *arena;
	struct sl_node *node;
	bool shows_wakes, shows_left;
	size_t used;
	char text[4096];
	struct sl_action last[SL_ACTIONS]; /* for what the text leaves out */
};

static inline void play_say(struct play *p, const struct sl_action *a)
{
	static const char *const stages[] = {"TERM", "KILL"};
	size_t room = sizeof(p->text) - p->used;
	char *to = p->text + p->used;
	int n = 0;

#define SAY(format, ...) \
	n = snprintf(to, room, "%s" format, p->used ? "; " : "", __VA_ARGS__)
#define U(value) ((unsigned long long)(value))
	switch (a->type) {
	case SL_ACTION_ADMIT:
		SAY("ADMIT %llu m%x r%llu l%llu", U(a->admit.workload), a->admit.gpu_mask,
			U(a->admit.request_bytes), U(a->admit.limit_bytes));
		break;
	case SL_ACTION_REFUSE:
		SAY("REFUSE %llu %s g%u %llu %llu", U(a->refuse.workload),
			sl_reason_name(a->refuse.reason), a->refuse.gpu,
			U(a->refuse.wanted_bytes), U(a->refuse.available_bytes));
		break;
	case SL_ACTION_SET_DONE:
		SAY("SET %llu r%llu l%llu p%d over%llu", U(a->set_done.workload),
			U(a->set_done.request_bytes), U(a->set_done.limit_bytes),
			(int)a->set_done.priority, U(a->set_done.over_bytes));
		break;
	case SL_ACTION_EVICT:
		SAY("EVICT %llu g%u %llu %s", U(a->evict.client), a->evict.gpu,
			U(a->evict.bytes), sl_reason_name(a->evict.reason));
		break;
	case SL_ACTION_RESTORE:
		SAY("RESTORE %llu g%u %llu", U(a->restore.client), a->restore.gpu,
			U(a->restore.bytes));
		break;
	case SL_ACTION_DETACH:
		SAY("DETACH %llu %llu", U(a->detach.client), U(a->detach.bytes));
		break;
	case SL_ACTION_DETACHES: SAY("DETACHES %llu", U(a->detaches.workload)); break;
	case SL_ACTION_CALLS: SAY("CALLS %llu", U(a->calls.workload)); break;
	case SL_ACTION_MOVES:
		SAY("MOVES %llu g%u g%u", U(a->moves.workload), a->moves.from,
			a->moves.to);
		break;
	case SL_ACTION_ATTACH: SAY("ATTACH %llu", U(a->attach.client)); break;
	case SL_ACTION_ABORT: SAY("ABORT %llu", U(a->abort.client)); break;
	case SL_ACTION_TRIM:
		SAY("TRIM %llu %llu", U(a->trim.client), U(a->trim.bytes));
		break;
	case SL_ACTION_GRANT:
		SAY("GRANT %llu/%llu g%u %llu", U(a->grant.client), U(a->grant.ask),
			a->grant.gpu, U(a->grant.bytes));
		break;
	case SL_ACTION_DENY:
		SAY("DENY %llu/%llu %s g%u", U(a->deny.client), U(a->deny.ask),
			sl_reason_name(a->deny.reason), a->deny.gpu);
		break;
	case SL_ACTION_VIEW:
		SAY("VIEW %llu g%u", U(a->view.workload), a->view.gpu);
		break;
	case SL_ACTION_STOP:
		SAY("STOP %llu %llu %s %s", U(a->stop.client), U(a->stop.workload),
			stages[a->stop.stage], sl_reason_name(a->stop.reason));
		break;
	case SL_ACTION_STOP_STRANGER:
		SAY("STRANGER %llu %s g%u %llu", U(a->stop_stranger.stranger),
			stages[a->stop_stranger.stage], a->stop_stranger.gpu,
			U(a->stop_stranger.bytes));
		break;
	case SL_ACTION_PROBE:
		SAY("PROBE %llu %u", U(a->probe.client), a->probe.mode);
		break;
	case SL_ACTION_NOTE:
		SAY("NOTE %s g%u %llu/%llu %llu", sl_reason_name(a->note.reason),
			a->note.gpu, U(a->note.workload), U(a->note.other),
			U(a->note.bytes));
		break;
	case SL_ACTION_PARKED:
		SAY("PARKED %llu %llu", U(a->parked.workload), U(a->parked.bytes));
		break;
	case SL_ACTION_RESUMED:
		SAY("RESUMED %llu %llu", U(a->resumed.workload),
			U(a->resumed.request_bytes));
		break;
	case SL_ACTION_LEFT:
		if (p->shows_left)
			SAY("LEFT %llu %llu %llu", U(a->left.workload), U(a->left.client),
				U(a->left.bytes));
		break;
	case SL_ACTION_WAKE_AT:
		if (!p->shows_wakes)
			break;
		if (a->wake_at.at == SL_NS_NEVER)
			SAY("%s", "WAKE never");
		else
			SAY("WAKE %llu", U((a->wake_at.at - PLAY_BEGINS) / SL_MS));
		break;
	case SL_ACTIONS: break;
	}
#undef U
#undef SAY
	p->used += (size_t)n < room ? (size_t)n : room - 1;
}

static inline void play_on_action(void *context, const struct sl_action *action)
{
	struct play *p = context;

	p->last[action->type] = *action;
	play_say(p, action);
}

static inline void play_open(struct play *p)
{
	memset(p, 0, sizeof(*p));
	p->arena = sl_arena_new();
	p->node = sl_node_new(p->arena);
}

static inline void play_close(struct play *p)
{
	sl_arena_free(p->arena);
}

/* The actions, good until the next event. */
static inline const char *play(
	struct play *p, const char *row, uint64_t at_ms, struct sl_event event)
{
	struct sl_error err = {0};

	p->used = 0;
	p->text[0] = '\0';
	sl_node_step(p->node, PLAY_BEGINS + at_ms * SL_MS, &event, play_on_action, p);
	if (sl_node_check(p->node, &err))
		fail_msg("row '%s': after '%s': %s", row, p->text, err.text);
	return p->text;
}

struct play_row {
	const char *name;
	uint64_t at_ms;
	struct sl_event event;
	const char *expected;
};

static inline void play_rows(struct play *p, const struct play_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Once: the macro looks at it twice. */
		const char *got = play(p, rows[i].name, rows[i].at_ms, rows[i].event);

		assert_row_text(rows[i].name, got, rows[i].expected);
	}
}

/* A whole story on a fresh node. */
#define PLAY(rows)                                          \
	do {                                                \
		struct play p_;                             \
                                                            \
		play_open(&p_);                             \
		play_rows(&p_, (rows), SL_ARRAY_LEN(rows)); \
		play_close(&p_);                            \
	} while (0)

#define EVENT(NAME, kind, ...)                               \
	{                                                    \
		.type = SL_EVENT_##NAME, .kind = __VA_ARGS__ \
	}
#define ANY                           \
	{                             \
		SL_AMOUNT_UNSET, 0, 0 \
	}
#define BYTES(n)                        \
	{                               \
		SL_AMOUNT_BYTES, 0, (n) \
	}
#define PART(millionths)                            \
	{                                           \
		SL_AMOUNT_FRACTION, 0, (millionths) \
	}

/* --- the events, in the order that reads best --- */
/* The defaults, and what else is named: SETTINGS(.placement = SL_PLACEMENT_PACK). */
#define SETTINGS(...)                             \
	EVENT(CONFIG, config,                     \
		{.wait_max = 60 * SL_S,           \
			.head_pass = SL_S,        \
			.idle_wait = SL_S,        \
			.recover_wait = 2 * SL_S, \
			.stop_grace = 10 * SL_S,  \
			__VA_ARGS__})
#define GPU(gpu, bytes)   EVENT(GPU_ADD, gpu_add, {gpu, bytes, 0})
#define LOST(gpu)         EVENT(GPU_LOST, gpu_lost, {gpu, 79})
#define REMOVE(w)         EVENT(WORKLOAD_REMOVE, workload_remove, {w})
#define JOIN(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0})
#define EXIT(c)           EVENT(CLIENT_EXIT, client_exit, {c})
#define RELEASED(c, g, n) EVENT(RELEASED, released, {c, g, n})
#define REPORT(c, g, n)   EVENT(CLIENT_REPORT, client_report, {c, g, n})
#define ASK(c, a, g, n)   EVENT(ASK, ask, {c, a, g, n})
#define COMMIT(c, e, n)   EVENT(COMMIT, commit, {c, e, n})
#define FAILED(c, e)      EVENT(CREATE_FAILED, create_failed, {c, e})
#define FREED(c, g, n)    EVENT(FREED, freed, {c, g, n})
#define HIDDEN(c, g, n)   EVENT(HIDDEN, hidden, {c, g, n})
#define TIME              EVENT(TIME, time, {0})
#define UNMANAGED(g, n)   EVENT(UNMANAGED, unmanaged, {g, n})

/* From the beginning the client has as much as that on GPU 0. */
static inline void play_has(struct play *p, uint64_t client, uint64_t ask, uint64_t bytes)
{
	assert_non_null(strstr(
		play(p, "has", 0, (struct sl_event)ASK(client, ask, 0, bytes)), "GRANT"));
	(void)play(p, "has", 0,
		(struct sl_event)COMMIT(
			client, p->last[SL_ACTION_GRANT].grant.epoch, bytes));
}

#endif
