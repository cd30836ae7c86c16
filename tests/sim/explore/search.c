/*
 * search - see the header
 *
 * Of each state, its key, its parent and the choice that led to it are kept. A hash table finds a
 * key again. A state that breaks a promise is not continued.
 */
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct node {
	struct explore_key key;
	uint32_t from;
	struct explore_choice choice;
};

static struct node *nodes;
static uint32_t nodes_count, nodes_room;
static uint32_t *table; /* places in nodes, plus 1; 0: free */
static uint32_t table_bits;

static struct explore x;

/* --- states that were seen --- */

static void *grow(void *old, size_t size)
{
	void *memory = realloc(old, size);

	if (!memory)
		abort();
	return memory;
}

static uint32_t *place_of(struct explore_key key)
{
	uint32_t at = (uint32_t)(key.word[0] >> (64 - table_bits));

	while (table[at] && memcmp(&nodes[table[at] - 1].key, &key, sizeof(key)) != 0)
		at = (at + 1) & ((1u << table_bits) - 1);
	return &table[at];
}

static void widen(void)
{
	table_bits++;
	table = grow(table, sizeof(*table) << table_bits);
	memset(table, 0, sizeof(*table) << table_bits);
	for (uint32_t i = 0; i < nodes_count; i++)
		*place_of(nodes[i].key) = i + 1;
}

/* False: there is one like it. */
static bool add(struct explore_key key, uint32_t from, struct explore_choice choice)
{
	uint32_t *place = place_of(key);

	if (*place)
		return false;
	if (nodes_count == nodes_room) {
		nodes_room = nodes_room ? 2 * nodes_room : 4096;
		nodes = grow(nodes, nodes_room * sizeof(*nodes));
	}
	nodes[nodes_count] = (struct node){key, from, choice};
	*place = ++nodes_count;
	if (nodes_count > 1u << (table_bits - 1))
		widen();
	return true;
}

static void clear(void)
{
	nodes_count = 0;
	table_bits = 15;
	widen();
}

/* --- histories --- */

static uint32_t history_of(uint32_t at, struct explore_choice *out)
{
	uint32_t depth = 0;

	for (uint32_t i = at; i; i = nodes[i].from)
		depth++;
	for (uint32_t i = at, n = depth; i; i = nodes[i].from)
		out[--n] = nodes[i].choice;
	return depth;
}

static void note(struct explore_result *result, uint32_t from, struct explore_choice last,
	uint32_t depth)
{
	struct explore_find *find = &result->find[x.broken];
	struct explore_choice history[256];
	uint32_t count = history_of(from, history);
	size_t at = 0;

	if (find->promise)
		return;
	find->promise = x.broken;
	find->depth = depth;
	memcpy(find->because, x.because, sizeof(find->because));
	history[count++] = last;
	for (uint32_t i = 0; i < count && at + 32 < sizeof(find->history); i++) {
		if (i)
			find->history[at++] = ' ';
		(void)explore_choice_text(history[i], find->history + at, 24);
		at += strlen(find->history + at);
	}
}

/* --- the search --- */

struct from { /* the state that is gone on with */
	struct explore_state state;
	struct sl_arena_image *image;
	uint32_t at, depth;
};

static void enter(const struct from *from, struct explore_choice choice)
{
	sl_arena_put_back(x.arena, from->image);
	x.s = from->state;
	x.broken = EXPLORE_KEPT;
	x.closes = false;
	explore_do(&x, choice);
}

static bool is_quiet(void)
{
	for (uint32_t i = 0; i < x.world->clients; i++) {
		const struct explore_client *c = &x.s.client[i];

		if (c->alive && (c->order || c->expected || c->ask_units ||
					explore_wants_back(c)))
			return false;
	}
	return true;
}

static void close_both(const struct from *from, struct explore_choice choice,
	const struct explore_options *options)
{
	if (!options->closes || is_quiet())
		return;
	if (!options->deep)
		explore_close(&x, EXPLORE_GO_IDLE);
	if (x.broken)
		return;
	enter(from, choice);
	explore_close(&x, EXPLORE_WORK_ON);
}

