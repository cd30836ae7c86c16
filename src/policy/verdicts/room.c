/*
 * room - see the header
 *
 * The claim is added to a second copy, and the sums of both are compared. A sum that was too large
 * before is no reason to refuse the claim: a pool that was made smaller than its content is not in
 * the way of a claim that moves nothing.
 *
 * Over all orders in which clients answer, the worst moment for I2 is one sum: everything has left,
 * requests first, every seated demand is granted, nothing is back. A leaving byte adds itself to
 * the pool, and takes itself off what is lent only if it was a burst. A grant only adds; a return
 * only subtracts. The sum is an upper bound, so it is compared with the pool, never with the sum
 * without the claim: a bound that was too high before would hide what the claim adds.
 */
#include "policy/verdicts/room.h"

#include <string.h>

#include "policy/mutant.h"

uint64_t sl_room_here(const struct sl_room_share *share)
{
	return share->fixed_bytes + share->seats_bytes - share->away_bytes +
	       share->rest_bytes;
}

uint64_t sl_room_burst(const struct sl_room_share *share)
{
	return sl_sub_sat(sl_room_here(share), share->request_bytes);
}

/* The part of it that can leave, if not now. */
static uint64_t movable_burst(const struct sl_room_share *share)
{
	return sl_sub_sat(sl_room_here(share),
		sl_max_u64(share->request_bytes, share->lasts_bytes));
}

static uint64_t uncovered(const struct sl_room_share *share)
{
	return sl_sub_sat(share->request_bytes, share->fixed_bytes + share->seats_bytes);
}

#define ONCE    1ull
#define NO_MORE (-ONCE) /* sums wrap back to what they were */

static void count(struct sl_room_gpu *gpu, const struct sl_room_share *share,
	uint64_t part_bytes, uint64_t times)
{
	gpu->fixed_bytes += times * share->fixed_bytes;
	gpu->seats_bytes += times * share->seats_bytes;
	gpu->away_bytes += times * share->away_bytes;
	gpu->rest_bytes += times * share->rest_bytes;
	gpu->unclaimed_bytes +=
		times * sl_sub_sat(share->request_bytes, sl_room_here(share));
	gpu->wanting_bytes += times * sl_sub_sat(uncovered(share), share->rest_bytes);
	gpu->within_bytes += times * sl_sub_sat(share->rest_bytes, sl_room_burst(share));
	gpu->uncovered_bytes += times * uncovered(share);
	gpu->lets_bytes += times * sl_min_u64(share->rest_bytes, part_bytes);
	gpu->gives_bytes += times * sl_min_u64(movable_burst(share), part_bytes);
}

/* What the workload's part of the pool lets leave on all GPUs together. */
static uint64_t lets(const struct sl_room *room, const struct sl_room_workload *workload)
{
	uint64_t bytes = 0;

	for (uint32_t gpu = 0; gpu < room->gpus; gpu++)
		bytes += workload->on[gpu].rest_bytes;
	return sl_min_u64(bytes, workload->part_bytes);
}

void sl_room_load(struct sl_room *room, const struct sl_room_workload *workload)
{
	for (uint32_t gpu = 0; gpu < room->gpus; gpu++)
		count(&room->gpu[gpu], &workload->on[gpu], workload->part_bytes, ONCE);
	room->lets_bytes += lets(room, workload);
}

void sl_room_take(struct sl_room *room, struct sl_room_workload *workload, uint32_t gpu,
	const struct sl_room_share *bytes, bool gone)
{
	struct sl_room_share *share = &workload->on[gpu];
	uint64_t times = gone ? NO_MORE : ONCE;

	room->lets_bytes -= lets(room, workload);
	count(&room->gpu[gpu], share, workload->part_bytes, NO_MORE);
	share->request_bytes += times * bytes->request_bytes;
	share->fixed_bytes += times * bytes->fixed_bytes;
	share->lasts_bytes += times * bytes->lasts_bytes;
	share->seats_bytes += times * bytes->seats_bytes;
	share->away_bytes += times * bytes->away_bytes;
	share->rest_bytes += times * bytes->rest_bytes;
	count(&room->gpu[gpu], share, workload->part_bytes, ONCE);
	room->lets_bytes += lets(room, workload);
}

