/*
 * storm - random sequences of driver calls, run plain and under Sluice, compared call by call
 *
 * A *sequence* is a list of steps. A step is one row of ops.def with numbers for arguments: which
 * slot of the thread's tables, how many bytes, and dice for the rest. Nothing in it depends on an
 * address, so the same sequence runs anywhere, and any subset of its steps is a sequence, too: a
 * step whose slot is empty does nothing. So a failing sequence can be shrunk.
 *
 * Processes of a sequence are *workers*: `solo` has one thread and may do anything; `crew` has
 * several threads with tables of their own, and no calls by which one thread disturbs another;
 * `linked` ones share memory and take turns by the steps' tickets. A thread of a worker is a lane.
 *
 * What a step answered (result codes, sizes, offsets, hashes of contents; never an address) is
 * folded into one hash per step, in a file that both sides of the comparison write and the
 * conductor reads.
 */
#ifndef SL_TESTS_STORM_H
#define SL_TESTS_STORM_H

#include "base/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum storm_kind {
#define SL_STORM_KIND(letter, id, name, slots) STORM_##id,
#include "kinds.def"
#undef SL_STORM_KIND
	STORM_KINDS
};

enum {
#define SL_STORM_KIND(letter, id, name, slots) STORM_##id##_SLOTS = slots,
#include "kinds.def"
#undef SL_STORM_KIND
};

enum storm_op {
#define SL_STORM_OP(name, weight, flags, spec) STORM_OP_##name,
#include "ops.def"
#undef SL_STORM_OP
	STORM_OPS
};

enum {
	STORM_ANY = 0,
	STORM_SOLO = 1,    /* disturbs other threads of the process */
	STORM_LINKED = 2,  /* needs other processes */
	STORM_CAPTURE = 4, /* can be captured: preferred while a capture is open */
	STORM_OPENS = 8,   /* begins a capture */
	STORM_ENDS = 16,   /* ends one */
	STORM_UNCAPTURED =
		32, /* never while a capture is open: costs a worker its contents */
};

#define STORM_ARGS        5
#define STORM_WORKERS_MAX 16
#define STORM_LANES_MAX   8

/* What an argument is; small letters and '-' of ops.def. */
struct storm_arg {
	char what; /* '#' number, '%' bytes, or 's' for a slot */
	enum storm_kind kind;
	bool is_new, dies;
};

struct storm_op_row {
	const char *name;
	unsigned weight, flags, args;
	struct storm_arg arg[STORM_ARGS];
};
extern struct storm_op_row storm_op_rows[STORM_OPS];
/* Reads ops.def's specs; once, before anything else. */
void storm_ops_init(void);
extern const char *const storm_kind_names[STORM_KINDS];
extern const unsigned storm_kind_slots[STORM_KINDS];

struct storm_step {
	uint32_t id; /* place in the original sequence: stays when others go */
	uint16_t op;
	uint8_t worker, lane;
	uint32_t ticket; /* of linked workers: their common order */
	uint32_t dice;
	uint32_t arg[STORM_ARGS];
};

enum storm_shape { STORM_SHAPE_SOLO, STORM_SHAPE_CREW, STORM_SHAPE_LINKED };

struct storm_worker {
	enum storm_shape shape;
	unsigned lanes;
};

struct storm_sequence {
	unsigned workers;
	struct storm_worker worker[STORM_WORKERS_MAX];
	size_t count, room;
	struct storm_step *step;
};

/* Appends; ends the program when memory is short. */
void storm_add(struct storm_sequence *q, const struct storm_step *s);
void storm_free(struct storm_sequence *q);
/* Numbers the tickets of linked workers from 0, in the order of the list. */
void storm_number(struct storm_sequence *q);

/* Fills *q with `steps` steps; the same seed, the same sequence. */
void storm_generate(struct storm_sequence *q, uint64_t seed, size_t steps);

/* One line per step; false with a sentence on stderr if the file cannot be read. */
void storm_print_step(FILE *out, const struct storm_step *s);
bool storm_write(const struct storm_sequence *q, const char *path);
bool storm_read(struct storm_sequence *q, const char *path);

/* The file of answers: a header, then a result per step, then a text per step. Every step records
 * its answer as text, too, since a difference may never occur again. */
struct storm_result {
	uint64_t hash;
	uint32_t calls;
	int32_t code; /* of the last call */
	uint32_t done;
	uint32_t unused;
};

enum { STORM_IDS_MAX = 400, STORM_TEXT = 1024 };

struct storm_place {
	uint32_t valid, owner, buffer, opened, fd;
	uint64_t bytes;
	CUipcMemHandle mem;
	CUipcEventHandle event;
};

struct storm_answers {
	uint32_t turn; /* ticket whose step is next; a futex */
	uint32_t
		broken; /* step before which a bad access broke a context, + 1; 0: none */
	uint32_t finished[STORM_WORKERS_MAX];
	int32_t status
		[STORM_WORKERS_MAX]; /* as waitpid gives it; -1: hung and was killed */
	uint64_t calls[STORM_IDS_MAX], refused[STORM_IDS_MAX];
	struct storm_place place[STORM_PLACE_SLOTS];
	struct storm_result result[]; /* then char [count][STORM_TEXT] */
};
size_t storm_answers_bytes(size_t steps);
char *storm_text(struct storm_answers *a, size_t steps, size_t i);

/* The workers of a sequence, in this process's children. 0, or 1 if one did not end well. */
int storm_crew(const struct storm_sequence *q, struct storm_answers *answers);

#endif
