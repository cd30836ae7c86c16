/*
 * parking - see the header
 *
 * The rows of the workload show the progress: what it has, what of it is on the host, and what
 * cannot be moved. A workload is parked if its state says so and only its held memory is on a GPU.
 * It is back if nothing of it is on the host, or if it has had a turn since the order: a workload
 * that takes turns may be evicted again between two looks. It is moved once it is back on the GPUs
 * that were named.
 */
#include "cli/conn/parking.h"

#include "cli/line/interrupt.h"
#include "cli/conn/named.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include "base/clock.h"
#include "policy/node.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between two looks, in milliseconds. */
#define LOOK_MS 50
/* A wait this long is explained, once. */
#define PATIENCE (3 * SL_S)

/* State of a workload over all of its GPUs. */
struct standing {
	uint32_t gpus; /* with a row for it, a bit each; 0: it has ended */
	bool parked;   /* on all of them */
	bool resuming; /* on one of them */
	uint64_t backing_bytes, evicted_bytes, held_bytes;
	uint64_t moved_bytes, clean_bytes, turns; /* so far */
};

struct parking {
	enum sl_verb_id verb;
	bool parks;
	uint32_t to; /* of a move: the GPUs, a bit each; 0: it is none */
	const struct sl_parking *settings;
	const char *asked; /* the name on the command line */
	struct sl_conn conn;
	uint64_t workload;
	char name[64]; /* tamed */
	struct standing before, now;
	sl_ns began, left; /* left: it was off its GPUs; 0: not yet */
	bool shows;        /* prints the progress, on a terminal */
	bool queued;       /* the queue resumes it later */
};

/* Outcomes of sl_conn_open. */
static int look(struct parking *p, struct standing *s, struct sl_error *err)
{
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	int status = sl_rows_list(&uses, &p->conn, SL_LIST_USES, err);

	*s = (struct standing){.parked = true};
	for (size_t i = 0; i < uses.count; i++) {
		const struct sl_msg_use_row *row = &uses.all[i].use_row;

		if (row->workload != p->workload)
			continue;
		s->gpus |= 1u << row->gpu % SL_NODE_GPUS_MAX;
		s->parked &= sl_wire_is_parked(row->residency);
		s->resuming |= sl_wire_gave_up_request(row->residency);
		s->backing_bytes += row->backing_bytes;
		s->held_bytes += row->held_bytes;
		s->evicted_bytes += row->evicted_bytes;
		s->moved_bytes += p->parks ? row->out_bytes : row->in_bytes;
		s->clean_bytes += row->clean_bytes;
		s->turns += row->turns;
	}
	return status;
}

static bool is_done(const struct parking *p)
{
	const struct standing *s = &p->now;

	if (p->parks)
		return s->backing_bytes <= s->evicted_bytes + s->held_bytes;
	if (p->to && (s->gpus != p->to || s->parked))
		return false;
	return !s->resuming && (!s->evicted_bytes || s->turns > p->before.turns);
}

/* Nothing of it is on the GPUs that it had. */
static bool has_left(const struct parking *p)
{
	return p->now.gpus != p->before.gpus ||
	       (p->now.parked && p->now.backing_bytes <= p->now.evicted_bytes);
}

/* --- messages --- */

static uint64_t moved_bytes(const struct parking *p)
{
	return p->now.moved_bytes - p->before.moved_bytes;
}

static void show(const struct parking *p)
{
	char there[32], all[32];

	if (!p->shows)
		return;
	fprintf(stderr, "\r\033[K%s: %s of %s on the host", p->name,
		sl_bytes_format(p->now.evicted_bytes, there, sizeof(there)),
		sl_bytes_format(p->now.backing_bytes, all, sizeof(all)));
	fflush(stderr);
}

static void unshow(const struct parking *p)
{
	if (p->shows)
		fputs("\r\033[K", stderr);
}

static void explain(const struct parking *p)
{
	unshow(p);
	if (!p->settings->json)
		fprintf(stderr,
			"sluice %s: this takes long; 'sluice why %s' says what is in the "
			"way\n",
			sl_verbs[p->verb].name, p->name);
}

