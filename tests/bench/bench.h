/*
 * bench - rows, samples and parts of `make bench`
 *
 * One program, with a part for each budget (parts.def). Each part runs in a process of its own,
 * measures, and appends a line of JSON per figure to the file in SL_BENCH_ROWS. `bench report`
 * makes bench.json and the table of these lines. A part that cannot measure says why and exits 1: a
 * row is measured or absent, never guessed. Single-threaded unless a function says otherwise.
 */
#ifndef SL_TESTS_BENCH_H
#define SL_TESTS_BENCH_H

#include "base/clock.h"

#include <stdio.h>

#define BENCH_NONE     (-1.0)
#define BENCH_COMPUTED (-2.0)

enum bench_row_id {
#define SL_BENCH_ROW(ID, name, unit, budget, text) BENCH_##ID,
#include "rows.def"
#undef SL_BENCH_ROW
	BENCH_ROWS
};

struct bench_row {
	const char *name, *unit;
	double budget; /* at most; BENCH_NONE; BENCH_COMPUTED */
	const char *text;
};
extern const struct bench_row bench_rows[BENCH_ROWS];

/* Appends a figure; NAN: none here. variant: what stands behind the colon, or NULL. */
void bench_emit(enum bench_row_id id, const char *variant, double value);
/* The same with a row to compare with: `reference`, of the same variant. `budget` replaces the
 * budget in rows.def, unless it is BENCH_COMPUTED. */
void bench_emit_against(enum bench_row_id id, const char *variant, double value,
	enum bench_row_id reference, double budget);

/* Says why nothing can be measured and exits 1. */
void bench_die(const char *format, ...) SL_PRINTF(1, 2) __attribute__((noreturn));
#define bench_require(condition, ...)           \
	do {                                    \
		if (sl_unlikely(!(condition)))  \
			bench_die(__VA_ARGS__); \
	} while (0)

#define BENCH_SAMPLES_MAX 65536
struct bench_samples {
	size_t count;
	uint64_t value[BENCH_SAMPLES_MAX];
};

/* Zeroed, from the heap; never fails. */
struct bench_samples *bench_samples_new(void);
/* Dies when full. */
void bench_samples_add(struct bench_samples *samples, uint64_t value);
/* The smallest value that at least per_mille thousandths of the samples do not exceed; sorts.
 * Dies on no samples. */
uint64_t bench_quantile(struct bench_samples *samples, unsigned int per_mille);

/* True if another round should run; round counts from 0, and begin is when the first began. At
 * least `least` rounds run, at most `most`, and no new one after span_ns: a real driver takes
 * seconds for what the software GPU does in milliseconds. */
bool bench_more(int round, int least, int most, sl_ns begin, sl_ns span_ns);

/* Absolute path of a file of the build folder ("sluice", "tests/bench/starter"); dies if it is
 * not there. The caller frees. */
char *bench_path(const char *relative);

/* The parts: `bench NAME ARGS`. argv[0] is the name; the exit status comes back. */
#define SL_BENCH_PART(name, text) int bench_part_##name(int argc, char **argv);
#include "parts.def"
#undef SL_BENCH_PART

#endif
