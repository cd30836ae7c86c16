/*
 * writer - see the header
 *
 * Rows wait in memory until a transaction has written them. So a disk that is full for a minute, or
 * another process' lock, costs nothing; a longer failure costs what exceeds the bounds below.
 */
#include "daemon/history/scribe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "policy/words/reason.h"

/* Most rows and events that wait to be written: about 20 MiB for each kind of rows, and less than
 * 10 MiB for the rest. */
#define ROWS_MAX   100000
#define EVENTS_MAX 4000
/* How often open rows are written: the most that a crash can cost. */
#define TELL_EVERY_S 15
/* Time from a failed open to the next try. */
#define REOPEN_S 5
/* A file that is further than this ahead of the machine's clock is told. */
#define AHEAD_S 600
#define ASK_MS  5000
/* Longest wait for events in one step, and the most taken then. */
#define LISTEN_MS  1
#define LISTEN_MAX 2000

/* --- its memory --------------------------------------------------------------------------- */

struct sl_history_scribe *sl_history_scribe_new(
	const char *path, struct sl_inside_door *door, uint64_t first_serial)
{
	struct sl_history_scribe *scribe = calloc(1, sizeof(*scribe));

	if (!scribe)
		return NULL;
	(void)snprintf(scribe->path, sizeof(scribe->path), "%s", path);
	scribe->door = door;
	scribe->first_serial = first_serial;
	scribe->asks.fd = scribe->hears.fd = -1;
	scribe->tables.summing = &scribe->summing;
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++)
		scribe->tables.runs[kind].kind = (enum sl_history_kind)kind;
	return scribe;
}

struct sl_history_scribe *sl_history_scribe_free(struct sl_history_scribe *scribe)
{
	if (!scribe)
		return NULL;
	if (scribe->asking)
		sl_inside_close(&scribe->asks);
	if (scribe->hearing)
		sl_inside_close(&scribe->hears);
	(void)sl_history_store_close(scribe->store);
	for (int i = 0; i < 2; i++)
		sl_history_sample_fini(&scribe->samples[i]);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		sl_history_runs_fini(&scribe->tables.runs[kind]);
		sl_history_rows_fini(&scribe->tables.out[kind]);
	}
	for (size_t i = 0; i < scribe->living_count; i++)
		free(scribe->living[i]);
	free(scribe->living);
	sl_map_fini(&scribe->by_number);
	free(scribe->former);
	free(scribe->workloads);
	free(scribe->gpus);
	free(scribe->events);
	free(scribe);
	return NULL;
}

/* --- the file ----------------------------------------------------------------------------- */

static uint64_t boot_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / SL_MS;
}

uint64_t sl_history_scribe_now(const struct sl_history_scribe *scribe)
{
	return boot_ms() + (uint64_t)scribe->offset_ms;
}

/* Begins at the machine's clock, or where the file ends if that is later. */
static void start_clock(struct sl_history_scribe *scribe, uint64_t real_ms, int64_t end,
	struct sl_history_report *report)
{
	uint64_t now_ms = sl_max_u64(real_ms, (uint64_t)end * 1000);
	time_t until = (time_t)end;
	char date[32] = "some day";
	struct tm tm;

	scribe->offset_ms = (int64_t)(now_ms - boot_ms());
	if (now_ms < real_ms + AHEAD_S * 1000ull)
		return;
	if (localtime_r(&until, &tm))
		(void)strftime(date, sizeof(date), "%F %H:%M", &tm);
	sl_error_set(&report->note,
		"the history in %.200s reaches to %s, which is still to come: the "
		"machine's clock was ahead, or is behind now. It goes on from there, and "
		"answers count back from now",
		scribe->path, date);
}

/* Keeps events in the order of their serials over restarts. If the file has serials from
 * first_serial on, an earlier daemon used them while the clock was ahead; these are lowered. */
static bool order_events(struct sl_history_scribe *scribe, struct sl_history_known *known,
	struct sl_error *err)
{
	if (scribe->knows || known->event_serial < scribe->first_serial)
		return true;
	known->event_serial = scribe->first_serial - 1;
	return sl_history_store_events_before(scribe->store, scribe->first_serial, err) ==
	       SL_HISTORY_STORE_OK;
}

/* Continues the numbers of the file; known GPUs keep theirs. */
static bool take_known(struct sl_history_scribe *scribe, uint64_t real_ms,
	struct sl_history_report *report)
{
	struct sl_history_known known;
	bool ok;

