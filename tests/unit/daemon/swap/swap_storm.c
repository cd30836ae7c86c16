/*
 * Clients that move memory, honest and not, at random. Whatever they say and whenever they die, the
 * books of the policy hold, the daemon and the policy agree about every open order, and no host
 * memory is lost. usage: unit-daemon-swap_storm [SEED [STEPS]]; the seed is printed when it fails.
 */
#include "../inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostpool.h"

#define MIB   SL_MIB
#define MANY  6
#define FILES 16
#define STEPS 1500
/* The rest of the GPU for all of them. */
#define CONTESTED (96 * MIB)

static uint64_t random_state = 1, steps = STEPS;

static uint64_t random_below(uint64_t bound)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % bound;
}

static bool one_in(uint64_t chances)
{
	return random_below(chances) == 0;
}

struct actor {
	struct rig_peer run, peer;
	uint64_t backing, evicted, next_ask;
	struct {
		uint32_t number;
		uint64_t bytes;
		int fd;
	} files[FILES];
	uint64_t order; /* open, 0: none */
	uint64_t wanted;
	bool restore;
};

static struct inside inside;
static struct actor actors[MANY];
static uint64_t lies, deaths, done;

/* --- life ------------------------------------------------------------------------------------- */

static void forget_files(struct actor *actor)
{
	for (int i = 0; i < FILES; i++) {
		if (actor->files[i].number)
			(void)close(actor->files[i].fd);
		actor->files[i].number = 0;
	}
}

static void be_born(struct actor *actor)
{
	*actor = (struct actor){.next_ask = 1};
	actor->run = rig_run(&inside.rig, random_below(3) * 8 * MIB, RIG_GIB);
	actor->peer = rig_join(&inside.rig, &actor->run);
}

static void die(struct actor *actor)
{
	rig_peer_end(&actor->peer);
	rig_peer_end(&actor->run);
	forget_files(actor);
	deaths++;
	be_born(actor);
}

static void say(const struct actor *actor, const union sl_msg *msg)
{
	/* The line may be lost already; it is seen when it is read. */
	if (sl_wire_send(actor->peer.fd, msg) < 0)
		rig_idle();
}

static void report_files(struct actor *actor)
{
	for (int i = 0; i < FILES; i++) {
		union sl_msg msg;

		if (!actor->files[i].number)
			continue;
		sl_wire_init(&msg, SL_MSG_STORE_HELD);
		msg.store_held.number = actor->files[i].number;
		msg.store_held.bytes = actor->files[i].bytes;
		if (one_in(40)) {
			msg.store_held.bytes += one_in(2) ? 4096 : 2 * MIB;
			lies++;
		}
		(void)!sl_wire_send_fds(actor->peer.fd, &msg, &actor->files[i].fd, 1);
	}
}

