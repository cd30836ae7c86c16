#include "play.h"

/* Why a workload is as it is, and every demand of the node. */

#define WORKLOAD(w, request, limit, count, mask) \
	EVENT(WORKLOAD_ADD, workload_add,        \
		{w, BYTES(request), BYTES(limit), count, mask, 0, 0, 0, 0, 0, {ANY}})
#define URGENT(w)                         \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(0), BYTES(100), 1, 1, 9, 0, 0, 0, 0, {ANY}})
#define CONDITION(c, what) EVENT(CONDITION, condition, {c, SL_CONDITION_##what})

static void say(void *context, const char *text)
{
	char *to = context;
	size_t used = strlen(to);

	(void)snprintf(to + used, 1024 - used, "%s%s", used ? "; " : "", text);
}

/* "REASON g0 c10 w1/2 bytes/available/other", without zeros. */
static void on_because(void *context, const struct sl_node_because *b)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s g%u c%llu w%llu/%llu %llu/%llu/%llu %llu",
		sl_reason_name(b->reason), b->gpu, (unsigned long long)b->client,
		(unsigned long long)b->workload, (unsigned long long)b->other,
		(unsigned long long)b->bytes, (unsigned long long)b->available_bytes,
		(unsigned long long)b->other_bytes,
		(unsigned long long)(b->span / SL_MS));
	say(context, text);
}

static void on_demand(void *context, const struct sl_node_demand_view *d)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%llu/%llu g%u %llu %s%s%s",
		(unsigned long long)d->client, (unsigned long long)d->ask, d->gpu,
		(unsigned long long)d->bytes, d->epoch ? "granted" : "waits",
		d->entitled ? " entitled" : "", d->head ? " head" : "");
	say(context, text);
}

static void assert_why(const struct play *p, uint64_t workload, const char *want)
{
	char got[1024] = "";

	sl_node_why(p->node, workload, on_because, got);
	assert_row_text("why", got, want);
}

static void assert_demands(const struct play *p, const char *want)
{
	char got[1024] = "";

	sl_node_each_demand(p->node, on_demand, got);
	assert_row_text("demands", got, want);
}

static void waits(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"bursts", 0, WORKLOAD(1, 20, 100, 1, 1), "ADMIT 1 m1 r20 l100"},
		{"on both", 0, WORKLOAD(2, 40, 60, 2, 3), "ADMIT 2 m3 r40 l60"},
		{"rigid", 0, WORKLOAD(3, 20, 20, 1, 2), "ADMIT 3 m2 r20 l20"},
		{"processes", 0, JOIN(10, 1), ""},
		{"processes", 0, JOIN(20, 2), ""},
		{"processes", 0, JOIN(30, 3), ""},
		{"some", 0, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"held", 0, COMMIT(10, 1, 60), ""},
		{"all that is left there", 0, ASK(20, 1, 0, 40), "GRANT 20/1 g0 40"},
		{"waits", 1000, ASK(10, 2, 0, 10), ""},
		{"waits", 1100, ASK(20, 2, 0, 5), ""},
		{"waits", 1200, ASK(20, 3, 1, 45), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_why(&p, 1, "BURST_WAITS g0 c10 w1/0 10/0/0 200");
	assert_why(&p, 2,
		"BURST_WAITS g0 c20 w2/1 5/0/40 100; REQUESTS_WAIT g1 c20 w2/0 45/40/20 "
		"0");
	assert_why(&p, 3, "");
	assert_why(&p, 4, "");
	assert_demands(&p,
		"10/2 g0 10 waits head; 20/2 g0 5 waits; 20/3 g1 45 waits head; "
		"20/1 g0 40 granted entitled");
	play_close(&p);
}

static void is_to_end(void **state)
{
	static const struct play_row rows[] = {
		{"a resolver", 0,
			SETTINGS(.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT,
					 SL_RESOLVER_NONE)),
			""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"bursts", 0, WORKLOAD(1, 0, 100, 1, 1), "ADMIT 1 m1 r0 l100"},
		{"more urgent", 0, URGENT(2), "ADMIT 2 m1 r0 l100"},
		{"asked to end", 0, WORKLOAD(3, 0, 100, 1, 1), "ADMIT 3 m1 r0 l100"},
	};
	static const struct sl_event events[] = {JOIN(10, 1), JOIN(20, 2),
		ASK(10, 1, 0, 90), COMMIT(10, 1, 90), ASK(20, 1, 0, 50),
		EVENT(WORKLOAD_STOP, workload_stop, {3, SL_S})};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)play(&p, "events", 100, events[i]);
	assert_why(&p, 1, "STOP_PRIORITY g0 c10 w1/2 50/0/90 0");
	assert_why(&p, 2, "STOPPING_WAITS g0 c20 w2/1 50/10/90 0");
	assert_why(&p, 3, "STOP_ASKED g0 c0 w3/0 0/0/0 0");
	(void)play(&p, "gone", 200, (struct sl_event)REMOVE(3));
	assert_why(&p, 3, "");
	play_close(&p);
}