	if (sl_history_store_known(scribe->store, &known, &report->err) !=
		SL_HISTORY_STORE_OK)
		return false;
	ok = order_events(scribe, &known, &report->err);
	if (ok && !scribe->knows) {
		start_clock(scribe, real_ms, known.end, report);
		scribe->gpus = sl_steal(&known.gpus);
		scribe->gpu_count = known.gpu_count;
		scribe->former_end = known.end;
		scribe->former = sl_steal(&known.living);
		scribe->former_count = known.living_count;
	}
	free(known.gpus);
	free(known.living);
	if (!ok)
		return false;
	scribe->knows = true;
	/* If the file was set aside meanwhile, what this process knows remains valid. */
	if (known.gpu_id >= scribe->next_gpu)
		scribe->next_gpu = known.gpu_id + 1;
	if (known.workload_id >= scribe->next_workload)
		scribe->next_workload = known.workload_id + 1;
	scribe->event_serial = sl_max_u64(scribe->event_serial, known.event_serial);
	return true;
}

/* A new file is empty: queues all workloads and GPUs for writing again. */
static void say_all_again(struct sl_history_scribe *scribe)
{
	for (size_t i = 0; i < scribe->living_count; i++)
		scribe->living[i]->dirty = true;
	scribe->gpus_dirty = true;
}

/* Moves a file that cannot be used away, and begins a new one. */
static void begin_anew(struct sl_history_scribe *scribe, uint64_t real_ms,
	struct sl_history_report *report)
{
	scribe->store = sl_history_store_close(scribe->store);
	if (sl_history_store_set_aside(scribe->path, report->outcome,
		    (time_t)(real_ms / 1000), &report->note) < 0) {
		report->err = report->note;
		report->note = (struct sl_error){0};
		return;
	}
	say_all_again(scribe);
	scribe->reopen_at = 0;
	report->outcome =
		sl_history_store_open(scribe->path, &scribe->store, &report->err);
}

static void open_store(struct sl_history_scribe *scribe, uint64_t real_ms,
	struct sl_history_report *report)
{
	int64_t now = (int64_t)(sl_clock_now() / SL_S);

	if (scribe->store)
		return;
	if (scribe->reopen_at && now < scribe->reopen_at) {
		report->outcome = scribe->outcome;
		report->err = scribe->err;
		return;
	}
	report->outcome =
		sl_history_store_open(scribe->path, &scribe->store, &report->err);
	if (report->outcome == SL_HISTORY_STORE_DAMAGED ||
		report->outcome == SL_HISTORY_STORE_OTHER)
		begin_anew(scribe, real_ms, report);
	if (scribe->store && !take_known(scribe, real_ms, report)) {
		scribe->store = sl_history_store_close(scribe->store);
		report->outcome = SL_HISTORY_STORE_FULL;
	}
	scribe->reopen_at = scribe->store ? 0 : now + REOPEN_S;
	scribe->outcome = report->outcome;
	scribe->err = report->err;
}

/* --- asking ------------------------------------------------------------------------------- */

struct asking {
	struct sl_history_scribe *scribe;
	struct sl_history_sample *sample;
	uint64_t now_ms;
};

static void take(void *context, const union sl_msg *row)
{
	struct asking *asking = context;
	struct sl_history_sample *sample = asking->sample;
	struct sl_history_seen *seen;
	struct sl_history_living *living;
	char uuid[41];

	sl_history_sample_take(sample, row);
	if (row->head.type == SL_MSG_GPU_ROW &&
		row->gpu_row.gpu < SL_HISTORY_GPU_NUMBERS) {
		sample->gpus[row->gpu_row.gpu].id =
			sl_history_ids_gpu(asking->scribe, &row->gpu_row);
		sl_wire_uuid_format(row->gpu_row.uuid, uuid);
		sample->gpus[row->gpu_row.gpu].place = sl_history_summing_find(
			&asking->scribe->summing, SL_HISTORY_OF_GPU, uuid, uuid);
	}
	if (row->head.type != SL_MSG_USE_ROW)
		return;
	living = sl_history_ids_living(asking->scribe, &row->use_row, asking->now_ms);
	seen = sl_history_sample_find(sample, row->use_row.workload, row->use_row.gpu);
	if (!living || !seen)
		return;
	living->seen = true;
	living->missed = false;
	living->seen_ms = asking->now_ms;
	living->dirty |= seen->ordinal + 1 > living->row.gpus;
	living->row.gpus = (uint32_t)sl_max_u64(living->row.gpus, seen->ordinal + 1);
	seen->id = living->row.id;
	seen->fresh = living->met_ms == asking->now_ms;
	seen->user = living->user;
	seen->project = living->project;
}

