/*
 * verdict - how long the node machine takes to decide a collision
 *
 * The machine itself, in this process: a GPU full of the memory of 10, 100 or 1,000 clients, each
 * the only one of a workload above its request.
 *
 * `stop`: a demand of higher priority, within its request, asks for the memory of four of them.
 * Timed is the step in which victims are chosen and told. The victims then die, the memory is
 * granted and freed, and new clients take their places.
 *
 * `wait`: a client of lower priority asks. The machine looks at all clients in vain, so the demand
 * waits.
 *
 * `swap`: the GPU holds half of the clients, all of which want to run. Timed are the steps of a
 * change of turns: the turn ends, one client is told to leave and has left; another is brought
 * back, is resident, and stands at its gate.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "policy/node.h"

#define ROUNDS       400
#define CLIENTS_MOST 1000
#define EACH         (64 * SL_MIB)
#define VICTIMS      4
#define STRONG       (CLIENTS_MOST + 1) /* workloads; each has one client */
#define WEAK         (CLIENTS_MOST + 2)

struct machine {
	struct sl_arena *arena;
	struct sl_node *node;
	sl_ns now;
	uint64_t next_client, next_ask, client_of[CLIENTS_MOST + 3];
	/* Of the last step. */
	uint32_t stopped_count, denied;
	uint64_t stopped[CLIENTS_MOST];
	uint64_t granted_client, epoch;
	/* EVICTs and RESTOREs that are not answered yet, first come first served. */
	struct sl_action order[CLIENTS_MOST];
	uint32_t orders;
	bool swaps; /* clients know how to move */
};

static void on_action(void *context, const struct sl_action *action)
{
	struct machine *m = context;

	if (action->type == SL_ACTION_STOP) {
		bench_require(m->stopped_count < CLIENTS_MOST, "too many are stopped");
		m->stopped[m->stopped_count++] = action->stop.workload;
	} else if (action->type == SL_ACTION_GRANT) {
		m->granted_client = action->grant.client;
		m->epoch = action->grant.epoch;
	} else if (action->type == SL_ACTION_DENY || action->type == SL_ACTION_REFUSE) {
		m->denied++;
	} else if (action->type == SL_ACTION_EVICT || action->type == SL_ACTION_RESTORE) {
		bench_require(m->orders < CLIENTS_MOST, "too many are moved");
		m->order[m->orders++] = *action;
	}
}

/* The time it took. */
static sl_ns step(struct machine *m, const struct sl_event *event)
{
	sl_ns begin;

	m->stopped_count = m->denied = 0;
	m->epoch = 0;
	m->now += SL_US;
	begin = sl_clock_now();
	sl_node_step(m->node, m->now, event, on_action, m);
	return sl_clock_now() - begin;
}

static sl_ns ask(struct machine *m, uint64_t workload, uint64_t bytes)
{
	struct sl_event event = {.type = SL_EVENT_ASK};

	event.ask.client = m->client_of[workload];
	event.ask.ask = ++m->next_ask;
	event.ask.bytes = bytes;
	return step(m, &event);
}

static void commit(struct machine *m, uint64_t workload, uint64_t bytes)
{
	struct sl_event event = {.type = SL_EVENT_COMMIT};

	bench_require(m->epoch && m->granted_client == m->client_of[workload],
		"nothing was granted to workload %lu", (unsigned long)workload);
	event.commit.client = m->client_of[workload];
	event.commit.epoch = m->epoch;
	event.commit.used_bytes = bytes;
	(void)step(m, &event);
}

static void join(struct machine *m, uint64_t workload)
{
	struct sl_event event = {.type = SL_EVENT_CLIENT_JOIN};

	m->client_of[workload] = ++m->next_client;
	event.client_join.client = m->client_of[workload];
	event.client_join.workload = workload;
	event.client_join.swaps = m->swaps;
	(void)step(m, &event);
}

static void hold(struct machine *m, uint64_t workload)
{
	join(m, workload);
	(void)ask(m, workload, EACH);
	commit(m, workload, EACH);
}