/* Both processes of workload 1 are told to end for workload 2, which may use what they free except
 * workload 1's request. Workload 3 lacks more than that, so it does not wait for their end. */
static void ends_for_another(void **state)
{
	static const struct sl_event events[] = {
		SETTINGS(.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT,
				 SL_RESOLVER_NONE)),
		GPU(0, 100), WORKLOAD(1, 40, 100, 1, 1), URGENT(2), URGENT(3),
		JOIN(10, 1), JOIN(11, 1), JOIN(20, 2), JOIN(30, 3), ASK(10, 1, 0, 45),
		COMMIT(10, 1, 45), ASK(11, 1, 0, 45), COMMIT(11, 2, 45),
		ASK(20, 1, 0, 60), ASK(30, 1, 0, 70)};
	struct play p;

	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)play(&p, "events", 100, events[i]);
	assert_why(&p, 2, "STOPPING_WAITS g0 c20 w2/1 60/10/45 0");
	assert_why(&p, 3, "BURST_WAITS g0 c30 w3/1 70/0/50 0");
	play_close(&p);
}

static void cannot_be_taken_from(void **state)
{
	static const struct sl_event settings = SETTINGS(.untakeable_after = 5 * SL_S),
				     gpu = GPU(0, 100),
				     workload = WORKLOAD(1, 0, 100, 1, 1),
				     join = JOIN(10, 1), ask = ASK(10, 1, 0, 30),
				     stopped = CONDITION(10, STOPPED), time = TIME,
				     goes_on = CONDITION(10, RUNNING);
	struct play p;

	play_open(&p);
	(void)play(&p, "settings", 0, settings);
	(void)play(&p, "a GPU", 0, gpu);
	(void)play(&p, "a workload", 0, workload);
	(void)play(&p, "a process", 0, join);
	(void)play(&p, "holds something", 0, ask);
	(void)play(&p, "is stopped", 1000, stopped);
	assert_why(&p, 1, "");
	(void)play(&p, "for too long", 7000, time);
	assert_why(&p, 1, "UNTAKEABLE_BEGINS g0 c10 w1/0 0/1/0 6000");
	assert_row_u64("untakeable", sl_node_workload(p.node, 1).untakeable, 1);
	(void)play(&p, "goes on", 8000, goes_on);
	assert_why(&p, 1, "");
	play_close(&p);
}

static void its_gpus(void **state)
{
	static const struct sl_event more = HIDDEN(10, 1, 70), lost = LOST(0);
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"on both", 0, WORKLOAD(1, 20, 60, 2, 3), "ADMIT 1 m3 r20 l60"},
		{"on one", 0, WORKLOAD(2, 20, 60, 1, 2), "ADMIT 2 m2 r20 l60"},
		{"a process", 0, JOIN(10, 1), ""},
		{"holds", 0, REPORT(10, 0, 30), ""},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	(void)play(&p, "lost", 0, lost);
	(void)play(&p, "degraded", 0, more);
	/* 70 are fixed and 20 promised, of 60. */
	assert_why(&p, 1,
		"LOST_FOR g0 c0 w1/0 30/0/0 0; DEGRADED_BEGINS g1 c0 w1/0 30/0/0 0; "
		"OVER_ITS_LIMIT g1 c0 w1/0 0/0/10 0");
	assert_why(&p, 2, "DEGRADED_BEGINS g1 c0 w2/0 30/0/0 0");
	play_close(&p);
}

/* A void grant is not a demand any more. */
static void shows_no_void_grants(void **state)
{
	static const struct sl_event lost = LOST(0);
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, 20, 60, 1, 1), "ADMIT 1 m1 r20 l60"},
		{"a process", 0, JOIN(10, 1), ""},
		{"granted", 0, ASK(10, 1, 0, 30), "GRANT 10/1 g0 30"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_demands(&p, "10/1 g0 30 granted");
	(void)play(&p, "lost", 0, lost);
	assert_demands(&p, "");
	play_close(&p);
}

#define GIB(n) ((n)*SL_GIB)
#define BIG(w)                                                     \
	EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, 1, 1, 0}), \
		EVENT(CLIENT_JOIN, client_join, {w, w, 0, 1}), ASK(w, 1, 0, GIB(60))