static uint64_t need(const struct sl_room_need *of)
{
	return of->there_bytes + of->away_bytes + of->asks_bytes;
}

static void seat(struct sl_room_share *share, const struct sl_room_need *of, bool stays)
{
	uint64_t held = stays ? of->asks_bytes : 0;

	share->rest_bytes -= of->there_bytes;
	share->seats_bytes += need(of) - held;
	share->away_bytes += of->away_bytes;
	share->fixed_bytes += held;
	share->lasts_bytes += held;
}

/* Memory that cannot be moved takes no requests of others, except those above it. */
static bool takes_nothing(const struct sl_room_claim *claim, uint32_t g)
{
	const struct sl_room_need *of = &claim->need[g];

	return claim->burst && ((claim->demand && claim->stays && of->asks_bytes) ||
				       (claim->keeps && of->away_bytes));
}

/* Until it is granted, later seats must not take them either. */
static uint64_t above_with(
	const struct sl_room_gpu *gpu, const struct sl_room_claim *claim, uint32_t g)
{
	if (!takes_nothing(claim, g))
		return gpu->above_bytes;
	return gpu->holds ? sl_min_u64(gpu->above_bytes, claim->above_bytes[g])
			  : claim->above_bytes[g];
}

static void add(struct sl_room *room, struct sl_room_workload *workload,
	const struct sl_room_claim *claim)
{
	uint64_t part = workload->part_bytes;

	room->lets_bytes -= lets(room, workload);
	for (uint32_t gpu = 0; gpu < room->gpus; gpu++) {
		if (!need(&claim->need[gpu]))
			continue;
		count(&room->gpu[gpu], &workload->on[gpu], part, NO_MORE);
		seat(&workload->on[gpu], &claim->need[gpu], claim->stays);
		room->gpu[gpu].above_bytes = above_with(&room->gpu[gpu], claim, gpu);
		room->gpu[gpu].holds |= takes_nothing(claim, gpu);
		count(&room->gpu[gpu], &workload->on[gpu], part, ONCE);
	}
	room->lets_bytes += lets(room, workload);
}

void sl_room_add(struct sl_room *room, const struct sl_room_claim *claim)
{
	add(room, claim->workload, claim);
}

/* The room without and with the claim. */
struct both {
	const struct sl_room *without, *with;
	const struct sl_room_claim *claim;
	/* The claim's workload, with the claim. */
	const struct sl_room_workload *workload;
};

/* Whatever of this exceeds the GPU must leave. */
static uint64_t all_of(const struct sl_room_gpu *gpu)
{
	return gpu->fixed_bytes + gpu->seats_bytes + gpu->rest_bytes;
}

static uint64_t wanting(const struct sl_room_gpu *gpu)
{
	return sl_sub_sat(gpu->wanting_bytes, gpu->above_bytes);
}

/* Beside a burst that stays, requests must have room, too, except those above it. */
static uint64_t least_out(const struct sl_room_gpu *gpu)
{
	uint64_t all = all_of(gpu);

	if (SL_MUTANT(ROOM_HELD_ON_LOAN, gpu->holds, false))
		all += wanting(gpu);
	return sl_sub_sat(all, gpu->shareable_bytes);
}

/* Leaving bytes of requests make no room for requests. */
uint64_t sl_room_out(const struct sl_room_gpu *gpu)
{
	uint64_t least = least_out(gpu);
	uint64_t seats = sl_sub_sat(all_of(gpu), gpu->shareable_bytes);

	if (!least || !SL_MUTANT(ROOM_HELD_ON_LOAN, gpu->holds, false))
		return least;
	return sl_max_u64(seats, sl_min_u64(least + gpu->within_bytes, gpu->rest_bytes));
}

uint64_t sl_room_spare(const struct sl_room_gpu *gpu)
{
	return sl_sub_sat(
		gpu->shareable_bytes, all_of(gpu) + (gpu->holds ? wanting(gpu) : 0));
}