static int open_line(struct sl_history_scribe *scribe, struct sl_inside *line, bool *open,
	uint64_t timeout_ms, struct sl_error *err)
{
	int r;

	if (*open)
		return SL_INSIDE_OK;
	r = sl_inside_open(line, scribe->door, NULL, err);
	if (r != SL_INSIDE_OK) {
		sl_inside_close(line);
		return r;
	}
	*open = true;
	sl_inside_set_timeout(line, timeout_ms);
	return SL_INSIDE_OK;
}

static int ask_lists(struct sl_history_scribe *scribe, struct sl_history_sample *sample,
	uint64_t now_ms, struct sl_error *err)
{
	static const struct {
		enum sl_list_what what;
		uint32_t row;
	} lists[] = {
		{SL_LIST_GPUS, SL_MSG_GPU_ROW},
		{SL_LIST_USES, SL_MSG_USE_ROW},
		{SL_LIST_CLIENTS, SL_MSG_CLIENT_ROW},
	};
	struct asking asking = {scribe, sample, now_ms};
	int r = open_line(scribe, &scribe->asks, &scribe->asking, ASK_MS, err);

	sl_history_sample_clear(sample);
	for (size_t i = 0; i < SL_ARRAY_LEN(lists) && r == SL_INSIDE_OK; i++)
		r = sl_inside_list(
			&scribe->asks, lists[i].what, lists[i].row, take, &asking, err);
	if (r == SL_INSIDE_OK) {
		sample->t = (int64_t)(now_ms / 1000);
		return r;
	}
	if (scribe->asking)
		sl_inside_close(&scribe->asks);
	scribe->asking = false;
	return r;
}

/* ended_ms is computed from begun_ms, so that both are in the history's time. */
static void note_end(struct sl_history_scribe *scribe, const struct sl_msg_event_row *row)
{
	struct sl_history_living *living = sl_map_get(&scribe->by_number, row->workload);

	if (living)
		living->row.ended_ms = living->row.begun_ms + sl_max_u64(1, row->span_ms);
}

static void keep_event(
	struct sl_history_scribe *scribe, const struct sl_msg_event_row *row)
{
	struct sl_msg_event_row *all;

	if (row->reason == SL_REASON_ENDED)
		note_end(scribe, row);

	if (row->serial <= scribe->event_serial)
		return;
	scribe->event_serial = row->serial;
	all = scribe->event_count < EVENTS_MAX
		      ? sl_history_grow(scribe->events, scribe->event_count,
				&scribe->event_room, sizeof(*all))
		      : NULL;
	if (!all) {
		scribe->dropped++;
		return;
	}
	scribe->events = all;
	all[scribe->event_count] = *row;
	sl_text_tame(all[scribe->event_count].name);
	sl_text_tame(all[scribe->event_count].other_name);
	scribe->event_count++;
}

static void hear_events(struct sl_history_scribe *scribe, struct sl_error *err)
{
	union sl_msg msg;
	int r = SL_INSIDE_OK;

	if (!scribe->hearing) {
		if (open_line(scribe, &scribe->hears, &scribe->hearing, ASK_MS, err) !=
			SL_INSIDE_OK)
			return;
		sl_wire_init(&msg, SL_MSG_EVENTS);
		msg.events.flags = SL_EVENTS_FOLLOW;
		msg.events.after = scribe->event_serial;
		r = sl_inside_send(&scribe->hears, &msg, err);
		sl_inside_set_timeout(&scribe->hears, LISTEN_MS);
	}
	for (int i = 0; i < LISTEN_MAX && (r == SL_INSIDE_OK || r == SL_INSIDE_END);
		i++) {
		r = sl_inside_next(&scribe->hears, SL_MSG_EVENT_ROW, &msg, err);
		if (r == SL_INSIDE_OK)
			keep_event(scribe, &msg.event_row);
	}
	if (r == SL_INSIDE_OK || r == SL_INSIDE_END || r == SL_INSIDE_AGAIN)
		return;
	sl_inside_close(&scribe->hears);
	scribe->hearing = false;
}

/* --- writing ------------------------------------------------------------------------------ */

static void written(struct sl_history_scribe *scribe)
{
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		scribe->rows += scribe->tables.out[kind].count;
		scribe->tables.out[kind].count = 0;
	}
	scribe->event_count = 0;
	scribe->gpus_dirty = false;
	scribe->former_end = 0;
}

/* Drops rows beyond the bound. */
static void drop_rows(struct sl_history_scribe *scribe)
{
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		struct sl_history_rows *out = &scribe->tables.out[kind];

		if (out->count <= ROWS_MAX)
			continue;
		scribe->dropped += out->count;
		out->count = 0;
	}
}

