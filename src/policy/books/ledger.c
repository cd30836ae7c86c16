/*
 * ledger - see the header
 *
 * Every change of a cell is bracketed: the workload's part is taken out of the GPU's derived sums,
 * the cell is changed on all three levels, and the part is put back. That costs a dozen additions,
 * and no path can forget a sum.
 */
#include "policy/books/ledger.h"

#include <string.h>

#include "policy/mutant.h"

static uint64_t clamp(uint64_t bytes)
{
	return sl_min_u64(bytes, SL_LEDGER_BYTES_MAX);
}

uint64_t sl_ledger_all(const struct sl_ledger_cell *cell)
{
	return cell->backing_bytes + SL_MUTANT(GRANT_UNCOUNTED, cell->granted_bytes, 0) +
	       SL_MUTANT(HIDDEN_UNCOUNTED, cell->hidden_bytes, 0);
}

uint64_t sl_ledger_live(const struct sl_ledger_cell *cell)
{
	return sl_ledger_all(cell) - SL_MUTANT(EVICTED_OCCUPIES, cell->evicted_bytes, 0) +
	       SL_MUTANT(RETURNING_UNCOUNTED, cell->returning_bytes, 0);
}

uint64_t sl_ledger_evictable(const struct sl_ledger_cell *cell)
{
	return sl_sub_sat(cell->backing_bytes,
		cell->evicted_bytes + SL_MUTANT(HELD_IS_EVICTED, cell->held_bytes, 0));
}

bool sl_ledger_is_gone(const struct sl_ledger_cell *cell)
{
	return !(sl_ledger_live(cell) + cell->paid_bytes + cell->held_bytes +
		 cell->holding_bytes);
}

uint64_t sl_ledger_evictable_on(const struct sl_ledger_cell *cell, uint32_t mask)
{
	uint64_t bytes = 0;

	for (uint32_t left = mask; left; left &= left - 1)
		bytes += sl_ledger_evictable(&cell[__builtin_ctz(left)]);
	return bytes;
}

/* A client that announces more held bytes than it has holds what it has. */
uint64_t sl_ledger_fixed(const struct sl_ledger_cell *cell)
{
	uint64_t held = SL_MUTANT(HELD_UNCOUNTED, cell->held_bytes, 0) +
			SL_MUTANT(HOLDING_UNCOUNTED, cell->holding_bytes, 0);

	return cell->hidden_bytes +
	       sl_min_u64(held, cell->backing_bytes + cell->granted_bytes);
}

uint64_t sl_ledger_use(const struct sl_ledger_account *account, uint32_t gpu)
{
	return SL_MUTANT(EVICTED_IS_NO_USE, sl_ledger_all(&account->cell[gpu]),
		sl_ledger_live(&account->cell[gpu]));
}

uint64_t sl_ledger_here(const struct sl_ledger_account *account, uint32_t gpu)
{
	return sl_ledger_live(&account->cell[gpu]);
}

uint64_t sl_ledger_request(const struct sl_ledger_account *account, uint32_t gpu)
{
	return account->gpu_mask >> gpu & 1 ? account->request_bytes : 0;
}

uint64_t sl_ledger_unclaimed(const struct sl_ledger_account *account, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_request(account, gpu), sl_ledger_here(account, gpu));
}

uint64_t sl_ledger_staying(const struct sl_ledger_account *account, uint32_t gpu)
{
	return SL_MUTANT(KEPT_UNPROMISED, account->stays, false)
		       ? sl_ledger_here(account, gpu)
		       : sl_ledger_fixed(&account->cell[gpu]);
}

uint64_t sl_ledger_claim(const struct sl_ledger_account *account, uint32_t gpu)
{
	return sl_max_u64(
		sl_ledger_request(account, gpu), sl_ledger_staying(account, gpu));
}

bool sl_ledger_holds(const struct sl_ledger_account *account, uint32_t mask)
{
	sl_each_gpu (gpu, account->touched & mask) {
		const struct sl_ledger_cell *cell = &account->cell[gpu];

		if (cell->backing_bytes || cell->granted_bytes)
			return true;
	}
	return false;
}

static void take_share_out(
	struct sl_ledger_gpu *g, const struct sl_ledger_account *a, uint32_t gpu)
{
	g->unclaimed_bytes -= sl_ledger_unclaimed(a, gpu);
	g->claims_bytes -= sl_ledger_claim(a, gpu);
}