static bool is_burst_demand(const struct both *both)
{
	return both->claim->burst && both->claim->demand;
}

/* A burst demand moves whole chunks: the last leaver may give more than told. */
static uint64_t out_with(const struct both *both, uint32_t g)
{
	const struct sl_room_gpu *gpu = &both->with->gpu[g];
	uint64_t bytes = sl_room_out(gpu);

	if (is_burst_demand(both) && bytes > sl_room_out(&both->without->gpu[g]))
		bytes += sl_min_u64(SL_MUTANT(ROOM_CHUNKS_UNSEEN, gpu->chunk_bytes, 0),
			sl_sub_sat(gpu->rest_bytes, bytes));
	return bytes;
}

/* What would stand on uncovered requests after out_bytes have left, bytes within requests first.
 * there: the bytes there before; unclaimed: what they leave unclaimed. */
static uint64_t on_requests(const struct sl_room_gpu *gpu, uint64_t out_bytes,
	uint64_t there, uint64_t unclaimed)
{
	unclaimed += SL_MUTANT(
		ROOM_BURSTS_LEAVE_FIRST, sl_min_u64(out_bytes, gpu->within_bytes), 0);
	return sl_sub_sat(there + unclaimed, gpu->shareable_bytes + out_bytes);
}

/* While no body is back. */
static uint64_t lent(const struct sl_room_gpu *gpu, uint64_t out_bytes, uint64_t above)
{
	return on_requests(gpu, out_bytes, all_of(gpu) - gpu->away_bytes,
		sl_sub_sat(gpu->unclaimed_bytes, above));
}

/* Once all bodies are back. */
static uint64_t lent_at_last(
	const struct sl_room_gpu *gpu, uint64_t out_bytes, uint64_t above)
{
	return on_requests(
		gpu, out_bytes, all_of(gpu), sl_sub_sat(gpu->wanting_bytes, above));
}

/* Sums over all GPUs. */
struct sums {
	uint64_t host_bytes, out_bytes, lent_bytes, away_bytes;
	bool moves;  /* more leaves than without the claim */
	bool lends;  /* it is a demand, and some of it uses other requests */
	bool within; /* more leaves than bursts have there */
};

static void sum(struct sums *sums, const struct both *both, uint32_t g)
{
	const struct sl_room_gpu *gpu = &both->with->gpu[g];
	const struct sl_room_gpu *before = &both->without->gpu[g];
	uint64_t bytes = out_with(both, g), above = both->claim->above_bytes[g];

	sums->host_bytes += gpu->host_bytes;
	sums->out_bytes += bytes;
	sums->lent_bytes += lent(gpu, bytes, above);
	sums->away_bytes += gpu->away_bytes;
	sums->moves |= SL_MUTANT(
		ALL_SUMS_COUNT, bytes && least_out(gpu) > least_out(before), true);
	sums->within |= bytes > gpu->rest_bytes - gpu->within_bytes;
	sums->lends |=
		both->claim->demand && both->claim->need[g].asks_bytes &&
		lent_at_last(gpu, bytes, above) >
			SL_MUTANT(ALL_SUMS_COUNT,
				lent_at_last(before, sl_room_out(before), above), 0);
}

static struct sums sums(const struct both *both)
{
	struct sums sums = {0};

	for (uint32_t g = 0; g < both->with->gpus; g++)
		sum(&sums, both, g);
	return sums;
}

static uint64_t back_of(
	const struct both *both, const struct sl_room_client *client, bool own)
{
	uint64_t bytes = 0;

	for (uint32_t g = 0; g < both->with->gpus; g++) {
		uint64_t has =
			client->bytes[g] + (own ? both->claim->need[g].asks_bytes : 0);

		bytes += sl_min_u64(
			has, both->with->gpu[g].host_bytes + out_with(both, g));
	}
	return bytes;
}

/* What the client with most to bring back would bring; one chunk more may move for it. */
static uint64_t way_back(const struct both *both)
{
	const struct sl_room *room = both->with;
	uint64_t most = back_of(both, &both->claim->own, true), chunk = 0;

	for (uint32_t i = 0; i < room->clients; i++)
		most = sl_max_u64(most, back_of(both, &room->client[i], false));
	for (uint32_t g = 0; g < room->gpus; g++)
		chunk = sl_max_u64(chunk, room->gpu[g].chunk_bytes);
	return SL_MUTANT(ROOM_NO_WAY_BACK, most + chunk, 0);
}

