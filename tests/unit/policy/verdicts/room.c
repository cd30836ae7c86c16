/*
 * room - the verdict on a claim that does not fit
 *
 * The table has what small worlds lack: lost and degraded GPUs, chunks, priorities, and how much
 * is missing where. Then follow the small worlds.
 */
#include "../../base/test.h"

#include <stdlib.h>

#include "../../../sim/common/mutants.h"
#include "policy/verdicts/room.h"
#include "room_worlds.h"

#define GPU(...)                                   \
	{                                          \
		.shareable_bytes = 15, __VA_ARGS__ \
	}
#define PARTLESS          .part_bytes = SL_LEDGER_BYTES_MAX
#define BODY(there, away) .need = {{.there_bytes = (there), .away_bytes = (away)}}
#define ASKS(bytes)       .demand = true, .need = {{.asks_bytes = (bytes)}}
#define BURST             .burst = true
#define POOL(bytes)       .pool_bytes = (bytes)

/* The claim is of the first workload; `largest` is another client's. */
static const struct row {
	const char *name;
	struct sl_room room;
	struct sl_room_gpu gpu[2];
	struct sl_room_workload workload[3];
	struct sl_room_claim claim;
	struct sl_room_client largest;
	struct sl_room_verdict want;
} rows[] = {
	{"nothing is in the way", {POOL(0)}, {GPU()}, {{PARTLESS}}, {BURST, ASKS(15)},
		{{0}}, {0}},
	{"what cannot leave", {POOL(99)}, {GPU()},
		{{PARTLESS}, {PARTLESS, {{.fixed_bytes = 10}}}}, {BURST, BODY(0, 8)},
		{{0}}, {SL_ROOM_GPU, 0, 3}},
	{"a lost GPU", {POOL(99)}, {GPU(.lost = true)}, {{PARTLESS}}, {ASKS(4)}, {{0}},
		{SL_ROOM_LOST, 0, 4}},
	{"a degraded GPU", {POOL(99)}, {GPU(.degraded = true)}, {{PARTLESS}},
		{BURST, ASKS(4)}, {{0}}, {SL_ROOM_DEGRADED, 0, 4}},
	{"that keeps a request from nothing", {POOL(99)}, {GPU(.degraded = true)},
		{{PARTLESS, {{.request_bytes = 4}}}}, {ASKS(4)}, {{0}}, {0}},
	{"and no burst from coming back", {POOL(99)},
		{GPU(.degraded = true, .host_bytes = 4)}, {{PARTLESS}},
		{BURST, BODY(0, 4)}, {{0}}, {0}},
	{"what returns is in the pool until it is back", {POOL(10), .returning_bytes = 8},
		{GPU(), {.shareable_bytes = 15, .host_bytes = 8}},
		{{PARTLESS, {{.request_bytes = 6}}}, {PARTLESS, {{.rest_bytes = 15}}}},
		{ASKS(6)}, {{0}}, {SL_ROOM_POOL, 0, 4}},
	{"a pool that was made smaller refuses no request", {POOL(4)},
		{GPU(.host_bytes = 6)}, {{PARTLESS, {{.request_bytes = 1}}}}, {ASKS(1)},
		{{0}}, {0}},
	{"nor what comes back into free memory", {POOL(4)}, {GPU(.host_bytes = 6)},
		{{PARTLESS}}, {BURST, BODY(0, 6)}, {{0}}, {0}},
	/* W/10 is on the host; 12 + 10 - 15 would have to leave again. */
	{"lent beyond its part", {POOL(20)}, {GPU(.host_bytes = 10)},
		{{4, {{0}}}, {PARTLESS, {{.request_bytes = 10}}}}, {BURST, ASKS(12)},
		{{0}}, {SL_ROOM_BOUND, 0, 3}},
	{"within its part", {POOL(20)}, {GPU(.host_bytes = 10)},
		{{7, {{0}}}, {PARTLESS, {{.request_bytes = 10}}}}, {BURST, ASKS(12)},
		{{0}}, {0}},
	{"lent beyond the pool", {POOL(20), .slack_bytes = 4}, {GPU(.host_bytes = 10)},
		{{PARTLESS}, {PARTLESS, {{.request_bytes = 10}}}}, {BURST, ASKS(12)},
		{{0}}, {SL_ROOM_POOL, 0, 1}},
	{"a higher priority takes it back without the pool", {POOL(20), .slack_bytes = 4},
		{GPU(.host_bytes = 10)},
		{{PARTLESS}, {PARTLESS, {{.request_bytes = 10}}}},
		{BURST, ASKS(12), .above_bytes = {10}}, {{0}}, {0}},
	/* Of 15 and a request of 4 the 9 leave enough, until the 6 are back beside them. */
	{"what stands on requests once bodies are back", {POOL(10)},
		{GPU(.host_bytes = 6), GPU()},
		{{PARTLESS, {{.request_bytes = 6, .seats_bytes = 6, .away_bytes = 6}}},
			{PARTLESS, {{.request_bytes = 4}, {.fixed_bytes = 15}}},
			{PARTLESS, {{0}, {.request_bytes = 5}}}},
		{BURST, ASKS(9)}, {{0}}, {SL_ROOM_POOL, 0, 1}},
	/* 8 stand on requests already; this takes 3 of its own. */
	{"nothing is lent of its own request", {POOL(0)}, {GPU()},
		{{PARTLESS, {{.request_bytes = 6}}}, {PARTLESS, {{.fixed_bytes = 12}}},
			{PARTLESS, {{.request_bytes = 5}}}},
		{BURST, ASKS(3)}, {{0}}, {0}},
	{"the leaver's part", {POOL(99)}, {GPU()},
		{{PARTLESS}, {2, {{.rest_bytes = 15}}}}, {BURST, BODY(0, 5)}, {{0}},
		{SL_ROOM_BOUND, 0, 3}},
	{"is no matter where nothing leaves", {POOL(99)}, {GPU()},
		{{PARTLESS}, {2, {{.rest_bytes = 10}}}}, {BURST, BODY(0, 5)}, {{0}}, {0}},
	/* 60 of 100 are resident, 80 asked: 40 leave, and 40 come back for it. */
	{"the way back", {POOL(90)}, {{.shareable_bytes = 100}},
		{{PARTLESS}, {PARTLESS, {{.rest_bytes = 60}}}}, {BURST, ASKS(80)}, {{60}},
		{0}},
	{"and a chunk", {POOL(90)}, {{.shareable_bytes = 100, .chunk_bytes = 4}},
		{{PARTLESS}, {PARTLESS, {{.rest_bytes = 60}}}}, {BURST, ASKS(80)}, {{60}},
		{SL_ROOM_POOL, 0, 2}},
	{"of the client with most to bring", {POOL(70)}, {{.shareable_bytes = 100}},
		{{PARTLESS}, {PARTLESS, {{.rest_bytes = 60}}}}, {BURST, ASKS(80)}, {{20}},
		{SL_ROOM_POOL, 0, 10}},
	{"asked of no body", {POOL(125)}, {{.shareable_bytes = 100, .host_bytes = 80}},
		{{PARTLESS}, {PARTLESS, {{.rest_bytes = 60}}}}, {BURST, BODY(0, 80)},
		{{60}}, {0}},
	{"held on requests", {POOL(99)}, {GPU()},
		{{PARTLESS}, {PARTLESS, {{.request_bytes = 10}}}},
		{BURST, ASKS(6), .stays = true}, {{0}}, {SL_ROOM_GPU, 0, 1}},
	/* Of 15, 5 are not claimed and 9 are a burst, which leaves 2; 7 may have to come back. */
	{"held, where a burst makes room", {POOL(14)}, {GPU(.host_bytes = 5)},
		{{PARTLESS}, {PARTLESS, {{.request_bytes = 5}}},
			{PARTLESS, {{.rest_bytes = 9}}}},
		{BURST, ASKS(3), .stays = true}, {{9}}, {0}},
	{"that has no room itself", {POOL(13)}, {GPU(.host_bytes = 5)},
		{{PARTLESS}, {PARTLESS, {{.request_bytes = 5}}},
			{PARTLESS, {{.rest_bytes = 9}}}},
		{BURST, ASKS(3), .stays = true}, {{9}}, {SL_ROOM_POOL, 0, 1}},
	/* Of 9 unclaimed, a seat of 6 that stays may stand on 4, and later ones on all. */
	{"what stays keeps from a lower priority what it needs", {POOL(0)},
		{GPU(.holds = true, .above_bytes = 4)},
		{{PARTLESS}, {PARTLESS, {{.seats_bytes = 6}}},
			{PARTLESS, {{.request_bytes = 9}}}},
		{BURST, ASKS(5), .stays = true, .above_bytes = {9}}, {{0}},
		{SL_ROOM_GPU, 0, 1}},
	{"and nothing more", {POOL(0)}, {GPU(.holds = true, .above_bytes = 4)},
		{{PARTLESS}, {PARTLESS, {{.seats_bytes = 6}}},
			{PARTLESS, {{.request_bytes = 9}}}},
		{BURST, ASKS(4), .stays = true, .above_bytes = {9}}, {{0}}, {0}},
};

static struct sl_room_verdict ask(const struct row *row)
{
	struct sl_room_workload workload[3];
	struct sl_room room = row->room;
	struct sl_room_claim claim = row->claim;

	room.gpus = 2;
	room.client = &row->largest;
	room.clients = 1;
	memcpy(room.gpu, row->gpu, sizeof(row->gpu));
	memcpy(workload, row->workload, sizeof(workload));
	claim.workload = &workload[0];
	for (uint32_t w = 0; w < SL_ARRAY_LEN(workload); w++)
		sl_room_load(&room, &workload[w]);
	return sl_room_for(&room, &claim);
}

static void tells(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_room_verdict verdict = ask(&rows[i]);

		assert_row_u64(rows[i].name, verdict.code, rows[i].want.code);
		assert_row_u64(rows[i].name, verdict.gpu, rows[i].want.gpu);
		assert_row_u64(
			rows[i].name, verdict.lacks_bytes, rows[i].want.lacks_bytes);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells),
		cmocka_unit_test(room_worlds_keep_promises),
	};

	if (argc > 2 && strcmp(argv[1], "--seed") == 0)
		room_worlds_seed = strtoull(argv[2], NULL, 10);
	else if (argc > 1 && !sl_mutant_switch(argv[1]))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