static int print_json(const struct parking *p, bool done, const char *text)
{
	json_t *object = json_pack("{s:b, s:I, s:o, s:b, s:b, s:I, s:I, s:o}", "ok", 1,
		"workload", (json_int_t)p->workload, "name", sl_text_json(p->name),
		"parked", (int)p->parks, "done", (int)done, "evicted_bytes",
		(json_int_t)p->now.evicted_bytes, "held_bytes",
		(json_int_t)p->now.held_bytes, "text", sl_text_json(text));

	if (object && done) {
		json_object_set_new(
			object, "moved_bytes", json_integer((json_int_t)moved_bytes(p)));
		json_object_set_new(object, "span_ms",
			json_integer((json_int_t)((sl_clock_now() - p->began) / SL_MS)));
	}
	return sl_rows_print_json(p->verb, object);
}

static void print_parked(const struct parking *p)
{
	uint64_t clean = p->now.clean_bytes - p->before.clean_bytes;
	char host[32], moved[32], same[32], held[32];

	printf("%s is parked: %s on the host, %s copied", p->name,
		sl_bytes_format(p->now.evicted_bytes, host, sizeof(host)),
		sl_bytes_format(moved_bytes(p), moved, sizeof(moved)));
	if (clean)
		printf(" and %s there already",
			sl_bytes_format(clean, same, sizeof(same)));
	printf(", in %s\n",
		sl_span_format(sl_clock_now() - p->began, same, sizeof(same)));
	if (p->now.held_bytes)
		printf("%s of it cannot be moved and stay on the GPUs.\n",
			sl_bytes_format(p->now.held_bytes, held, sizeof(held)));
}

static void name_gpus(uint32_t gpus, char *buf, size_t size)
{
	size_t used = 0;

	for (; gpus && used < size; gpus &= gpus - 1)
		used += (size_t)snprintf(buf + used, size - used, used ? ", %d" : "%d",
			__builtin_ctz(gpus));
}

static void print_moved(const struct parking *p)
{
	sl_ns left = p->left ? p->left : p->began;
	char gpus[128], moved[32], away[32], back[32];

	name_gpus(p->to, gpus, sizeof(gpus));
	printf("%s is on GPU %s: %s copied, away in %s, back in %s\n", p->name, gpus,
		sl_bytes_format(moved_bytes(p), moved, sizeof(moved)),
		sl_span_format(left - p->began, away, sizeof(away)),
		sl_span_format(sl_clock_now() - left, back, sizeof(back)));
}

static int print(const struct parking *p, char *text)
{
	char moved[32], span[32];

	if (p->settings->json)
		return print_json(p, true, text);
	if (p->parks)
		print_parked(p);
	else if (p->to)
		print_moved(p);
	else
		printf("%s is back: %s copied to its GPUs, in %s\n", p->name,
			sl_bytes_format(moved_bytes(p), moved, sizeof(moved)),
			sl_span_format(sl_clock_now() - p->began, span, sizeof(span)));
	sl_told_warning(p->verb, text);
	return sl_cli_finish(p->verb, SL_EXIT_OK);
}

/* The workload is in the wanted state already. */
static int print_already(const struct parking *p, char *text)
{
	if (p->settings->json)
		return print_json(p, true, text);
	sl_text_tame(text);
	puts(text);
	return sl_cli_finish(p->verb, SL_EXIT_OK);
}

static int print_begun(const struct parking *p, char *text)
{
	if (p->settings->json)
		return print_json(p, false, text);
	if (p->queued)
		return print_already(p, text);
	printf("%s is being %s\n", p->name,
		p->parks ? "parked"
		: p->to  ? "moved"
			 : "resumed");
	sl_told_warning(p->verb, text);
	return sl_cli_finish(p->verb, SL_EXIT_OK);
}

/* --- the wait --- */