static void come_back(struct actor *actor)
{
	uint64_t epoch = actor->peer.epoch;
	union sl_msg msg;

	actor->order = 0;
	rig_reconnect(&inside.rig, &actor->peer);
	rig_join_as(&actor->peer, &actor->run, epoch);
	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = actor->backing;
	say(actor, &msg);
	report_files(actor);
	sl_wire_init(&msg, SL_MSG_EVICTED);
	msg.evicted.evicted_bytes = actor->evicted;
	if (one_in(30)) {
		msg.evicted.evicted_bytes += random_below(8) * MIB;
		lies++;
	}
	say(actor, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	say(actor, &msg);
}

/* --- messages from the daemon ----------------------------------------------------------------- */

static void keep(struct actor *actor, const struct sl_msg_store *store, int fd)
{
	for (int i = 0; i < FILES; i++) {
		if (actor->files[i].number)
			continue;
		actor->files[i].number = store->number;
		actor->files[i].bytes = store->bytes;
		actor->files[i].fd = fd;
		return;
	}
	(void)close(fd);
}

static void commit(struct actor *actor, const struct sl_msg_grant *grant)
{
	union sl_msg msg;

	if (one_in(20)) {
		sl_wire_init(&msg, SL_MSG_CREATE_FAILED);
		msg.create_failed.epoch = grant->epoch;
		say(actor, &msg);
		return;
	}
	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = grant->epoch;
	msg.commit.used_bytes = one_in(8) ? 0 : grant->bytes;
	actor->backing += msg.commit.used_bytes;
	say(actor, &msg);
}

/* A client that has everything on the GPU needs none of its files. */
static void trim(struct actor *actor)
{
	for (int i = 0; i < FILES && actor->evicted == 0 && !actor->order; i++) {
		union sl_msg msg;

		if (!actor->files[i].number)
			continue;
		sl_wire_init(&msg, SL_MSG_STORE_BACK);
		msg.store_back.number = actor->files[i].number;
		say(actor, &msg);
		(void)close(actor->files[i].fd);
		actor->files[i].number = 0;
	}
}

static void hear(struct actor *actor, const union sl_msg *msg, struct sl_wire_fds *fds)
{
	switch (msg->head.type) {
	case SL_MSG_STORE:
		keep(actor, &msg->store, fds->fd[0]);
		fds->count = 0;
		break;
	case SL_MSG_GRANT: commit(actor, &msg->grant); break;
	case SL_MSG_EVICT:
		actor->order = msg->evict.order;
		actor->wanted = msg->evict.bytes;
		actor->restore = false;
		break;
	case SL_MSG_RESTORE:
		actor->order = msg->restore.order;
		actor->restore = true;
		break;
	case SL_MSG_TRIM: trim(actor); break;
	default: break;
	}
}

static void listen_to_all(struct actor *actor)
{
	for (;;) {
		struct sl_wire_fds fds = {0};
		struct sl_error err = {0};
		union sl_msg msg;
		char byte;
		ssize_t there = recv(actor->peer.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

		if (there < 0)
			return;
		if (there == 0 || sl_wire_recv_fds(actor->peer.fd, SL_FROM_DAEMON, &msg,
					  &fds, &err) != SL_WIRE_OK) {
			come_back(actor);
			return;
		}
		hear(actor, &msg, &fds);
		sl_wire_fds_close(&fds);
	}
}

/* --- messages to the daemon ------------------------------------------------------------------- */

static void ask(struct actor *actor)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = actor->next_ask++;
	msg.ask.bytes = (1 + random_below(12)) * 2 * MIB;
	say(actor, &msg);
}

static void give_some_back(struct actor *actor)
{
	bool evicted = actor->evicted && one_in(2);
	uint64_t most = evicted ? actor->evicted : actor->backing - actor->evicted;
	union sl_msg msg;

	if (!most)
		return;
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.bytes = one_in(3) ? most : sl_min_u64(most, 2 * MIB);
	msg.freed.flags = evicted ? SL_FREED_EVICTED : 0;
	actor->backing -= msg.freed.bytes;
	if (evicted)
		actor->evicted -= msg.freed.bytes;
	say(actor, &msg);
}

static void fill_answer(struct actor *actor, struct sl_msg_swapped *out)
{
	uint64_t resident = actor->backing - actor->evicted;

	out->order = actor->order;
	out->outcome = one_in(10) ? SL_WIRE_SWAP_REFUSED : SL_WIRE_SWAP_OK;
	if (out->outcome == SL_WIRE_SWAP_REFUSED)
		out->cause = 1 + (uint32_t)random_below(SL_WIRE_SWAP_CAUSES - 1);
	else if (actor->restore)
		actor->evicted = 0;
	else
		actor->evicted += sl_min_u64(resident, actor->wanted);
	out->evicted_bytes = actor->evicted;
	out->moved_bytes = random_below(64) * MIB;
	out->span_us = random_below(20000);
}

static void answer(struct actor *actor)
{
	union sl_msg msg;

	if (!actor->order)
		return;
	sl_wire_init(&msg, SL_MSG_SWAPPED);
	fill_answer(actor, &msg.swapped);
	if (one_in(25)) {
		msg.swapped.order += random_below(2);
		msg.swapped.evicted_bytes += random_below(1ull << 40);
		lies++;
	}
	actor->order = 0;
	done++;
	say(actor, &msg);
}

static void hand_back(struct actor *actor)
{
	int i = (int)random_below(FILES);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE_BACK);
	msg.store_back.number = actor->files[i].number;
	if (!msg.store_back.number && !one_in(20))
		return;
	lies += !msg.store_back.number;
	if (actor->files[i].number)
		(void)close(actor->files[i].fd);
	actor->files[i].number = 0;
	say(actor, &msg);
}

/* Mostly idle, so that it may be moved for others. */
static void say_pulse(struct actor *actor)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PULSE);
	msg.pulse.proven = 1;
	if (one_in(4))
		msg.pulse.busy_ms = 50;
	else
		msg.pulse.idle_ms = 2000;
	say(actor, &msg);
}

static void say_want(struct actor *actor)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WANT);
	msg.want.wants = (uint32_t)random_below(2);
	say(actor, &msg);
}

static void park_or_resume(const struct actor *actor)
{
	struct rig_peer self = {.fd = sl_wire_connect(inside.rig.socket, NULL)};
	union sl_msg msg;

	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.workload = actor->run.workload;
	msg.park.parked = (uint32_t)random_below(2);
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_PARK_REPLY, &msg);
	(void)close(self.fd);
}

