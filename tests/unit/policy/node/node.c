#include "../../base/test.h"

#include "policy/node.h"

/* Decisions are played in tests/sim/node/scenes.c; here are views, names, and steadiness. */

struct log {
	uint32_t count[SL_ACTIONS];
	struct sl_action last[SL_ACTIONS];
};

static void on_action(void *context, const struct sl_action *action)
{
	struct log *log = context;

	log->count[action->type]++;
	log->last[action->type] = *action;
}

static void step(struct sl_node *node, sl_ns now, struct sl_event event, struct log *log)
{
	struct sl_error err = {0};

	sl_node_step(node, now, &event, on_action, log);
	if (sl_node_check(node, &err))
		fail_msg("%s", err.text);
}

#define EVENT(NAME, kind, ...)                               \
	(struct sl_event)                                    \
	{                                                    \
		.type = SL_EVENT_##NAME, .kind = __VA_ARGS__ \
	}

static struct sl_node *begin(struct sl_arena *arena, struct log *log)
{
	struct sl_node *node = sl_node_new(arena);
	struct sl_amount request = {SL_AMOUNT_BYTES, 0, 40},
			 limit = {SL_AMOUNT_BYTES, 0, 90};

	memset(log, 0, sizeof(*log));
	step(node, 0, EVENT(GPU_ADD, gpu_add, {2, 110, 10}), log);
	step(node, 0, EVENT(WORKLOAD_ADD, workload_add, {7, request, limit, 1, 4, 3, 0}),
		log);
	step(node, 0, EVENT(CLIENT_JOIN, client_join, {70, 7, 0}), log);
	step(node, 0, EVENT(CLIENT_JOIN, client_join, {71, 7, 0}), log);
	return node;
}

static void shows_what_is(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);
	struct sl_node_gpu_view gpu;
	struct sl_node_workload_view workload;
	struct sl_node_use_view use;

	step(node, 0, EVENT(ASK, ask, {70, 1, 2, 30}), &log);
	step(node, 0, EVENT(COMMIT, commit, {70, 1, 30}), &log);
	step(node, 0, EVENT(ASK, ask, {70, 2, 2, 20}), &log);
	step(node, 0, EVENT(HIDDEN, hidden, {71, 2, 14}), &log);
	step(node, 0, EVENT(UNMANAGED, unmanaged, {2, 20}), &log);
	step(node, 0, EVENT(ASK, ask, {71, 1, 2, 35}), &log); /* waits: 26 are free */

	gpu = sl_node_gpu(node, 2);
	assert_true(gpu.present);
	assert_false(gpu.degraded);
	assert_row_u64("capacity", gpu.capacity_bytes, 110);
	assert_row_u64("reserve", gpu.reserve_bytes, 10);
	assert_row_u64("unmanaged", gpu.unmanaged_bytes, 20);
	assert_row_u64("shareable", gpu.shareable_bytes, 80);
	assert_row_u64("requests", gpu.requests_bytes, 40);
	assert_row_u64("backing", gpu.backing_bytes, 30);
	assert_row_u64("granted", gpu.granted_bytes, 20);
	assert_row_u64("hidden", gpu.hidden_bytes, 4);
	assert_row_u64("paid", gpu.paid_bytes, 10);
	assert_row_u64("free", gpu.free_bytes, 26);
	assert_row_u64("workloads", gpu.workloads, 1);
	assert_row_u64("waiting", gpu.waiting, 1);

	workload = sl_node_workload(node, 7);
	assert_true(workload.known);
	assert_row_u64("mask", workload.gpu_mask, 4);
	assert_row_u64("clients", workload.clients, 2);
	assert_row_u64("priority", (uint64_t)workload.priority, 3);
	assert_row_u64("request", workload.request_bytes, 40);
	assert_row_u64("limit", workload.limit_bytes, 90);

	use = sl_node_use(node, 7, 2);
	assert_row_u64("use: backing", use.backing_bytes, 30);
	assert_row_u64("use: granted", use.granted_bytes, 20);
	assert_row_u64("use: hidden", use.hidden_bytes, 4);
	assert_row_u64("use: paid", use.paid_bytes, 10);
	assert_row_u64("use: waiting", use.waiting_bytes, 35);
	use = sl_node_client_use(node, 71, 2);
	assert_row_u64("client: backing", use.backing_bytes, 0);
	assert_row_u64("client: hidden", use.hidden_bytes, 4);
	assert_row_u64("client: waiting", use.waiting, 1);

	step(node, 0, EVENT(CLIENT_EXIT, client_exit, {70}), &log);
	assert_row_u64("dying", sl_node_gpu(node, 2).dying_bytes, 50);
	assert_row_u64("dying of the workload", sl_node_use(node, 7, 2).dying_bytes, 50);
	assert_row_u64("clients left", sl_node_workload(node, 7).clients, 1);
	sl_arena_free(arena);
}