static int gave_up(const struct parking *p)
{
	unshow(p);
	fprintf(stderr, "sluice %s: interrupted; the daemon goes on",
		sl_verbs[p->verb].name);
	if (p->to)
		fputs("\n", stderr);
	else
		fprintf(stderr, ". To undo it: sluice %s %s\n",
			p->parks ? "resume" : "park", p->name);
	sl_interrupt_die();
	return SL_EXIT_SYSTEM;
}

/* Returns the exit status if the workload ended or changed its state; OK to go on. */
static int turned_out(const struct parking *p, struct sl_error *err)
{
	if (!p->now.gpus) {
		sl_error_set(err, "%s has ended meanwhile", p->name);
		return SL_EXIT_REFUSED;
	}
	if (p->parks && !p->now.parked) {
		sl_error_set(err, "%s was resumed meanwhile", p->name);
		return SL_EXIT_REFUSED;
	}
	if (p->to && p->left && !p->now.parked && !p->now.resuming &&
		p->now.gpus == p->before.gpus) {
		sl_error_set(err, "%s stays where it was; sluice why %s says why",
			p->name, p->name);
		return SL_EXIT_REFUSED;
	}
	if (!p->parks && !p->to && p->now.parked && !p->queued) {
		sl_error_set(err, "%s was parked again meanwhile", p->name);
		return SL_EXIT_REFUSED;
	}
	return SL_EXIT_OK;
}

static int wait_until_done(struct parking *p, char *text)
{
	struct sl_error err = {0};
	bool explained = false;
	sigset_t unblocked;

	sl_interrupt_catch(&unblocked);
	for (;;) {
		int status = look(p, &p->now, &err);

		if (p->to && !p->left && has_left(p)) {
			p->left = sl_clock_now();
			p->before.turns = p->now.turns;
		}
		if (!status)
			status = turned_out(p, &err);
		if (status) {
			unshow(p);
			return sl_cli_fail(p->verb, p->settings->json,
				(enum sl_exit)status, "%s", err.text);
		}
		if (is_done(p))
			break;
		if (!explained && sl_clock_now() - p->began > PATIENCE) {
			explain(p);
			explained = true;
		}
		show(p);
		if (!sl_interrupt_sleep(&unblocked, LOOK_MS))
			return gave_up(p);
	}
	unshow(p);
	return print(p, text);
}

/* A remedy that the reason's sentence lacks. NULL: nothing to add. */
static const char *hint(uint32_t reason)
{
	switch (reason) {
	case SL_REASON_PARK_NO_SWAP: return "sluice set --swap=on allows it again";
	case SL_REASON_PARK_NO_POOL: return "sluice doctor shows what uses it";
	case SL_REASON_PARK_BOUND:
		return "the administrator may raise it in sluiced.conf(5)";
	default: return NULL;
	}
}

static void fill(const struct parking *p, const char *name, union sl_msg *ask)
{
	sl_wire_init(ask, p->to ? SL_MSG_MOVE : SL_MSG_PARK);
	if (p->to) {
		ask->move.workload = p->workload;
		ask->move.gpus = p->to;
		sl_wire_str(ask->move.name, sizeof(ask->move.name), name);
		return;
	}
	ask->park.workload = p->workload;
	ask->park.parked = p->parks;
	sl_wire_str(ask->park.name, sizeof(ask->park.name), name);
}

static int order(struct parking *p, union sl_msg *reply, struct sl_error *err)
{
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	const struct sl_msg_use_row *row;
	char what[32];
	union sl_msg ask;
	int status;

	snprintf(what, sizeof(what), "sluice %s", sl_verbs[p->verb].name);
	status = sl_named_open(&p->conn, &uses, p->asked, what, &row, err);
	if (status)
		return status;
	p->workload = row->workload;
	status = look(p, &p->before, err);
	if (status)
		return status;
	fill(p, row->name, &ask);
	p->began = sl_clock_now();
	return sl_conn_call(&p->conn, &ask, SL_MSG_PARK_REPLY, reply, err);
}