static struct sl_room_verdict lacks(enum sl_room_code code, uint32_t gpu, uint64_t bytes)
{
	return (struct sl_room_verdict){bytes ? code : SL_ROOM_OK, gpu, bytes};
}

/* On one GPU, before anything is added to a copy: most claims that do not fit end here. */
static struct sl_room_verdict fits_gpu(
	const struct sl_room *room, const struct sl_room_claim *claim, uint32_t g)
{
	const struct sl_room_gpu *gpu = &room->gpu[g];
	uint64_t needs = need(&claim->need[g]);
	uint64_t bytes = gpu->fixed_bytes + gpu->seats_bytes + needs;
	uint64_t others = gpu->uncovered_bytes - uncovered(&claim->workload->on[g]);

	if (SL_MUTANT(ROOM_LOST_USED, gpu->lost, false))
		return lacks(SL_ROOM_LOST, g, needs);
	if (SL_MUTANT(ROOM_WHILE_DEGRADED, gpu->degraded && claim->burst && claim->demand,
		    false))
		return lacks(SL_ROOM_DEGRADED, g, needs);
	/* A burst that stays leaves requests free for their owners only. */
	if (SL_MUTANT(
		    ROOM_HELD_ON_REQUESTS, gpu->holds || takes_nothing(claim, g), false))
		bytes += sl_sub_sat(others, above_with(gpu, claim, g));
	return lacks(SL_ROOM_GPU, g, sl_sub_sat(bytes, gpu->shareable_bytes));
}

/* How many bytes must leave but may not, because the parts of their workloads in the pool are used
 * up; 0 if the claim does not raise that number. Even a claim that moves nothing can raise it: it
 * may seat the only bytes whose workload still had room in its part. */
static uint64_t kept_more(uint64_t out_bytes, uint64_t lets_bytes, uint64_t out_before,
	uint64_t lets_before)
{
	uint64_t kept = sl_sub_sat(out_bytes, lets_bytes);

	return kept > sl_sub_sat(out_before, lets_before) ? kept : 0;
}

static struct sl_room_verdict fits_part(const struct both *both, uint32_t g)
{
	const struct sl_room_gpu *with = &both->with->gpu[g];
	const struct sl_room_gpu *without = &both->without->gpu[g];

	return lacks(SL_ROOM_BOUND, g,
		SL_MUTANT(ROOM_PARTS_UNSEEN,
			kept_more(out_with(both, g), with->lets_bytes,
				sl_room_out(without), without->lets_bytes),
			0));
}

/* A workload has one part for all GPUs; what leaves GPUs where nothing must leave does not help. */
static struct sl_room_verdict fits_parts(const struct both *both, uint64_t out_bytes)
{
	uint64_t before = 0, with = 0, without = 0;

	for (uint32_t g = 0; g < both->without->gpus; g++) {
		before += sl_room_out(&both->without->gpu[g]);
		if (!out_with(both, g))
			continue;
		with += both->with->gpu[g].lets_bytes;
		without += both->without->gpu[g].lets_bytes;
	}
	return lacks(SL_ROOM_BOUND, 0,
		SL_MUTANT(ROOM_PARTS_APART,
			kept_more(out_bytes, sl_min_u64(with, both->with->lets_bytes),
				before, sl_min_u64(without, both->without->lets_bytes)),
			0));
}

/* How many burst bytes would stand on requests and could not leave, because the parts of their
 * workloads are used up. What leaves this GPU for seats does not change that: a burst byte takes
 * itself off both sides, another byte frees as much as it leaves unclaimed. */
static uint64_t owed(const struct sl_room_gpu *gpu, uint64_t above)
{
	return sl_sub_sat(lent(gpu, 0, above), gpu->gives_bytes);
}