/* Two workloads of 60 GiB take turns of 1 s on a GPU of 100, though moving one takes 7.5 s each
 * way. That is told once of each. */
static void short_turns(void **state)
{
	static const struct sl_event events[] = {
		SETTINGS(.pool_bytes = GIB(1000), .turn_max = SL_S,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)),
		GPU(0, GIB(100)), BIG(1), COMMIT(1, 1, GIB(60)), BIG(2)};
	uint32_t told = 0;
	struct play p;

	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		told += strstr(play(&p, "events", 0, events[i]), "TURN_LONG") != NULL;
	for (uint64_t ms = 100; ms < 5000; ms += 100) {
		const char *said = play(&p, "time", ms, (struct sl_event)TIME);

		told += strstr(said, "TURN_LONG") != NULL;
	}
	assert_row_u64("steps that told", told, 1);
	play_close(&p);
}

/* --- free bytes, as a denial tells them --- */

#define PATIENT(w, request, wait_s)       \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(request), BYTES(100), 1, 1, 0, 0, 0, 0, (wait_s)*SL_S, {ANY}})

static void assert_was_free(
	const struct play_row *rows, size_t count, uint64_t bytes, uint64_t said)
{
	const struct sl_action *denied;
	struct play p;

	play_open(&p);
	play_rows(&p, rows, count);
	denied = &p.last[SL_ACTION_DENY];
	assert_row_u64("asked", denied->deny.bytes, bytes);
	assert_row_u64("free for it", denied->deny.available_bytes, said);
	play_close(&p);
}

/* The demand in front of it waits for all free memory. */
static void kept_for_the_head_is_not_free(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, SETTINGS(0), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, PATIENT(1, 0, 0), "ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"much", 0, ASK(10, 1, 0, 40), "GRANT 10/1 g0 40"},
		{"has it", 0, COMMIT(10, 1, 40), ""},
		{"two", 0, PATIENT(2, 0, 0), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), ""},
		{"more than is free", 0, ASK(20, 1, 0, 70), ""},
		{"three", 0, PATIENT(3, 0, 5), "ADMIT 3 m1 r0 l100"},
		{"its process", 0, JOIN(30, 3), ""},
		{"is told", 2000, TIME, "NOTE BURST_WAITS g0 2/1 70"},
		{"what is free", 2000, ASK(30, 1, 0, 50), ""},
		{"waits", 3000, TIME, "NOTE KEPT_FOR_HEAD g0 3/2 50"},
		{"its time", 7000, TIME, "DENY 30/1 WAITED_TOO_LONG g0"},
	};

	assert_was_free(rows, SL_ARRAY_LEN(rows), 50, 0);
}

/* Another's request is not free for a burst. */
static void requested_is_not_free(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0, SETTINGS(.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, 0, 0)),
			""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, PATIENT(1, 70, 0), "ADMIT 1 m1 r70 l100"},
		{"two", 0, PATIENT(2, 0, 0), "ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), "PROBE 20 1"},
		{"asks", 0, ASK(20, 1, 0, 60), "DENY 20/1 NO_RESOLVER g0"},
	};

	assert_was_free(rows, SL_ARRAY_LEN(rows), 60, 30);
}

/* A returning client waits for memory, and what leaves for it suffices for no other. The demand's
 * turn comes after that, so it is told that the memory is kept, and is not denied. */
static void kept_for_a_return_is_not_free(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0,
			SETTINGS(.pool_bytes = 1000,
				.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)),
			""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, PATIENT(1, 0, 0), "ADMIT 1 m1 r0 l100"},
		{"two", 0, PATIENT(2, 0, 0), "ADMIT 2 m1 r0 l100"},
		{"three", 0, PATIENT(3, 0, 1), "ADMIT 3 m1 r0 l100"},
		{"is away", 0, EVENT(CLIENT_JOIN, client_join, {10, 1, 1, 1}), ""},
		{"has", 0, REPORT(10, 0, 90), ""},
		{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {10, 0, 90}),
			""},
		{"that is all", 0, EVENT(CLIENT_REPORTED, client_reported, {10}), ""},
		{"runs", 0, EVENT(CLIENT_JOIN, client_join, {20, 2, 0, 1}), ""},
		{"has", 0, ASK(20, 1, 0, 50), "GRANT 20/1 g0 50"},
		{"has it", 0, COMMIT(20, 1, 50), ""},
		{"its process", 0, JOIN(30, 3), ""},
		{"wants back", 5000, EVENT(WANT, want, {10, 1}),
			"EVICT 20 g0 40 EVICTED_FOR; PROBE 10 1; PROBE 20 1"},
		{"asks", 5010, ASK(30, 1, 0, 20), ""},
		{"its time", 6010, TIME, "NOTE KEPT_FOR_HEAD g0 3/1 20; PROBE 20 2"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("free", p.last[SL_ACTION_NOTE].note.available_bytes, 0);
	play_close(&p);
}

