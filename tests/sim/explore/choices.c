/*
 * choices - what may be done in a state, and how that is written
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

/* Wake-ups further ahead than this are no choice of their own. */
#define WAKE_MOST (120 * SL_S)

uint8_t explore_goal(const struct explore_client *c)
{
	uint32_t gpu = c->order_gpu;
	uint8_t can = c->order == EXPLORE_EVICTS
			      ? (uint8_t)(c->moved + c->resident[gpu] - c->held[gpu])
			      : (uint8_t)(c->moved + c->evicted[gpu]);

	return c->order_units < can ? c->order_units : can;
}

static bool is_reserve_open(const struct explore *x, uint32_t gpu)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < x->world->clients; i++)
		sum += x->s.client[i].context_gpu == gpu ? x->s.client[i].context : 0;
	return sum < x->world->reserve;
}

static bool can_client(const struct explore *x, struct explore_choice o)
{
	const struct explore_client *c = &x->s.client[o.who];
	bool speaks = c->alive && !c->expected, still = explore_is_still(c);
	bool moves = c->order == EXPLORE_EVICTS || c->order == EXPLORE_RESTORES;

	switch (o.kind) {
	case EXPLORE_DO_ASK:
	case EXPLORE_DO_HOLD:
		return speaks && !still && !c->ask_units && !c->stands &&
		       x->s.bound[x->world->of[o.who]] >> o.gpu & 1;
	case EXPLORE_DO_COMMIT:
	case EXPLORE_DO_FAIL: return speaks && c->granted;
	case EXPLORE_DO_FREE:
		return speaks && !c->order && !still &&
		       c->resident[o.gpu] > c->held[o.gpu];
	case EXPLORE_DO_DROP: return speaks && !c->order && !still && c->evicted[o.gpu];
	case EXPLORE_DO_WORK: return speaks && !c->busy && !c->stands && !c->ask_units;
	case EXPLORE_DO_IDLE: return speaks && c->busy;
	case EXPLORE_DO_DONE: return speaks && moves;
	case EXPLORE_DO_MOVED:
		return speaks && c->order == EXPLORE_EVICTS && c->tell_units &&
		       c->moved + c->tell_units < explore_goal(c);
	case EXPLORE_DO_PART: return speaks && moves && (c->moved || explore_goal(c) > 1);
	case EXPLORE_DO_BUSY:
	case EXPLORE_DO_NO_HOST: return speaks && c->order == EXPLORE_EVICTS && !c->moved;
	case EXPLORE_DO_DRIVER: return speaks && moves && !c->moved;
	case EXPLORE_DO_ABORT: return speaks && c->order && c->aborted;
	case EXPLORE_DO_PLACED:
	case EXPLORE_DO_STAYED: return c->alive && c->order >= EXPLORE_DETACHES;
	case EXPLORE_DO_CONTEXT: /* more code is loaded, while the reserve has room */
		return speaks && !c->order && !still &&
		       is_reserve_open(x, c->context_gpu);
	case EXPLORE_DO_DIE: return c->alive;
	case EXPLORE_DO_REPORT: return c->alive && c->expected;
	case EXPLORE_DO_BEGIN: return c->unborn;
	case EXPLORE_DO_GONE:
		return !c->alive && !c->unborn &&
		       c->dying[0] + c->dying[EXPLORE_GPUS - 1] + c->context > 0;
	default: return false;
	}
}

/* The machine cannot know what a client has on the host before it reports. Such a client reports
 * before time passes. */
static bool must_report(const struct explore *x)
{
	bool must = false;

	for (uint32_t i = 0; i < x->world->clients; i++)
		must |= x->s.client[i].expected && explore_is_out(&x->s.client[i]);
	return must;
}

bool explore_can(const struct explore *x, struct explore_choice o)
{
	switch (o.kind) {
	case EXPLORE_DO_WAKE:
		return !must_report(x) && x->s.wake != SL_NS_NEVER &&
		       x->s.wake <= x->s.now + WAKE_MOST;
	case EXPLORE_DO_SECOND:
	case EXPLORE_DO_LONG: return !must_report(x);
	case EXPLORE_DO_PARK: return o.who < x->world->workloads && !x->s.parked[o.who];
	case EXPLORE_DO_RESUME:
		return o.who < x->world->workloads && x->s.parked[o.who] &&
		       !x->s.resuming[o.who];
	case EXPLORE_DO_MOVE:
		return o.who < x->world->workloads && x->s.parked[o.who] &&
		       explore_is_gone(x, o.who) && !(x->s.bound[o.who] >> o.gpu & 1);
	default: return o.who < x->world->clients && can_client(x, o);
	}
}