static void put_share_back(
	struct sl_ledger_gpu *g, const struct sl_ledger_account *a, uint32_t gpu)
{
	g->unclaimed_bytes += sl_ledger_unclaimed(a, gpu);
	g->claims_bytes += sl_ledger_claim(a, gpu);
}

static void cell_add(struct sl_ledger_cell *cell, const struct sl_ledger_cell *add)
{
	cell->backing_bytes += add->backing_bytes;
	cell->granted_bytes += add->granted_bytes;
	cell->hidden_bytes += add->hidden_bytes;
	cell->paid_bytes += add->paid_bytes;
	cell->away_bytes += add->away_bytes;
	cell->held_bytes += add->held_bytes;
	cell->holding_bytes += add->holding_bytes;
	cell->dying_bytes += add->dying_bytes;
	cell->evicted_bytes += add->evicted_bytes;
	cell->returning_bytes += add->returning_bytes;
	cell->leaving_bytes += add->leaving_bytes;
}

static void cell_subtract(struct sl_ledger_cell *cell, const struct sl_ledger_cell *less)
{
	cell->backing_bytes -= less->backing_bytes;
	cell->granted_bytes -= less->granted_bytes;
	cell->hidden_bytes -= less->hidden_bytes;
	cell->paid_bytes -= less->paid_bytes;
	cell->away_bytes -= less->away_bytes;
	cell->held_bytes -= less->held_bytes;
	cell->holding_bytes -= less->holding_bytes;
	cell->dying_bytes -= less->dying_bytes;
	cell->evicted_bytes -= less->evicted_bytes;
	cell->returning_bytes -= less->returning_bytes;
	cell->leaving_bytes -= less->leaving_bytes;
}

static void touch(uint32_t *touched, const struct sl_ledger_cell *cell, uint32_t gpu)
{
	static const struct sl_ledger_cell nothing;

	*touched &= ~(1u << gpu);
	*touched |= (uint32_t)(memcmp(cell, &nothing, sizeof(nothing)) != 0) << gpu;
}

/* The only place where a client's numbers change. */
static void set_cell(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, struct sl_ledger_cell to)
{
	struct sl_ledger_gpu *g = &ledger->gpu[gpu];
	struct sl_ledger_account *account = holding->account;
	struct sl_ledger_cell *from = &holding->cell[gpu];

	to.held_bytes = sl_min_u64(
		to.held_bytes, SL_MUTANT(HELD_UNCLAMPED, to.backing_bytes, UINT64_MAX));
	to.evicted_bytes = sl_min_u64(to.evicted_bytes, to.backing_bytes);
	to.returning_bytes = sl_min_u64(to.returning_bytes, to.evicted_bytes);
	to.leaving_bytes =
		sl_min_u64(to.leaving_bytes, to.backing_bytes - to.evicted_bytes);
	take_share_out(g, account, gpu);
	ledger->evicted_bytes += to.evicted_bytes - from->evicted_bytes;
	ledger->leaving_bytes += to.leaving_bytes - from->leaving_bytes;
	cell_subtract(&account->cell[gpu], from);
	cell_subtract(&g->sum, from);
	cell_add(&account->cell[gpu], &to);
	cell_add(&g->sum, &to);
	*from = to;
	touch(&holding->touched, from, gpu);
	touch(&account->touched, &account->cell[gpu], gpu);
	put_share_back(g, account, gpu);
}

void sl_ledger_set_gpu(struct sl_ledger *ledger, uint32_t gpu, uint64_t capacity_bytes,
	uint64_t reserve_bytes, uint64_t driver_bytes)
{
	struct sl_ledger_gpu *g = &ledger->gpu[gpu];

	g->present = true;
	g->capacity_bytes = clamp(capacity_bytes);
	g->reserve_bytes = clamp(reserve_bytes);
	g->driver_bytes = clamp(driver_bytes);
}

void sl_ledger_set_unmanaged(struct sl_ledger *ledger, uint32_t gpu, uint64_t bytes)
{
	ledger->gpu[gpu].unmanaged_bytes = clamp(bytes);
}

void sl_ledger_bind(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint32_t gpu_mask, uint64_t request_bytes, uint64_t limit_bytes)
{
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		take_share_out(&ledger->gpu[gpu], account, gpu);
	account->gpu_mask = gpu_mask;
	account->request_bytes = clamp(request_bytes);
	account->limit_bytes = clamp(limit_bytes);
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++) {
		struct sl_ledger_gpu *g = &ledger->gpu[gpu];

		put_share_back(g, account, gpu);
		if (!(gpu_mask >> gpu & 1))
			continue;
		g->requests_bytes += account->request_bytes;
		g->workloads++;
		g->burstable += account->limit_bytes > account->request_bytes;
	}
}