static int write_batch(struct sl_history_scribe *scribe, int64_t now,
	const struct sl_history_keep *keep, struct sl_history_report *report)
{
	struct sl_history_batch batch = {
		.gpus = scribe->gpus,
		.gpu_count = scribe->gpus_dirty ? scribe->gpu_count : 0,
		.living_end = scribe->former_end,
		.rows = {scribe->tables.out[0].all, scribe->tables.out[1].all},
		.row_count = {scribe->tables.out[0].count, scribe->tables.out[1].count},
		.events = scribe->events,
		.event_count = scribe->event_count,
	};

	sl_history_ids_collect(scribe);
	batch.workloads = scribe->workloads;
	batch.workload_count = scribe->workload_count;
	return sl_history_store_write(scribe->store, &batch, now, keep, &report->err);
}

/* Rolls up to the last sample, not to now: only until then are all rows known. */
static void write_all(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, struct sl_history_report *report)
{
	int64_t now = scribe->samples[scribe->current].t;
	bool ok = false;

	if (scribe->store) {
		report->outcome = write_batch(scribe, now, keep, report);
		ok = report->outcome == SL_HISTORY_STORE_OK;
		if (report->outcome == SL_HISTORY_STORE_OK) {
			written(scribe);
			scribe->written_ms = real_ms;
			scribe->bytes = sl_history_store_bytes(scribe->store);
		} else if (report->outcome == SL_HISTORY_STORE_DAMAGED) {
			begin_anew(scribe, real_ms, report);
		}
	}
	drop_rows(scribe);
	sl_history_ids_written(scribe, ok);
	report->t = now;
	report->rows = scribe->rows;
	report->dropped = scribe->dropped;
	report->bytes = scribe->bytes;
}

static bool tell(struct sl_history_scribe *scribe)
{
	bool ok = true;

	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++)
		ok = sl_history_runs_tell(&scribe->tables.runs[kind],
			     &scribe->tables.out[kind]) == 0 &&
		     ok;
	return ok;
}

static void look(struct sl_history_scribe *scribe, uint64_t now_ms,
	struct sl_history_report *report)
{
	struct sl_history_sample *before = &scribe->samples[scribe->current];
	struct sl_history_sample *now = &scribe->samples[1 - scribe->current];
	struct sl_error err = {0};
	int r;

	/* Its next second has not begun. */
	if (before->t && (int64_t)(now_ms / 1000) <= before->t)
		return;
	r = ask_lists(scribe, now, now_ms, &err);
	report->gone = r == SL_INSIDE_GONE;
	if (r != SL_INSIDE_OK || now->failed)
		return;
	scribe->former_count = 0;
	hear_events(scribe, &err);
	sl_history_ids_end(scribe);
	if (sl_history_sample_rows(before, now, &scribe->tables) == 0)
		scribe->current = 1 - scribe->current;
}

static void look_for_damage(struct sl_history_scribe *scribe, uint64_t real_ms,
	struct sl_history_report *report)
{
	if (!scribe->suspects || !scribe->store)
		return;
	scribe->suspects = false;
	report->outcome = sl_history_store_check(scribe->store, &report->err);
	if (report->outcome == SL_HISTORY_STORE_DAMAGED)
		begin_anew(scribe, real_ms, report);
}

void sl_history_scribe_step(struct sl_history_scribe *scribe, uint64_t real_ms,
	const struct sl_history_keep *keep, bool is_second, bool told,
	struct sl_history_report *report)
{
	int64_t t;

	*report = (struct sl_history_report){.outcome = SL_HISTORY_STORE_OK};
	open_store(scribe, real_ms, report);
	/* A small difference is only the time between looking at the two clocks. */
	if (scribe->knows)
		report->ahead_s =
			(int64_t)(sl_history_scribe_now(scribe) - real_ms) / 1000;
	if (report->ahead_s >= -1 && report->ahead_s <= 1)
		report->ahead_s = 0;
	if (is_second)
		look_for_damage(scribe, real_ms, report);
	if (is_second && scribe->knows)
		look(scribe, sl_history_scribe_now(scribe), report);
	t = scribe->samples[scribe->current].t;
	if (told || t >= scribe->told_at + TELL_EVERY_S) {
		scribe->told_at = t;
		if (!tell(scribe))
			report->outcome = SL_HISTORY_STORE_FULL;
	}
	write_all(scribe, real_ms, keep, report);
}

struct sl_history_sums *sl_history_scribe_sums(
	const struct sl_history_scribe *scribe, const struct sl_history_report *report)
{
	struct sl_history_sums *sums = sl_history_sums_of(&scribe->summing);

	if (!sums)
		return NULL;
	sums->well = report->outcome == SL_HISTORY_STORE_OK;
	sums->rows = scribe->rows;
	sums->dropped = scribe->dropped;
	sums->bytes = scribe->bytes;
	sums->written_ms = scribe->written_ms;
	return sums;
}