static void shows_nothing_of_what_is_not(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);

	assert_false(sl_node_gpu(node, 0).present);
	assert_false(sl_node_gpu(node, 4000000000u).present);
	assert_false(sl_node_workload(node, 8).known);
	assert_row_u64("use", sl_node_use(node, 8, 2).backing_bytes, 0);
	assert_row_u64("use", sl_node_use(node, 7, 99).backing_bytes, 0);
	assert_row_u64("client", sl_node_client_use(node, 8, 2).backing_bytes, 0);
	step(node, 0, EVENT(WORKLOAD_REMOVE, workload_remove, {7}), &log);
	assert_false(sl_node_workload(node, 7).known);
	sl_arena_free(arena);
}

static void names(void **state)
{
	static const char *const texts[] = {
#define SL_REASON(NAME, kind, text)       #NAME,
#define SL_NOTE(NAME, level, about, text) #NAME,
#include "policy/words/reason.def"
#undef SL_REASON
#undef SL_NOTE
	};

	assert_row_text("reason", sl_reason_name(SL_REASON_OVER_LIMIT), "OVER_LIMIT");
	assert_row_text("reason", sl_reason_name(SL_REASONS), "?");
	assert_row_text("reason", sl_reason_text(SL_REASONS), "?");
	assert_row_text("event", sl_event_name(SL_EVENT_CREATE_FAILED), "CREATE_FAILED");
	assert_row_text("event", sl_event_name(SL_EVENTS), "?");
	assert_row_text("action", sl_action_name(SL_ACTION_WAKE_AT), "WAKE_AT");
	assert_row_text("action", sl_action_name(SL_ACTIONS), "?");
	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		for (size_t k = i + 1; k < SL_ARRAY_LEN(texts); k++) {
			if (strcmp(texts[i], texts[k]) == 0)
				fail_msg("reason %s is there twice", texts[i]);
		}
	}
}

/* Work that comes and goes takes no new memory; time that goes back is not believed. */
static void is_steady(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);
	size_t used = 0;

	for (uint64_t i = 1; i <= 20000; i++) {
		step(node, i, EVENT(CLIENT_JOIN, client_join, {100 + i, 7, 0}), &log);
		step(node, i, EVENT(ASK, ask, {100 + i, i, 2, 60}), &log);
		step(node, i, EVENT(ASK, ask, {71, i, 2, 60}), &log);
		step(node, i, EVENT(CANCEL, cancel, {71, i}), &log);
		step(node, i, EVENT(CLIENT_EXIT, client_exit, {100 + i}), &log);
		step(node, i, EVENT(RELEASED, released, {100 + i, 2, 0}), &log);
		if (i == 1)
			used = sl_arena_used_bytes(arena);
	}
	assert_row_u64("arena", sl_arena_used_bytes(arena), used);
	assert_row_u64("grants", log.count[SL_ACTION_GRANT], 20000);
	sl_arena_free(arena);
}

static void time_does_not_go_back(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);

	step(node, 5 * SL_S, EVENT(UNMANAGED, unmanaged, {2, 20}), &log);
	step(node, 1 * SL_S, EVENT(ASK, ask, {70, 1, 2, 75}), &log);
	step(node, 1 * SL_S, EVENT(ASK, ask, {71, 2, 2, 10}), &log);
	assert_row_u64(
		"a second from then", log.last[SL_ACTION_WAKE_AT].wake_at.at, 6 * SL_S);
	sl_arena_free(arena);
}