static struct sl_room_verdict fits_requests(const struct both *both, uint32_t g)
{
	uint64_t above = both->claim->above_bytes[g];
	uint64_t bytes = owed(&both->with->gpu[g], above);

	if (bytes <= owed(&both->without->gpu[g], above))
		return (struct sl_room_verdict){0};
	return lacks(SL_ROOM_BOUND, g, SL_MUTANT(LENT_BEYOND_PART, bytes, 0));
}

static struct sl_room_verdict fits_pool(const struct both *both, const struct sums *sums)
{
	const struct sl_room *room = both->with;
	uint64_t usable = sl_sub_sat(room->pool_bytes, room->slack_bytes);
	uint64_t all = sums->host_bytes + sums->out_bytes;
	uint64_t later = all - room->returning_bytes;
	uint64_t over = 0;

	if (sums->moves)
		over = sl_sub_sat(
			SL_MUTANT(RETURNING_IS_BACK, all, later), room->pool_bytes);
	if (!over && sums->moves && sums->within && both->claim->turns)
		over = sl_sub_sat(
			SL_MUTANT(TURNS_HAVE_NO_WAY_BACK, later + way_back(both), 0),
			room->pool_bytes);
	if (over || !both->claim->burst)
		return lacks(SL_ROOM_POOL, 0, over);
	if (sums->moves || sums->lends)
		over = sl_sub_sat(later + sums->lent_bytes,
			usable + SL_MUTANT(BODIES_ARE_BACK, 0, sums->away_bytes));
	if (!over && sums->moves && SL_MUTANT(P3_FOR_BODIES, both->claim->demand, true))
		over = sl_sub_sat(later + way_back(both), usable);
	return lacks(SL_ROOM_POOL, 0, over);
}

static struct sl_room_verdict fits(const struct both *both)
{
	struct sl_room_verdict verdict = {0};
	struct sums all = sums(both);

	for (uint32_t g = 0; g < both->with->gpus && !verdict.code; g++)
		verdict = fits_part(both, g);
	if (!verdict.code)
		verdict = fits_parts(both, all.out_bytes);
	if (!verdict.code)
		verdict = fits_pool(both, &all);
	for (uint32_t g = 0; g < both->with->gpus && !verdict.code; g++) {
		if (both->claim->burst)
			verdict = fits_requests(both, g);
	}
	verdict.moves = all.moves;
	return verdict;
}

/* The common case: nothing more must leave for the claim, it is lent nothing, and no part keeps
 * anything. Then no judged sum grows. */
static bool changes_nothing(const struct sl_room *room, const struct sl_room_claim *claim)
{
	uint64_t rest = 0;

	for (uint32_t g = 0; g < room->gpus; g++) {
		const struct sl_room_gpu *gpu = &room->gpu[g];
		uint64_t more = claim->need[g].away_bytes + claim->need[g].asks_bytes;

		if (need(&claim->need[g]) && gpu->holds)
			return false;
		if (more && all_of(gpu) + more > gpu->shareable_bytes)
			return false;
		if (gpu->lets_bytes < gpu->rest_bytes)
			return false;
		rest += gpu->rest_bytes;
	}
	return room->lets_bytes == rest && !(claim->burst && claim->demand);
}

struct sl_room_verdict sl_room_for(
	const struct sl_room *room, const struct sl_room_claim *claim)
{
	struct sl_room with;
	struct sl_room_workload workload;

	for (uint32_t g = 0; g < room->gpus; g++) {
		struct sl_room_verdict verdict = {0};

		if (need(&claim->need[g]))
			verdict = fits_gpu(room, claim, g);
		if (verdict.code)
			return verdict;
	}
	if (changes_nothing(room, claim))
		return (struct sl_room_verdict){0};
	/* Only existing GPUs: each plan asks this for each claim. */
	memcpy(&with, room,
		offsetof(struct sl_room, gpu) + room->gpus * sizeof(room->gpu[0]));
	memcpy(&workload, claim->workload,
		offsetof(struct sl_room_workload, on) +
			room->gpus * sizeof(workload.on[0]));
	add(&with, &workload, claim);
	return fits(&(struct both){room, &with, claim, &workload});
}