static bool is_so_already(const struct parking *p, uint32_t reason)
{
	if (p->parks)
		return reason == SL_REASON_PARKED_ALREADY && is_done(p);
	if (p->to)
		return reason == SL_REASON_MOVED_ALREADY;
	return reason == SL_REASON_NOT_PARKED && !p->before.resuming;
}

/* Follows the order that was given now or before. */
static int follow(struct parking *p, struct sl_msg_park_reply *reply)
{
	p->shows = !p->settings->json && isatty(STDERR_FILENO);
	if (is_so_already(p, reply->reason))
		return print_already(p, reply->text);
	p->queued = reply->reason == SL_REASON_PARKED_FOR_JOB;
	if (!reply->ok)
		reply->text[0] = '\0';
	if (p->settings->no_wait)
		return print_begun(p, reply->text);
	if (reply->text[0] && !p->settings->json) {
		sl_text_tame(reply->text);
		fprintf(stderr, "sluice %s: %s\n", sl_verbs[p->verb].name, reply->text);
		reply->text[0] = '\0';
	}
	return wait_until_done(p, reply->text);
}

/* Nothing of it is on a GPU and nothing is to come back, so there is nothing to do. */
static int say_over(struct parking *p)
{
	char text[128];

	snprintf(p->name, sizeof(p->name), "%s", p->asked);
	sl_text_tame(p->name);
	snprintf(text, sizeof(text), "%s has ended already", p->name);
	return print_already(p, text);
}

static int park_one(struct parking *p)
{
	bool json = p->settings->json;
	struct sl_error err = {0};
	union sl_msg reply;
	int status = order(p, &reply, &err);
	struct sl_msg_park_reply *said = &reply.park_reply;

	if (status == SL_EXIT_REFUSED && sl_named_has_ended(&p->conn, p->asked))
		return say_over(p);
	if (status)
		return sl_cli_fail(p->verb, json, (enum sl_exit)status, "%s", err.text);
	if (!said->ok && said->reason != SL_REASON_PARKED_ALREADY &&
		said->reason != SL_REASON_NOT_PARKED &&
		said->reason != SL_REASON_MOVED_ALREADY)
		return sl_told_refusal(
			p->verb, json, said->reason, said->text, hint(said->reason));
	snprintf(p->name, sizeof(p->name), "%s", said->name);
	sl_text_tame(p->name);
	p->now = p->before;
	p->now.held_bytes = said->held_bytes;
	return follow(p, said);
}

/* "0" or "2,3", as a mask; 0: it is none. */
static uint32_t gpus_of(const char *text)
{
	uint32_t gpus = 0;

	while (text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (end == text || *text < '0' || *text > '9' ||
			number >= SL_NODE_GPUS_MAX || (*end && *end != ',') ||
			gpus >> number & 1)
			return 0;
		gpus |= 1u << number;
		text = *end ? end + 1 : NULL;
	}
	return gpus;
}

int sl_parking_main(enum sl_verb_id verb, bool parks, int argc, char **argv)
{
	struct sl_parking s = {0};
	int first, status = sl_cli_parse(verb, &s, argc, argv, &first), failed = 0;
	uint32_t to = status < 0 ? gpus_of(s.gpus) : 0;

	if (status < 0 && verb == SL_VERB_move && !to)
		status = sl_cli_usage(verb, s.json,
			"--gpu takes the number of a GPU, as sluice gpus shows it, or "
			"several as 2,3");
	/* Without a name the usage error comes once. */
	for (size_t i = 0; status < 0 && failed != SL_EXIT_NO_DAEMON &&
			   i < sl_max_u64(s.names.count, 1);
		i++) {
		struct parking p = {.verb = verb,
			.parks = parks,
			.to = to,
			.settings = &s,
			.asked = s.names.count ? s.names.all[i] : NULL,
			.conn = {.fd = -1}};
		int one = park_one(&p);

		sl_conn_close(&p.conn);
		failed = failed ? failed : one;
	}
	sl_strings_fini(&s.names);
	return status < 0 ? failed : status;
}