static void act(struct actor *actor)
{
	switch (random_below(14)) {
	case 0:
	case 1: ask(actor); break;
	case 2: give_some_back(actor); break;
	case 3:
	case 4:
	case 5:
	case 6: answer(actor); break;
	case 7: say_want(actor); break;
	case 11:
	case 12: say_pulse(actor); break;
	case 8:
		if (one_in(4))
			hand_back(actor);
		break;
	case 9: park_or_resume(actor); break;
	case 10:
		if (one_in(10))
			come_back(actor);
		break;
	default:
		if (one_in(12))
			die(actor);
	}
}

/* --- what must be so -------------------------------------------------------------------------- */

static void check_client(
	const struct sl_client *client, uint64_t *host_bytes, uint32_t *files)
{
	struct sl_node_client_view view = sl_node_client(inside.daemon.node, client->id);
	uint64_t order = client->order.state == SL_ORDER_NONE ? 0 : client->order.id;

	if (view.order != order)
		fail_msg("client %" PRIu64 ": order %" PRIu64 " here, %" PRIu64
			 " in the policy",
			client->id, order, view.order);
	if (view.store_bytes != client->host_bytes)
		fail_msg("client %" PRIu64 ": %" PRIu64 " bytes here, %" PRIu64
			 " in the policy",
			client->id, client->host_bytes, view.store_bytes);
	*host_bytes += client->host_bytes;
	sl_list_foreach (link, &client->host_files)
		(*files)++;
}

static void check(uint64_t step)
{
	const struct sl_hostpool *pool = inside.daemon.hostpool;
	struct sl_error err = {0};
	uint64_t bytes = 0;
	uint32_t files = 0;

	if (sl_node_check(inside.daemon.node, &err) != 0)
		fail_msg("step %" PRIu64 ": %s", step, err.text);
	sl_list_foreach (at, &inside.daemon.workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(at, struct sl_workload, link);

		sl_list_foreach (link, &workload->clients)
			check_client(SL_LIST_ENTRY(link, struct sl_client, link), &bytes,
				&files);
	}
	assert_true(bytes == pool->made_bytes);
	assert_int_equal(files, pool->files);
	assert_true(pool->made_bytes + pool->making_bytes <= pool->configured_bytes);
}

/* The rest of the GPU, in the hands of one that is never moved. */
static void take_the_rest(struct rig_peer *run, struct rig_peer *client)
{
	union sl_msg msg;

	*run = rig_peer(&inside.rig);
	rig_hello(run, SL_ROLE_CONTROL, 0);
	rig_expect(run, SL_MSG_WELCOME, &msg);
	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = 15 * RIG_GIB - CONTESTED;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = SL_RUN_NO_SWAP;
	rig_send(run, &msg);
	rig_expect(run, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	run->workload = msg.run_reply.workload;
	memcpy(run->token, msg.run_reply.token, sizeof(run->token));
	*client = rig_join(&inside.rig, run);
	rig_hold(&inside.rig, client, 1, 15 * RIG_GIB - CONTESTED);
}

static void storm(void **state)
{
	struct rig_peer run, client;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 20ms\nlog_level: "
			     "error\nrecover_wait: 1ms\nhost_memory: 160MiB\nhost_slack: "
			     "8MiB\nlongest_wait: 500ms\nturn_max: 200ms\n");
	take_the_rest(&run, &client);
	for (int i = 0; i < MANY; i++)
		be_born(&actors[i]);
	for (uint64_t step = 0; step < steps; step++) {
		struct actor *actor = &actors[random_below(MANY)];

		act(actor);
		inside_turn(&inside);
		for (int i = 0; i < MANY; i++)
			listen_to_all(&actors[i]);
		inside_turn(&inside);
		check(step);
	}
	for (int i = 0; i < MANY; i++) {
		rig_peer_end(&actors[i].peer);
		rig_peer_end(&actors[i].run);
		forget_files(&actors[i]);
	}
	inside_until(&inside, inside.daemon.workload_count == 1);
	check(steps);
	assert_true(inside.daemon.hostpool->made_bytes == 0);
	assert_true(sl_node_pool(inside.daemon.node).evicted_bytes == 0);
	print_message("%" PRIu64 " lies, %" PRIu64 " deaths, %" PRIu64
		      " answers; %" PRIu64 " evictions, %" PRIu64 " restores, %" PRIu64
		      " refused for want of host memory\n",
		lies, deaths, done, inside.daemon.swap_causes[0][SL_SWAP_NO_CAUSE],
		inside.daemon.swap_causes[1][SL_SWAP_NO_CAUSE],
		inside.daemon.swap_causes[0][SL_SWAP_NO_HOST]);
	/* Of everything there was some. */
	assert_true(deaths > 0 && done > 0);
	rig_peer_end(&client);
	rig_peer_end(&run);
	inside_fini(&inside);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(storm)};

	if (argc > 1)
		random_state = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		steps = strtoull(argv[2], NULL, 10);
	print_message("seed %" PRIu64 ", %" PRIu64 " steps\n", random_state, steps);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
