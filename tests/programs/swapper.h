/*
 * swapper - what the parts of the program share: memory of every kind, and work on it
 *
 * A thing is a piece of memory. Its contents follow from its seed: word i of part p is
 * mix(seed + p, i). The thing records whether it was zeroed instead, and words that were poked
 * since, so every byte can be checked at any time. Only the thread that reads commands makes,
 * changes and frees things; workers allocate memory of their own. Sizes are bytes.
 */
#ifndef SL_TESTS_SWAPPER_H
#define SL_TESTS_SWAPPER_H

#include "prog.h"

enum { THING_POKES_MAX = 64, THING_NAME_MAX = 32 };

/* How it was asked for, and so how it is given back. */
enum thing_kind {
	THING_NONE = 0,
	THING_ALLOC,
	THING_HANDLES, /* handles that are kept */
	THING_SEGMENT, /* handles that were released once mapped */
	THING_ALIAS,   /* the same handles mapped a second time */
	THING_ARRAY,
	THING_MANAGED,
	THING_POOL,
	THING_OPENED,
};

struct thing_poke {
	uint64_t word;
	uint32_t value;
};

struct thing {
	char name[THING_NAME_MAX];
	enum thing_kind kind;
	CUcontext ctx;
	CUdeviceptr *at; /* one per part; all of one size */
	uint64_t parts, bytes, piece;
	CUmemGenericAllocationHandle *handles;
	CUarray array;
	struct thing *of; /* THING_ALIAS: the memory that has the contents */
	bool written, zero;
	uint32_t seed;
	struct thing_poke pokes[THING_POKES_MAX];
	uint32_t poke_count;
};

/* The kernels of the current context; loaded once for each. */
struct kernels {
	CUcontext ctx;
	CUfunction fill, check, spin, wait, step;
	CUdeviceptr bad;
};
const struct kernels *swapper_kernels(void);
/* The context is gone, and its memory with it. */
void swapper_forget(CUcontext ctx);

/* Of this name, made if it is new. */
struct thing *thing_named(const char *name);
/* The next one that holds memory after `after` (NULL: the first), or NULL. */
struct thing *thing_next(struct thing *after);

/* All return what the driver said; a thing that could not be made is not kept. */
CUresult thing_alloc(struct thing *thing, uint64_t parts, uint64_t bytes);
CUresult thing_map(
	struct thing *thing, enum thing_kind kind, uint64_t bytes, uint64_t piece);
CUresult thing_alias(struct thing *thing, struct thing *of);
CUresult thing_array(struct thing *thing, uint64_t bytes);
CUresult thing_managed(struct thing *thing, uint64_t bytes);
CUresult thing_pool(struct thing *thing, uint64_t bytes);
CUresult thing_open(struct thing *thing, const char *path, uint64_t bytes, uint32_t seed);
/* Gives up the last bytes of a THING_SEGMENT; a multiple of its pieces. */
CUresult thing_shrink(struct thing *thing, uint64_t bytes);
CUresult thing_free(struct thing *thing);

/* By kernels, by copies from the host, or zeros by memset; returned once it is done. */
CUresult thing_fill(struct thing *thing, uint32_t seed);
CUresult thing_put(struct thing *thing, uint32_t seed);
CUresult thing_zero(struct thing *thing);
CUresult thing_poke(struct thing *thing, uint64_t offset, uint32_t value);
CUresult thing_copy(struct thing *thing, struct thing *of);
/* Words that are not what they must be: seen by a kernel where one can see it, and in a copy of all
 * of it. */
CUresult thing_check(struct thing *thing, uint64_t *wrong);
/* Follows from every word there is. */
CUresult thing_digest(struct thing *thing, uint64_t *digest);

/* --- work in threads of its own (swapper-work.c): until swapper_stop, which tells all --- */

struct outcome {
	uint64_t rounds, wrong, errors;
	CUresult last; /* the last error */
};
/* False if there is no such work. bytes: of what each thread works on; pause_ms: after every
 * round. */
bool swapper_begin(const char *work, uint64_t threads, uint64_t bytes, uint64_t pause_ms);
/* Of all that was begun, while it goes on. */
struct outcome swapper_so_far(void);
struct outcome swapper_stop(void);

#endif