static void config_may_be_for_ever(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);
	struct sl_amount none = {0};

	step(node, SL_S,
		EVENT(CONFIG, config,
			{UINT64_MAX, UINT64_MAX, SL_S, UINT64_MAX, UINT64_MAX, 0}),
		&log);
	/* A report that is waited for without end. */
	step(node, SL_S, EVENT(CLIENT_JOIN, client_join, {72, 7, 1}), &log);
	step(node, SL_S, EVENT(ASK, ask, {70, 1, 2, 60}), &log);
	step(node, 100 * SL_S, EVENT(TIME, time, {0}), &log);
	assert_row_u64("grants before it", log.count[SL_ACTION_GRANT], 0);
	step(node, 100 * SL_S, EVENT(CLIENT_REPORTED, client_reported, {72}), &log);
	assert_row_u64("grants after it", log.count[SL_ACTION_GRANT], 1);
	/* A working client could still give: none is hopeless, however much the pool lends. */
	step(node, 100 * SL_S, EVENT(COMMIT, commit, {70, 1, 60}), &log);
	step(node, 100 * SL_S,
		EVENT(WORKLOAD_ADD, workload_add, {8, none, none, 1, 4, 0, 0}), &log);
	step(node, 100 * SL_S, EVENT(CLIENT_JOIN, client_join, {80, 8, 0}), &log);
	step(node, 100 * SL_S, EVENT(ASK, ask, {80, 1, 2, 100}), &log);
	step(node, 900 * SL_S, EVENT(TIME, time, {0}), &log);
	assert_row_u64("denied", log.count[SL_ACTION_DENY], 0);
	assert_row_u64("waiting", sl_node_gpu(node, 2).waiting, 1);
	sl_arena_free(arena);
}

/* Two processes end at once, and their memory is found to be gone at once: both ends are told. */
static void several_at_once(void **state)
{
	const struct sl_event ends[] = {EVENT(CLIENT_EXIT, client_exit, {70}),
		EVENT(CLIENT_EXIT, client_exit, {71})};
	const struct sl_event gone[] = {EVENT(RELEASED, released, {70, 2, 0}),
		EVENT(RELEASED, released, {71, 2, 0})};
	struct sl_arena *arena = sl_arena_new();
	struct log log;
	struct sl_node *node = begin(arena, &log);
	struct sl_amount none = {0};

	step(node, 0, EVENT(ASK, ask, {70, 1, 2, 30}), &log);
	step(node, 0, EVENT(COMMIT, commit, {70, 1, 30}), &log);
	step(node, 0, EVENT(ASK, ask, {71, 1, 2, 30}), &log);
	step(node, 0, EVENT(COMMIT, commit, {71, 2, 30}), &log);
	step(node, 0, EVENT(WORKLOAD_ADD, workload_add, {8, none, none, 1, 4, 0, 0}),
		&log);
	step(node, 0, EVENT(CLIENT_JOIN, client_join, {80, 8, 0}), &log);
	step(node, 0, EVENT(ASK, ask, {80, 1, 2, 55}), &log); /* 40 are free */

	memset(&log, 0, sizeof(log));
	sl_node_steps(node, SL_S, ends, SL_ARRAY_LEN(ends), on_action, &log);
	assert_row_u64("LEFT", log.count[SL_ACTION_LEFT], 2);
	assert_row_u64("granted beside dying bytes", log.count[SL_ACTION_GRANT], 0);
	memset(&log, 0, sizeof(log));
	sl_node_steps(node, SL_S, gone, SL_ARRAY_LEN(gone), on_action, &log);
	assert_row_u64("GRANT", log.count[SL_ACTION_GRANT], 1);
	assert_row_u64("clients left", sl_node_workload(node, 7).clients, 0);
	sl_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_what_is),
		cmocka_unit_test(shows_nothing_of_what_is_not),
		cmocka_unit_test(names),
		cmocka_unit_test(is_steady),
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(config_may_be_for_ever),
		cmocka_unit_test(several_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
