/*
 * The rows of the workload show the progress: what it has, what of it is on the host, and what
 * cannot be moved. A workload is parked if its state says so and only its held memory is on a GPU.
 * It is back if nothing of it is on the host, or if it has had a turn since the order: a workload
 * that takes turns may be evicted again between two looks.
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
#include <string.h>
#include <unistd.h>

/* Between two looks, in milliseconds. */
#define LOOK_MS 50
/* A wait this long is explained, once. */
#define PATIENCE (3 * SL_S)

/* State of a workload over all of its GPUs. */
struct standing {
	unsigned int gpus; /* GPUs with a row for it; 0: it has ended */
	bool parked;       /* on all of them */
	bool resuming;     /* on one of them */
	uint64_t backing_bytes, evicted_bytes, held_bytes;
	uint64_t moved_bytes, clean_bytes, turns; /* so far */
};

struct parking {
	enum sl_verb_id verb;
	bool parks;
	const struct sl_parking *settings;
	const char *asked; /* the name on the command line */
	struct sl_conn conn;
	uint64_t workload;
	char name[64]; /* tamed */
	struct standing before, now;
	sl_ns began;
	bool shows;  /* prints the progress, on a terminal */
	bool queued; /* the queue resumes it later */
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
		s->gpus++;
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
	return !s->resuming && (!s->evicted_bytes || s->turns > p->before.turns);
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

static int print(const struct parking *p, char *text)
{
	char moved[32], span[32];

	if (p->settings->json)
		return print_json(p, true, text);
	if (p->parks)
		print_parked(p);
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
	printf("%s is being %s\n", p->name, p->parks ? "parked" : "resumed");
	sl_told_warning(p->verb, text);
	return sl_cli_finish(p->verb, SL_EXIT_OK);
}

/* --- the wait --- */

static int gave_up(const struct parking *p)
{
	unshow(p);
	fprintf(stderr,
		"sluice %s: interrupted; the daemon goes on. To undo it: sluice %s %s\n",
		sl_verbs[p->verb].name, p->parks ? "resume" : "park", p->name);
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
	if (!p->parks && p->now.parked && !p->queued) {
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
	sl_wire_init(&ask, SL_MSG_PARK);
	ask.park.workload = row->workload;
	ask.park.parked = p->parks;
	sl_wire_str(ask.park.name, sizeof(ask.park.name), row->name);
	p->began = sl_clock_now();
	return sl_conn_call(&p->conn, &ask, SL_MSG_PARK_REPLY, reply, err);
}

static bool is_so_already(const struct parking *p, uint32_t reason)
{
	if (p->parks)
		return reason == SL_REASON_PARKED_ALREADY && is_done(p);
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
	if (p->queued && !p->settings->json) {
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
		said->reason != SL_REASON_NOT_PARKED)
		return sl_told_refusal(
			p->verb, json, said->reason, said->text, hint(said->reason));
	snprintf(p->name, sizeof(p->name), "%s", said->name);
	sl_text_tame(p->name);
	p->now = p->before;
	p->now.held_bytes = said->held_bytes;
	return follow(p, said);
}

int sl_parking_main(enum sl_verb_id verb, bool parks, int argc, char **argv)
{
	struct sl_parking s = {0};
	int first, status = sl_cli_parse(verb, &s, argc, argv, &first), failed = 0;

	/* Without a name the usage error comes once. */
	for (size_t i = 0; status < 0 && failed != SL_EXIT_NO_DAEMON &&
			   i < sl_max_u64(s.names.count, 1);
		i++) {
		struct parking p = {.verb = verb,
			.parks = parks,
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