/* --- swap --- */

#define SWAP(pool)                     \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define COMES(c, w)   EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define OUT(c, bytes) EVENT(CLIENT_EVICTED, client_evicted, {c, 0, bytes})
#define REPORTED(c)   EVENT(CLIENT_REPORTED, client_reported, {c})
#define WANTS(c)      EVENT(WANT, want, {c, 1})

static void events(
	struct play *p, uint64_t at_ms, const struct sl_event *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)play(p, "events", at_ms, all[i]);
}

/* One leaves for another's turn; a third runs beside them, with more there than either. */
static void names_whose_turn_it_is(void **state)
{
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100),
		WORKLOAD(1, 60, 60, 1, 1), WORKLOAD(2, 0, 100, 1, 1),
		WORKLOAD(3, 0, 100, 1, 1), SWAPPER(10, 1), SWAPPER(20, 2), SWAPPER(30, 3),
		ASK(10, 1, 0, 60), COMMIT(10, 1, 60), ASK(20, 1, 0, 35),
		COMMIT(20, 2, 35)};
	struct play p;

	play_open(&p);
	events(&p, 0, before, SL_ARRAY_LEN(before));
	assert_row_text("for its demand",
		play(&p, "asks", 5000, (struct sl_event)ASK(30, 1, 0, 35)),
		"EVICT 20 g0 30 EVICTED_FOR; PROBE 10 1; PROBE 20 1");
	(void)play(&p, "its gate is shut", 5003, (struct sl_event)WANTS(20));
	(void)play(&p, "time", 5010, (struct sl_event)TIME);
	assert_why(&p, 2, "TURN_WAITS g0 c20 w2/3 30/0/35 7");
	assert_why(&p, 3, "LEAVING_WAITS g0 c30 w3/2 35/5/30 10");
	play_close(&p);
}

/* A process with 90 on the host, and another that begins its turn with 50. */
static void begin_away(struct play *p)
{
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100),
		WORKLOAD(1, 0, 100, 1, 1), WORKLOAD(2, 0, 100, 1, 1), COMES(10, 1),
		REPORT(10, 0, 90), OUT(10, 90), REPORTED(10), SWAPPER(20, 2),
		ASK(20, 1, 0, 50), COMMIT(20, 1, 50)};

	play_open(p);
	events(p, 0, before, SL_ARRAY_LEN(before));
}

/* It has waited since it asked, also where its gate was shut later. */
static void waits_since_it_asked(void **state)
{
	struct play p;

	begin_away(&p);
	(void)play(&p, "asks", 5000, (struct sl_event)ASK(10, 1, 0, 5));
	(void)play(&p, "time", 5500, (struct sl_event)TIME);
	assert_why(&p, 1, "LEAVING_WAITS g0 c10 w1/2 90/0/45 500");
	(void)play(&p, "its gate is shut", 6000, (struct sl_event)WANTS(10));
	(void)play(&p, "time", 6500, (struct sl_event)TIME);
	assert_why(&p, 1, "LEAVING_WAITS g0 c10 w1/2 90/0/45 1500");
	assert_row_u64(
		"as in lists", sl_node_workload(p.node, 1).wants_since, 1500 * SL_MS);
	play_close(&p);
}

/* Where the pool has no room no turn comes. This is also said of a process that only asks, and
 * during another one's turn. */
static void waits_for_the_pool(void **state)
{
	struct play p;

	begin_away(&p);
	(void)play(&p, "a small pool", 0,
		(struct sl_event)EVENT(POOL_SIZE, pool_size, {100}));
	(void)play(&p, "asks", 0, (struct sl_event)ASK(10, 1, 0, 5));
	assert_why(&p, 1, "POOL_WAITS g0 c10 w1/0 90/10/0 0");
	(void)play(&p, "its gate is shut", 0, (struct sl_event)WANTS(10));
	assert_why(&p, 1, "POOL_WAITS g0 c10 w1/0 90/10/0 0");
	(void)play(&p, "the turn is over", 5000, (struct sl_event)TIME);
	assert_why(&p, 1, "POOL_WAITS g0 c10 w1/0 90/10/0 5000");
	play_close(&p);
}