static void die(struct machine *m, uint64_t workload)
{
	struct sl_event event = {.type = SL_EVENT_CLIENT_EXIT};

	event.client_exit.client = m->client_of[workload];
	(void)step(m, &event);
	event = (struct sl_event){.type = SL_EVENT_RELEASED};
	event.released.client = m->client_of[workload];
	(void)step(m, &event);
}

static void add_workload(
	struct machine *m, uint64_t workload, uint64_t request_bytes, int32_t priority)
{
	struct sl_event event = {.type = SL_EVENT_WORKLOAD_ADD};

	event.workload_add.workload = workload;
	event.workload_add.request =
		(struct sl_amount){.kind = SL_AMOUNT_BYTES, .value = request_bytes};
	event.workload_add.limit =
		(struct sl_amount){.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	event.workload_add.gpu_count = 1;
	event.workload_add.gpu_mask = 1;
	event.workload_add.priority = priority;
	event.workload_add.bounds.priority = INT32_MAX;
	event.workload_add.bounds.workloads = UINT32_MAX;
	(void)step(m, &event);
	bench_require(
		!m->denied, "workload %lu is not admitted", (unsigned long)workload);
}

static void set_up(struct machine *m, uint32_t clients)
{
	struct sl_event event = {.type = SL_EVENT_CONFIG};

	*m = (struct machine){.arena = sl_arena_new(), .now = SL_S};
	m->node = sl_node_new(m->arena);
	event.config.wait_max = 3600 * SL_S;
	event.config.head_pass = SL_S;
	event.config.idle_wait = 3600 * SL_S; /* no demand is denied meanwhile */
	event.config.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0);
	event.config.stop_grace = 3600 * SL_S;
	(void)step(m, &event);
	event = (struct sl_event){.type = SL_EVENT_GPU_ADD};
	event.gpu_add.capacity_bytes = clients * EACH;
	(void)step(m, &event);
	for (uint32_t i = 1; i <= clients; i++) {
		add_workload(m, i, 0, 0);
		hold(m, i);
	}
	add_workload(m, STRONG, VICTIMS * EACH, 5);
	add_workload(m, WEAK, 0, -5);
	join(m, STRONG);
	join(m, WEAK);
}

static sl_ns collide(struct machine *m)
{
	struct sl_event event = {.type = SL_EVENT_FREED};
	uint64_t victims[VICTIMS];
	sl_ns took = ask(m, STRONG, VICTIMS * EACH);

	bench_require(m->stopped_count == VICTIMS && !m->denied,
		"%u processes were stopped, not %u", m->stopped_count, VICTIMS);
	for (int i = 0; i < VICTIMS; i++)
		victims[i] = m->stopped[i];
	for (int i = 0; i < VICTIMS; i++)
		die(m, victims[i]);
	commit(m, STRONG, VICTIMS * EACH);
	event.freed.client = m->client_of[STRONG];
	event.freed.bytes = VICTIMS * EACH;
	(void)step(m, &event);
	for (int i = 0; i < VICTIMS; i++)
		hold(m, victims[i]);
	return took;
}

static sl_ns wait_in_vain(struct machine *m)
{
	struct sl_event event = {.type = SL_EVENT_CANCEL};
	sl_ns took = ask(m, WEAK, EACH);

	bench_require(!m->stopped_count && !m->denied && !m->epoch,
		"the demand of the weak does not wait");
	event.cancel.client = m->client_of[WEAK];
	event.cancel.ask = m->next_ask;
	(void)step(m, &event);
	return took;
}

/* --- swap ------------------------------------------------------------------------------------- */

static sl_ns want(struct machine *m, uint64_t client)
{
	struct sl_event event = {.type = SL_EVENT_WANT};

	event.want.client = client;
	event.want.wants = 1;
	return step(m, &event);
}

/* The first open order is carried out. Returns the client, if it has left, and 0. */
static uint64_t carry_out(struct machine *m, sl_ns *took)
{
	struct sl_event event = {.type = SL_EVENT_DONE};
	struct sl_action order = m->order[0];

	memmove(m->order, m->order + 1, --m->orders * sizeof(m->order[0]));
	event.done.order = order.id;
	if (order.type == SL_ACTION_EVICT) {
		event.done.client = order.evict.client;
		event.done.evicted_bytes = event.done.moved_bytes = EACH;
	} else {
		event.done.client = order.restore.client;
		event.done.moved_bytes = EACH;
	}
	*took = step(m, &event);
	return order.type == SL_ACTION_EVICT ? event.done.client : 0;
}