bool explore_is_fault(uint8_t kind)
{
	return kind == EXPLORE_DO_FAIL || kind == EXPLORE_DO_PART ||
	       kind == EXPLORE_DO_BUSY || kind == EXPLORE_DO_NO_HOST ||
	       kind == EXPLORE_DO_DRIVER || kind == EXPLORE_DO_STAYED ||
	       kind == EXPLORE_DO_DIE;
}

static const struct {
	const char *text, *args;
} kinds[EXPLORE_DO_END] = {
#define X(NAME, text, args) [EXPLORE_DO_##NAME] = {text, args},
	EXPLORE_KINDS(X)
#undef X
};

/* One choice of this kind for each client (or workload, or none), GPU and size. */
static uint32_t list_kind(
	const struct explore *x, uint8_t kind, struct explore_choice *out, uint32_t count)
{
	const char *args = kinds[kind].args;
	uint32_t whos = args[0] == 'c'   ? x->world->clients
			: args[0] == 'w' ? x->world->workloads
					 : 1;
	uint32_t gpus = strchr(args, 'g') ? x->world->gpus : 1;
	uint32_t asks = strchr(args, 'u') ? x->world->ask_mask : 1;

	for (uint32_t n = 0; n < whos * gpus * 8; n++) {
		struct explore_choice o = {kind, (uint8_t)(n / 8 / gpus),
			(uint8_t)(n / 8 % gpus), (uint8_t)(n % 8)};

		if (asks >> o.units & 1 && explore_can(x, o) && count < EXPLORE_CHOICES)
			out[count++] = o;
	}
	return count;
}

uint32_t explore_choices(const struct explore *x, struct explore_choice *out)
{
	uint32_t count = 0;

	for (uint8_t kind = 0; kind < EXPLORE_DO_END; kind++) {
		bool usual = kind != EXPLORE_DO_HOLD && kind != EXPLORE_DO_PARK &&
			     kind != EXPLORE_DO_RESUME && kind != EXPLORE_DO_MOVE &&
			     kind != EXPLORE_DO_CONTEXT && kind != EXPLORE_DO_LONG &&
			     !explore_is_fault(kind);

		if (explore_is_fault(kind) && !x->s.faults)
			continue;
		if (usual || x->world->kinds >> kind & 1)
			count = list_kind(x, kind, out, count);
	}
	return count;
}

/* --- text --- */

const char *explore_choice_text(struct explore_choice o, char *buf, size_t size)
{
	const char *args = kinds[o.kind].args;
	int at = 0;

	if (args[0] == 'c')
		at = snprintf(buf, size, "%c.", 'A' + o.who);
	at += snprintf(buf + at, size - (size_t)at, "%s", kinds[o.kind].text);
	if (args[0] == 'w')
		at += snprintf(buf + at, size - (size_t)at, "%u", o.who);
	if (strchr(args, 'u'))
		at += snprintf(buf + at, size - (size_t)at, "%u", o.units);
	if (strchr(args, 'g'))
		(void)snprintf(buf + at, size - (size_t)at, "@%u", o.gpu);
	return buf;
}

const char *explore_choice_read(const char *text, struct explore_choice *out)
{
	char word[32];
	size_t size = strcspn(text, " ");

	for (uint32_t n = 0; n < EXPLORE_DO_END * 4 * EXPLORE_GPUS * 8u; n++) {
		struct explore_choice o = {(uint8_t)(n / 64), (uint8_t)(n / 16 % 4),
			(uint8_t)(n / 8 % 2), (uint8_t)(n % 8)};

		(void)explore_choice_text(o, word, sizeof(word));
		if (strlen(word) == size && strncmp(word, text, size) == 0) {
			*out = o;
			return text + size + strspn(text + size, " ");
		}
	}
	return NULL;
}