void sl_ledger_unbind(struct sl_ledger *ledger, struct sl_ledger_account *account)
{
	uint32_t mask = account->gpu_mask;

	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++) {
		struct sl_ledger_gpu *g = &ledger->gpu[gpu];

		if (mask >> gpu & 1) {
			g->requests_bytes -= account->request_bytes;
			g->workloads--;
			g->burstable -= account->limit_bytes > account->request_bytes;
		}
		take_share_out(g, account, gpu);
	}
	account->gpu_mask = 0;
	account->request_bytes = account->limit_bytes = 0;
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		put_share_back(&ledger->gpu[gpu], account, gpu);
}

void sl_ledger_change(struct sl_ledger *ledger, struct sl_ledger_account *account,
	uint64_t request_bytes, uint64_t limit_bytes)
{
	uint32_t mask = account->gpu_mask;

	sl_ledger_unbind(ledger, account);
	sl_ledger_bind(ledger, account, mask, request_bytes, limit_bytes);
}

void sl_ledger_set_stays(
	struct sl_ledger *ledger, struct sl_ledger_account *account, bool stays)
{
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		take_share_out(&ledger->gpu[gpu], account, gpu);
	account->stays = stays;
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		put_share_back(&ledger->gpu[gpu], account, gpu);
}

void sl_ledger_grant(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.granted_bytes += bytes;
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_commit(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t granted_bytes, uint64_t used_bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.granted_bytes = sl_sub_sat(to.granted_bytes, granted_bytes);
	to.backing_bytes += SL_MUTANT(COMMIT_KEEPS_REST, used_bytes, granted_bytes);
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_hold(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.holding_bytes += clamp(bytes);
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t holding_bytes, uint64_t used_bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.holding_bytes = sl_sub_sat(to.holding_bytes, clamp(holding_bytes));
	to.held_bytes += SL_MUTANT(COMMIT_NOT_HELD, clamp(used_bytes), 0);
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_set_held(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.held_bytes = SL_MUTANT(HELD_ADDS, 0, to.held_bytes) + clamp(bytes);
	set_cell(ledger, holding, gpu, to);
}

uint64_t sl_ledger_free(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];
	uint64_t freed =
		SL_MUTANT(FREE_WRAPS, sl_min_u64(bytes, to.backing_bytes), bytes);

	to.backing_bytes -= freed;
	set_cell(ledger, holding, gpu, to);
	return freed;
}

void sl_ledger_set_backing(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.backing_bytes = SL_MUTANT(REPORT_ADDS, 0, to.backing_bytes) + clamp(bytes);
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_set_evicted(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.evicted_bytes = bytes;
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_set_returning(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.returning_bytes = bytes;
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_set_leaving(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.leaving_bytes = bytes;
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_move(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t from, uint32_t to)
{
	struct sl_ledger_cell sum = holding->cell[to];

	if (!(holding->touched >> from & 1))
		return;
	cell_add(&sum, &holding->cell[from]);
	set_cell(ledger, holding, from, (struct sl_ledger_cell){0});
	set_cell(ledger, holding, to, sum);
}

uint64_t sl_ledger_free_evicted(struct sl_ledger *ledger,
	struct sl_ledger_holding *holding, uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];
	uint64_t freed = sl_min_u64(bytes, to.backing_bytes);

	to.backing_bytes -= freed;
	to.evicted_bytes = SL_MUTANT(FREED_STAYS_EVICTED,
		sl_sub_sat(to.evicted_bytes, freed), to.evicted_bytes);
	set_cell(ledger, holding, gpu, to);
	return freed;
}

/* What the reserve can pay of this client, including what it pays already. */
static uint64_t room_for(
	const struct sl_ledger *ledger, const struct sl_ledger_cell *cell, uint32_t gpu)
{
	const struct sl_ledger_gpu *g = &ledger->gpu[gpu];

	uint64_t reserve = SL_MUTANT(RESERVE_PAYS_NOTHING,
		SL_MUTANT(RESERVE_WITHOUT_END, g->reserve_bytes, UINT64_MAX), 0);

	return sl_sub_sat(
		reserve, g->driver_bytes + g->sum.paid_bytes - cell->paid_bytes);
}

uint64_t sl_ledger_reserve_room(const struct sl_ledger *ledger, uint32_t gpu)
{
	return room_for(ledger, &(struct sl_ledger_cell){0}, gpu);
}

uint64_t sl_ledger_entry(
	const struct sl_ledger *ledger, const struct sl_ledger_cell *cell, uint32_t gpu)
{
	return sl_sub_sat(cell->away_bytes, sl_ledger_reserve_room(ledger, gpu));
}

uint64_t sl_ledger_measured(const struct sl_ledger_cell *cell)
{
	return cell->hidden_bytes + cell->paid_bytes;
}

void sl_ledger_set_hidden(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	bytes = clamp(bytes) + SL_MUTANT(HIDDEN_ADDS, 0, sl_ledger_measured(&to));
	to.paid_bytes = SL_MUTANT(
		RESERVE_PAYS_NOTHING, sl_min_u64(bytes, room_for(ledger, &to, gpu)), 0);
	to.hidden_bytes = bytes - to.paid_bytes;
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_set_away(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];

	to.away_bytes = clamp(bytes);
	set_cell(ledger, holding, gpu, to);
}

void sl_ledger_die(struct sl_ledger *ledger, struct sl_ledger_holding *holding)
{
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *cell = &holding->cell[gpu];
		uint64_t dying = cell->backing_bytes + cell->hidden_bytes -
				 SL_MUTANT(EVICTED_DIES_HERE, cell->evicted_bytes, 0) +
				 cell->returning_bytes;

		if (!(holding->touched >> gpu & 1))
			continue;
		/* It may have created its grant in its last moment. */
		dying += SL_MUTANT(DYING_WITHOUT_GRANTS, cell->granted_bytes, 0);
		set_cell(ledger, holding, gpu,
			(struct sl_ledger_cell){.paid_bytes = cell->paid_bytes,
				.dying_bytes = SL_MUTANT(NO_DYING, dying, 0)});
	}
}

void sl_ledger_release(struct sl_ledger *ledger, struct sl_ledger_holding *holding,
	uint32_t gpu, uint64_t remaining_bytes)
{
	struct sl_ledger_cell to = holding->cell[gpu];
	uint64_t remaining = SL_MUTANT(RELEASE_WHOLE, remaining_bytes, 0);

	to.paid_bytes = sl_min_u64(to.paid_bytes, remaining);
	to.dying_bytes = sl_min_u64(to.dying_bytes, remaining - to.paid_bytes);
	set_cell(ledger, holding, gpu, to);
}

uint64_t sl_ledger_shareable(const struct sl_ledger *ledger, uint32_t gpu)
{
	const struct sl_ledger_gpu *g = &ledger->gpu[gpu];

	return sl_sub_sat(g->capacity_bytes,
		g->reserve_bytes + SL_MUTANT(UNMANAGED_IGNORED, g->unmanaged_bytes, 0));
}

uint64_t sl_ledger_resident(const struct sl_ledger *ledger, uint32_t gpu)
{
	const struct sl_ledger_cell *sum = &ledger->gpu[gpu].sum;

	return sl_ledger_live(sum) + SL_MUTANT(DYING_IS_FREE, sum->dying_bytes, 0);
}

uint64_t sl_ledger_free_bytes(const struct sl_ledger *ledger, uint32_t gpu)
{
	return sl_sub_sat(
		sl_ledger_shareable(ledger, gpu), sl_ledger_resident(ledger, gpu));
}

uint64_t sl_ledger_overlap(const struct sl_ledger *ledger, uint32_t gpu)
{
	return sl_sub_sat(
		sl_ledger_resident(ledger, gpu) + ledger->gpu[gpu].unclaimed_bytes,
		sl_ledger_shareable(ledger, gpu));
}

bool sl_ledger_is_degraded(const struct sl_ledger *ledger, uint32_t gpu)
{
	uint64_t needed = ledger->gpu[gpu].claims_bytes;

	needed = SL_MUTANT(DEGRADED_BY_BURSTS, needed,
		sl_max_u64(needed, sl_ledger_resident(ledger, gpu)));
	return needed > sl_ledger_shareable(ledger, gpu);
}

uint64_t sl_ledger_excess(const struct sl_ledger *ledger, uint32_t gpu)
{
	return sl_sub_sat(
		ledger->gpu[gpu].claims_bytes, sl_ledger_shareable(ledger, gpu));
}

/* --- audit --- */

void sl_ledger_audit_begin(struct sl_ledger_audit *audit, const struct sl_ledger *ledger)
{
	*audit = (struct sl_ledger_audit){.ledger = ledger};
}

void sl_ledger_audit_open(
	struct sl_ledger_audit *audit, const struct sl_ledger_account *account)
{
	audit->account = account;
	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		audit->mine[gpu] = (struct sl_ledger_cell){0};
}

void sl_ledger_audit_holding(
	struct sl_ledger_audit *audit, const struct sl_ledger_holding *holding)
{
	for (uint32_t left = holding->touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		cell_add(&audit->mine[gpu], &holding->cell[gpu]);
	}
}

static int differs(uint64_t kept, uint64_t counted, const char *what, uint32_t gpu,
	struct sl_error *err)
{
	if (kept == counted)
		return 0;
	sl_error_set(err, "ledger: GPU %u: %s is kept as %llu, counted as %llu", gpu,
		what, (unsigned long long)kept, (unsigned long long)counted);
	return 1;
}

static int cells_differ(const struct sl_ledger_cell *kept,
	const struct sl_ledger_cell *counted, uint32_t gpu, struct sl_error *err)
{
	return differs(kept->backing_bytes, counted->backing_bytes, "backing", gpu,
		       err) ||
	       differs(kept->granted_bytes, counted->granted_bytes, "granted", gpu,
		       err) ||
	       differs(kept->hidden_bytes, counted->hidden_bytes, "hidden", gpu, err) ||
	       differs(kept->paid_bytes, counted->paid_bytes, "paid", gpu, err) ||
	       differs(kept->away_bytes, counted->away_bytes, "away", gpu, err) ||
	       differs(kept->held_bytes, counted->held_bytes, "held", gpu, err) ||
	       differs(kept->holding_bytes, counted->holding_bytes, "about to be held",
		       gpu, err) ||
	       differs(kept->dying_bytes, counted->dying_bytes, "dying", gpu, err) ||
	       differs(kept->evicted_bytes, counted->evicted_bytes, "evicted", gpu,
		       err) ||
	       differs(kept->returning_bytes, counted->returning_bytes, "returning", gpu,
		       err) ||
	       differs(kept->leaving_bytes, counted->leaving_bytes, "leaving", gpu, err);
}

int sl_ledger_audit_close(struct sl_ledger_audit *audit, struct sl_error *err)
{
	const struct sl_ledger_account *a = audit->account;

	for (uint32_t left = a->touched | a->gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		struct sl_ledger_gpu *g = &audit->gpu[gpu];

		if (cells_differ(&a->cell[gpu], &audit->mine[gpu], gpu, err)) {
			sl_error_wrap(err, "one workload's account");
			return 1;
		}
		cell_add(&g->sum, &audit->mine[gpu]);
		put_share_back(g, a, gpu);
		if (!(a->gpu_mask >> gpu & 1))
			continue;
		g->requests_bytes += a->request_bytes;
		g->workloads++;
		g->burstable += a->limit_bytes > a->request_bytes;
	}
	return 0;
}

int sl_ledger_audit_end(struct sl_ledger_audit *audit, struct sl_error *err)
{
	uint64_t evicted = 0, leaving = 0;

	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++) {
		const struct sl_ledger_gpu *kept = &audit->ledger->gpu[gpu];
		const struct sl_ledger_gpu *counted = &audit->gpu[gpu];

		if (cells_differ(&kept->sum, &counted->sum, gpu, err) ||
			differs(kept->requests_bytes, counted->requests_bytes, "requests",
				gpu, err) ||
			differs(kept->unclaimed_bytes, counted->unclaimed_bytes,
				"unclaimed", gpu, err) ||
			differs(kept->claims_bytes, counted->claims_bytes, "claims", gpu,
				err) ||
			differs(kept->workloads, counted->workloads, "workloads", gpu,
				err) ||
			differs(kept->burstable, counted->burstable, "burstable", gpu,
				err))
			return 1;
		evicted += counted->sum.evicted_bytes;
		leaving += counted->sum.leaving_bytes;
	}
	return differs(audit->ledger->evicted_bytes, evicted, "evicted of all GPUs", 0,
		       err) ||
	       differs(audit->ledger->leaving_bytes, leaving, "leaving of all GPUs", 0,
		       err);
}