/* Workload 3 would fit if the idle client had left. But that client leaves for no other before the
 * first has its turn. */
static void waits_behind_the_first(void **state)
{
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100),
		WORKLOAD(1, 0, 100, 1, 1), WORKLOAD(2, 0, 100, 1, 1),
		WORKLOAD(3, 0, 100, 1, 1), WORKLOAD(4, 0, 100, 1, 1), COMES(10, 1),
		REPORT(10, 0, 90), OUT(10, 90), REPORTED(10), COMES(30, 3),
		REPORT(30, 0, 20), OUT(30, 20), REPORTED(30), SWAPPER(40, 4),
		ASK(40, 1, 0, 40), COMMIT(40, 1, 40)};
	struct play p;

	play_open(&p);
	events(&p, 0, before, SL_ARRAY_LEN(before));
	(void)play(&p, "idle", 20000,
		(struct sl_event)EVENT(PULSE, pulse, {40, 10 * SL_S, 0, 1}));
	(void)play(&p, "a process", 20000, (struct sl_event)SWAPPER(20, 2));
	(void)play(&p, "its turn", 20000, (struct sl_event)ASK(20, 1, 0, 50));
	(void)play(&p, "the first", 20001, (struct sl_event)WANTS(10));
	(void)play(&p, "another", 20002, (struct sl_event)WANTS(30));
	assert_why(&p, 1, "TURN_WAITS g0 c10 w1/2 90/0/50 1");
	assert_why(&p, 3, "KEPT_FOR_HEAD g0 c30 w3/1 20/0/0 0");
	play_close(&p);
}

/* Nor does it come back for its demand where all free memory is kept for another. */
static void waits_for_what_is_kept(void **state)
{
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100),
		WORKLOAD(1, 0, 100, 1, 1), WORKLOAD(2, 0, 100, 1, 1),
		WORKLOAD(3, 0, 100, 1, 1), COMES(30, 3), REPORT(30, 0, 20), OUT(30, 20),
		REPORTED(30), JOIN(20, 2), ASK(20, 1, 0, 50), COMMIT(20, 1, 50),
		JOIN(10, 1), ASK(10, 1, 0, 70)};
	struct play p;

	play_open(&p);
	events(&p, 0, before, SL_ARRAY_LEN(before));
	(void)play(&p, "asks", 2000, (struct sl_event)ASK(30, 1, 0, 10));
	assert_why(&p, 3, "KEPT_FOR_HEAD g0 c30 w3/1 20/0/0 0");
	play_close(&p);
}

/* After a restart nothing is known of clients that have not reported, and others are granted
 * nothing. */
static void awaits_reports(void **state)
{
	static const struct sl_event before[] = {GPU(0, 100), WORKLOAD(1, 0, 100, 1, 1),
		WORKLOAD(2, 0, 100, 1, 1), WORKLOAD(3, 0, 100, 1, 1), COMES(10, 1),
		JOIN(20, 2), JOIN(30, 3), ASK(20, 1, 0, 5)};
	struct play p;

	play_open(&p);
	events(&p, 0, before, SL_ARRAY_LEN(before));
	assert_why(&p, 1, "RECOVERY_WAITS g0 c0 w1/0 0/0/0 0");
	assert_why(&p, 2, "RECOVERY_WAITS g0 c0 w2/0 0/0/0 0");
	assert_why(&p, 3, "");
	(void)play(&p, "reports", 100, (struct sl_event)REPORT(10, 0, 90));
	assert_why(&p, 1, "RECOVERY_WAITS g0 c0 w1/0 0/0/0 0");
	(void)play(&p, "that is all", 200, (struct sl_event)REPORTED(10));
	assert_why(&p, 1, "");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits),
		cmocka_unit_test(is_to_end),
		cmocka_unit_test(ends_for_another),
		cmocka_unit_test(cannot_be_taken_from),
		cmocka_unit_test(its_gpus),
		cmocka_unit_test(shows_no_void_grants),
		cmocka_unit_test(short_turns),
		cmocka_unit_test(kept_for_the_head_is_not_free),
		cmocka_unit_test(requested_is_not_free),
		cmocka_unit_test(kept_for_a_return_is_not_free),
		cmocka_unit_test(names_whose_turn_it_is),
		cmocka_unit_test(waits_since_it_asked),
		cmocka_unit_test(waits_for_the_pool),
		cmocka_unit_test(waits_behind_the_first),
		cmocka_unit_test(waits_for_what_is_kept),
		cmocka_unit_test(awaits_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