static void set_up_swap(struct machine *m, uint32_t clients)
{
	struct sl_event event = {.type = SL_EVENT_CONFIG};
	uint64_t left[CLIENTS_MOST];
	uint32_t count = 0;
	sl_ns took;

	*m = (struct machine){.arena = sl_arena_new(), .now = SL_S, .swaps = true};
	m->node = sl_node_new(m->arena);
	event.config.wait_max = 3600 * SL_S;
	event.config.head_pass = SL_S;
	event.config.idle_wait = 3600 * SL_S;
	event.config.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0);
	event.config.pool_bytes = 2 * clients * EACH;
	(void)step(m, &event);
	event = (struct sl_event){.type = SL_EVENT_GPU_ADD};
	event.gpu_add.capacity_bytes = clients / 2 * EACH;
	(void)step(m, &event);
	for (uint32_t i = 1; i <= clients; i++) {
		add_workload(m, i, 0, 0);
		join(m, i);
		/* By then the turns of those before it are over. */
		m->now += 10 * SL_S;
		(void)ask(m, i, EACH);
		if (m->orders)
			left[count++] = carry_out(m, &took);
		commit(m, i, EACH);
	}
	bench_require(
		count == clients - clients / 2, "%u clients are on the host", count);
	for (uint32_t i = 0; i < count; i++)
		(void)want(m, left[i]);
}

/* So many steps in which something moves. */
static struct bench_samples *go_round(struct machine *m)
{
	struct bench_samples *samples = bench_samples_new();
	struct sl_event event = {.type = SL_EVENT_TIME};
	uint32_t idle = 0;

	while (samples->count < 4 * ROUNDS) {
		uint64_t left = 0;
		sl_ns took;

		if (m->orders) {
			left = carry_out(m, &took);
		} else {
			m->now += 100 * SL_MS;
			took = step(m, &event);
			bench_require(
				m->orders || idle++ < 1000, "nobody is moved any more");
			if (!m->orders)
				continue;
			idle = 0;
		}
		bench_samples_add(samples, took);
		/* A client that has left stands at its gate at once. */
		if (left)
			bench_samples_add(samples, want(m, left));
	}
	return samples;
}

static void emit(enum bench_row_id median, enum bench_row_id p99, const char *variant,
	struct bench_samples *samples)
{
	bench_emit(median, variant, (double)bench_quantile(samples, 500) / (double)SL_US);
	bench_emit(p99, variant, (double)bench_quantile(samples, 990) / (double)SL_US);
	free(samples);
}

int bench_part_verdict(int argc, char **argv)
{
	static const uint32_t counts[] = {10, 100, CLIENTS_MOST};
	static struct machine m;

	for (size_t i = 0; i < SL_ARRAY_LEN(counts); i++) {
		struct bench_samples *stop = bench_samples_new();
		struct bench_samples *wait = bench_samples_new();
		struct sl_error err = {{0}};
		char variant[32];

		set_up(&m, counts[i]);
		for (int round = 0; round < ROUNDS; round++) {
			bench_samples_add(stop, collide(&m));
			bench_samples_add(wait, wait_in_vain(&m));
		}
		bench_require(sl_node_check(m.node, &err) == 0, "%s", err.text);
		(void)snprintf(variant, sizeof(variant), "clients-%u", counts[i]);
		emit(BENCH_VERDICT_STOP, BENCH_VERDICT_STOP_P99, variant, stop);
		emit(BENCH_VERDICT_WAIT, BENCH_VERDICT_WAIT_P99, variant, wait);
		m.arena = sl_arena_free(m.arena);
		set_up_swap(&m, counts[i]);
		emit(BENCH_VERDICT_SWAP, BENCH_VERDICT_SWAP_P99, variant, go_round(&m));
		bench_require(sl_node_check(m.node, &err) == 0, "%s", err.text);
		m.arena = sl_arena_free(m.arena);
	}
	return 0;
}