static void try(const struct from *from, struct explore_choice choice,
	const struct explore_options *options, struct explore_result *result)
{
	struct explore_key key;

	enter(from, choice);
	if (!x.broken) {
		key = explore_key_of(&x);
		if (options->deep && !is_quiet()) {
			x.heard = 0;
			x.heard_from = x.s.now;
			explore_close(&x, EXPLORE_GO_IDLE);
			key.word[0] ^= x.heard;
			key.word[1] += x.heard;
		}
		if (!add(key, from->at, choice)) {
			result->merged++;
			return;
		}
		if (!x.broken)
			close_both(from, choice, options);
	}
	if (x.broken) {
		note(result, from->at, choice, from->depth + 1);
		/* Nothing follows from it. */
		if (nodes_count && nodes[nodes_count - 1].from == from->at &&
			memcmp(&nodes[nodes_count - 1].choice, &choice, sizeof(choice)) ==
				0)
			nodes[nodes_count - 1].choice.kind |= 128;
	}
}

static void go_on(uint32_t at, uint32_t depth, const struct explore_options *options,
	struct explore_result *result)
{
	struct explore_choice history[256], choices[EXPLORE_CHOICES];
	struct from from = {.at = at, .depth = depth};
	uint32_t count = history_of(at, history);

	explore_begin(&x, x.world);
	for (uint32_t i = 0; i < count; i++)
		explore_do(&x, history[i]);
	from.state = x.s;
	from.image = sl_arena_save(x.arena);
	count = explore_choices(&x, choices);
	for (uint32_t i = 0; i < count; i++)
		try(&from, choices[i], options, result);
	sl_arena_restore(x.arena, from.image);
	explore_end(&x);
}

/* The setup alone breaks nothing, or there is nothing to search. */
static bool begin(struct explore_result *result)
{
	explore_begin(&x, x.world);
	clear();
	if (x.broken)
		note(result, 0, (struct explore_choice){.kind = EXPLORE_DO_WAKE}, 0);
	else
		(void)add(explore_key_of(&x), 0, (struct explore_choice){0});
	explore_end(&x);
	return !x.broken;
}

void explore_search(const struct explore_world *world,
	const struct explore_options *options, struct explore_result *result)
{
	clock_t began = clock();
	uint32_t at = 0;

	memset(result, 0, sizeof(*result));
	memset(&x, 0, sizeof(x));
	x.world = world;
	explore_key_begin(world, options->symmetry);
	if (!begin(result))
		return;
	while (result->depth < options->depth && at < nodes_count) {
		uint32_t level = nodes_count;

		while (at < level && sl_clock_now() < options->until) {
			if (!(nodes[at].choice.kind & 128))
				go_on(at, result->depth, options, result);
			at++;
		}
		if (at < level)
			break;
		result->depth++;
	}
	result->is_all = at == nodes_count;
	result->states = nodes_count;
	result->seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
}

/* --- one history again --- */

/* False: this history is not possible. */
static bool play(const char *history)
{
	while (*history && !x.broken) {
		struct explore_choice o;
		const char *next = explore_choice_read(history, &o);

		if (!next || !explore_can(&x, o))
			return false;
		if (x.prints)
			printf("%.*s\n", (int)strcspn(history, " "), history);
		explore_do(&x, o);
		history = next;
	}
	return true;
}

enum explore_promise explore_replay(const struct explore_world *world,
	const char *history, bool prints, char *because, size_t size)
{
	x.broken = EXPLORE_KEPT;
	for (uint32_t how = EXPLORE_GO_IDLE; how <= EXPLORE_WORK_ON && !x.broken; how++) {
		bool can;

		memset(&x, 0, sizeof(x));
		x.prints = prints && how == EXPLORE_GO_IDLE;
		explore_begin(&x, world);
		can = play(history);
		x.prints = prints;
		if (prints && can && !x.broken)
			printf("closing: %s\n", how == EXPLORE_GO_IDLE
							? "clients go idle"
							: "clients work on");
		if (can && !x.broken)
			explore_close(&x, (enum explore_closing)how);
		explore_end(&x);
		if (!can)
			break;
	}
	(void)snprintf(because, size, "%s",
		x.broken ? x.because : "all promises hold, or it cannot happen");
	return x.broken;
}
