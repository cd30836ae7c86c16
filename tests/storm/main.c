/*
 * main - the storm's conductor
 *
 *   storm [--calls N] [--seed S] [--steps N] [--keep DIR] [--faults PLAN] [--] [FRONT WORDS...]
 *   storm --replay FILE ... [FRONT WORDS...]
 *
 * FRONT WORDS stand before the program on the second side: `sluice run --`. The first side is run
 * without. Exit status: 0 all alike, 1 a difference, 2 usage, 4 the plain side failed.
 */
#include "compare.h"
#include "lane.h"

#include "prog.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t calls = 1000000, seed = 1, steps = 20000, shrink_s = 240;
static const char *keep = "/tmp", *replay, *faults;
static const char *without;
static bool verbose;

static int run_one_side(const char *sequence, const char *answers_path)
{
	struct storm_sequence q;
	struct storm_answers *answers;

	if (!storm_read(&q, sequence))
		return 2;
	answers = storm_map_answers(answers_path, q.count, false);
	return answers ? storm_crew(&q, answers) : 2;
}

static void print_counts(const struct storm_sides *sides)
{
	unsigned used = 0, answered = 0;

	for (unsigned i = 0; i < STORM_IDS; i++) {
		used += sides->calls[i] != 0;
		answered += sides->calls[i] > sides->refused[i];
		if (verbose)
			printf("  %-36s %8lu calls, %8lu refused\n", storm_call_names[i],
				sides->calls[i], sides->refused[i]);
		else if (sides->calls[i] && sides->calls[i] == sides->refused[i])
			printf("  never done, always refused: %s\n", storm_call_names[i]);
	}
	printf("storm: %u functions called, %u of them done at least once\n", used,
		answered);
}

/* How much of both begins with the same lines. */
static size_t same_lines(const char *a, const char *b)
{
	size_t lines = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '\n')
			lines = i + 1;
	return lines;
}

static void print_difference(
	const struct storm_sequence *q, const struct storm_difference *d)
{
	size_t same = same_lines(d->plain, d->other);

	printf("storm: %s:\n  ", d->what);
	storm_print_step(stdout, &q->step[d->at]);
	printf("  plain, after %zu bytes that are alike:\n%s  other:\n%s", same,
		d->plain + same, d->other + same);
}

/* Says what differs; shrinks what differs again, and leaves a file that can be replayed. */
static void report(struct storm_sides *sides, struct storm_sequence *q,
	struct storm_difference *d, uint64_t of)
{
	struct storm_difference again = {.at = d->at};
	char path[512];

	printf("storm: seed %lu, step %zu of %zu\n", of, d->at, q->count);
	print_difference(q, d);
	storm_compare(sides, q, &again);
	printf("storm: once more: %s\n", again.what);
	if (again.verdict == STORM_ALIKE) {
		printf("storm: the plain side says to this step %s\n",
			strcmp(again.plain, d->plain) ? "something else now"
						      : "the same as at first");
		return;
	}
	print_difference(q, &again);
	printf("storm: looking for the smallest sequence (at most %lu s)\n", shrink_s);
	fflush(stdout);
	storm_shrink(sides, q, d, (unsigned)shrink_s);
	snprintf(path, sizeof(path), "%s/minimal", sides->folder);
	storm_write(q, path);
	printf("storm: minimal sequence of %zu steps, for --replay %s\n", q->count, path);
	if (q->count <= 100)
		for (size_t i = 0; i < q->count; i++)
			storm_print_step(stdout, &q->step[i]);
	print_difference(q, d);
	fflush(stdout);
}

static int one_round(struct storm_sides *sides, struct storm_sequence *q, uint64_t of)
{
	struct storm_difference d = {.at = 0};

	storm_compare(sides, q, &d);
	if (d.verdict == STORM_ALIKE)
		return 0;
	if (replay)
		print_difference(q, &d);
	else
		report(sides, q, &d, of);
	return d.verdict == STORM_BROKEN ? 4 : 1;
}

/* "share_*,retain": their weight becomes zero. False: no such operation. */
static bool leave_out(const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ","), found = 0;
		bool prefix = length && list[length - 1] == '*';

		for (unsigned i = 0; i < STORM_OPS; i++) {
			const char *name = storm_op_rows[i].name;

			if (strncmp(name, list, length - prefix) ||
				(!prefix && name[length]))
				continue;
			storm_op_rows[i].weight = 0;
			found++;
		}
		if (!found) {
			fprintf(stderr, "storm: no operation is called %.*s\n",
				(int)length, list);
			return false;
		}
		list += length + (list[length] == ',');
	}
	return true;
}

static int conduct(struct storm_sides *sides)
{
	struct storm_sequence q;
	unsigned rounds = 0;
	int status = 0;

	if (replay) {
		if (!storm_read(&q, replay) || !q.count)
			return PROG_USAGE;
		status = one_round(sides, &q, 0);
		printf("storm: %zu steps, %s\n", q.count,
			status ? "not alike" : "all alike");
		return status;
	}
	while (!status && sides->total < calls) {
		storm_generate(&q, seed + rounds, steps);
		status = one_round(sides, &q, seed + rounds);
		rounds++;
		printf("storm: round %u (seed %lu, %u processes, %zu steps): %lu of %lu "
		       "calls compared\n",
			rounds, seed + rounds - 1, q.workers, q.count, sides->total,
			calls);
		fflush(stdout);
		storm_free(&q);
	}
	print_counts(sides);
	if (!status)
		printf("storm: %lu calls, all answers alike\n", sides->total);
	return status;
}

int main(int argc, char **argv)
{
	static struct storm_sides sides;
	const struct prog_option options[] = {
		{"calls", PROG_NUMBER, &calls, "driver calls to compare, at least"},
		{"seed", PROG_NUMBER, &seed,
			"of the first round; the next one's is one more"},
		{"steps", PROG_NUMBER, &steps, "per round; each is one or more calls"},
		{"shrink", PROG_NUMBER, &shrink_s,
			"seconds to look for a smaller sequence"},
		{"keep", PROG_TEXT, &keep, "folder for sequences and answers"},
		{"replay", PROG_TEXT, &replay, "runs this sequence instead"},
		{"faults", PROG_TEXT, &faults, "fault plan of the second side"},
		{"without", PROG_TEXT, &without,
			"operations to leave out, by comma; * at an end"},
		{"verbose", PROG_FLAG, &verbose, "calls per function"},
	};
	int at;

	storm_ops_init();
	if (argc == 4 && !strcmp(argv[1], "--side"))
		return run_one_side(argv[2], argv[3]);
	at = prog_options(argc, argv, "Random driver calls, compared with a plain run.",
		options, sizeof(options) / sizeof(options[0]));
	if (at < argc && !strcmp(argv[at], "--"))
		at++;
	if (without && !leave_out(without))
		return PROG_USAGE;
	sides.self = argv[0];
	sides.folder = keep;
	sides.front = &argv[at];
	sides.faults = faults;
	return conduct(&sides);
}
