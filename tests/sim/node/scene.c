/*
 * scene - see the header
 */
#include "scene.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../common/trace.h"

/* Long after the clock began: a process can have been idle before its scene. */
#define BEGINS (1000000 * SL_S)

struct play {
	char text[1024];
	size_t len;
};

static void SL_PRINTF(2, 3) say(struct play *p, const char *format, ...)
{
	va_list args;

	if (p->len)
		p->len += (size_t)snprintf(
			p->text + p->len, sizeof(p->text) - p->len, "; ");
	va_start(args, format);
	p->len += (size_t)vsnprintf(
		p->text + p->len, sizeof(p->text) - p->len, format, args);
	va_end(args);
	if (p->len >= sizeof(p->text))
		p->len = sizeof(p->text) - 1;
}

static const char *const probes[SL_PROBES] = {"OFF", "WATCH", "PROVE"};

static const char *stage_name(uint32_t stage)
{
	return stage == SL_STOP_KILL ? "KILL" : "TERM";
}

static void on_action(void *context, const struct sl_action *a)
{
	struct play *p = context;

	switch (a->type) {
	case SL_ACTION_ADMIT:
		say(p, "ADMIT %" PRIu64 " m%x r%" PRIu64 " l%" PRIu64, a->admit.workload,
			a->admit.gpu_mask, a->admit.request_bytes, a->admit.limit_bytes);
		break;
	case SL_ACTION_REFUSE:
		say(p, "REFUSE %" PRIu64 " %s %" PRIu64 " %" PRIu64, a->refuse.workload,
			sl_reason_name(a->refuse.reason), a->refuse.wanted_bytes,
			a->refuse.available_bytes);
		break;
	case SL_ACTION_GRANT:
		say(p, "GRANT %" PRIu64 "/%" PRIu64 " g%u %" PRIu64 " e%" PRIu64,
			a->grant.client, a->grant.ask, a->grant.gpu, a->grant.bytes,
			a->grant.epoch);
		break;
	case SL_ACTION_DENY:
		say(p, "DENY %" PRIu64 "/%" PRIu64 " %s %" PRIu64, a->deny.client,
			a->deny.ask, sl_reason_name(a->deny.reason),
			a->deny.available_bytes);
		break;
	case SL_ACTION_VIEW:
		say(p, "VIEW %" PRIu64 " g%u", a->view.workload, a->view.gpu);
		break;
	case SL_ACTION_NOTE:
		say(p, "NOTE %s g%u %" PRIu64 "/%" PRIu64 " %" PRIu64,
			sl_reason_name(a->note.reason), a->note.gpu, a->note.workload,
			a->note.other, a->note.bytes);
		break;
	case SL_ACTION_PARKED:
		say(p, "PARKED %" PRIu64 " %" PRIu64, a->parked.workload,
			a->parked.bytes);
		break;
	case SL_ACTION_RESUMED:
		say(p, "RESUMED %" PRIu64 " %" PRIu64, a->resumed.workload,
			a->resumed.request_bytes);
		break;
	case SL_ACTION_MOVES:
		say(p, "MOVES %" PRIu64 " g%u g%u", a->moves.workload, a->moves.from,
			a->moves.to);
		break;
	case SL_ACTION_LEFT: break; /* each EXIT says so */
	case SL_ACTION_SET_DONE:
		say(p,
			"SET %" PRIu64 " r%" PRIu64 " l%" PRIu64 " p%" PRId32
			" over%" PRIu64,
			a->set_done.workload, a->set_done.request_bytes,
			a->set_done.limit_bytes, a->set_done.priority,
			a->set_done.over_bytes);
		break;
	case SL_ACTION_STOP:
		say(p, "STOP %" PRIu64 "/%" PRIu64 " %s %s", a->stop.client,
			a->stop.workload, stage_name(a->stop.stage),
			sl_reason_name(a->stop.reason));
		break;
	case SL_ACTION_STOP_STRANGER:
		say(p, "STRANGER %" PRIu64 " %s g%u %" PRIu64, a->stop_stranger.stranger,
			stage_name(a->stop_stranger.stage), a->stop_stranger.gpu,
			a->stop_stranger.bytes);
		break;
	case SL_ACTION_PROBE:
		say(p, "PROBE %" PRIu64 " %s", a->probe.client,
			a->probe.mode < SL_PROBES ? probes[a->probe.mode] : "?");
		break;
	case SL_ACTION_WAKE_AT: break;
	default: say(p, "?");
	}
}

static bool complain(const struct scene *scene, size_t row, const char *expected,
	const char *actual, bool quiet)
{
	if (quiet)
		return false;
	printf("scene %s, row %zu, at %" PRIu64 " ms: ", scene->name, row + 1,
		scene->rows[row].at_ms);
	sl_trace_print_event(&scene->rows[row].event, stdout);
	printf("\n  expected: %s\n  came:     %s\n", expected, actual);
	return false;
}

/* The order of actions within one step means nothing. */
static bool is_same(const char *expected, const char *came)
{
	bool same = strlen(expected) == strlen(came);

	while (same && *expected) {
		size_t length = strcspn(expected, ";");
		const char *at = came;

		while (at && strncmp(at, expected, length) != 0) {
			at = strchr(at, ';');
			at = at ? at + 2 : NULL;
		}
		same = at && (at[length] == 0 || at[length] == ';');
		expected += length;
		expected += *expected ? 2 : 0;
	}
	return same;
}

bool scene_play(const struct scene *scene, bool quiet)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_node *node = sl_node_new(arena);
	bool same = true;

	for (size_t i = 0; i < scene->count && same; i++) {
		const struct scene_row *row = &scene->rows[i];
		struct play play = {0};
		struct sl_error err = {0};

		sl_node_step(
			node, BEGINS + row->at_ms * SL_MS, &row->event, on_action, &play);
		same = is_same(row->expected, play.text);
		if (!same)
			complain(scene, i, row->expected, play.text, quiet);
		else if (sl_node_check(node, &err))
			same = complain(scene, i, "books in order", err.text, quiet);
	}
	sl_arena_free(arena);
	return same;
}
