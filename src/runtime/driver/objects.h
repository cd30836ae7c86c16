/*
 * objects - what we remember about things of the driver that the program knows by a handle or
 * address
 *
 * A table from (kind, key) to a small record. Keys are the driver's handles or addresses; kinds
 * keep them apart. Thread-safe; one lock, held for table work only; memory from malloc, never in a
 * hot path.
 */
#ifndef SL_RUNTIME_DRIVER_OBJECTS_H
#define SL_RUNTIME_DRIVER_OBJECTS_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_gpu;

enum sl_object_kind {
	SL_OBJECT_ARRAY = 1, /* arrays and mipmapped arrays */
	SL_OBJECT_MANAGED,
	SL_OBJECT_POOL,
	SL_OBJECT_EXTERNAL, /* external memory */
	SL_OBJECT_EXEC,     /* an executable graph with memory nodes */
	SL_OBJECT_GRAPH,    /* a graph with memory nodes */
};

struct sl_object {
	enum sl_object_kind kind;
	uint64_t key;
	CUcontext ctx; /* goes with it; NULL: outlives contexts */
	struct sl_gpu *gpu;
	uint64_t bytes; /* charged for it */
	uint64_t extra; /* the kind's own */
};

/* Remembers a copy; one of the same kind and key is replaced. False: no host memory. */
SL_MUST_CHECK bool sl_objects_put(const struct sl_object *object);
/* Forgets it and copies it out. False: not known. */
SL_MUST_CHECK bool sl_objects_take(
	enum sl_object_kind kind, uint64_t key, struct sl_object *out);
/* Copies it out. False: not known. */
SL_MUST_CHECK bool sl_objects_get(
	enum sl_object_kind kind, uint64_t key, struct sl_object *out);
/* Forgets each object of the context and hands it to fn, which may call back in here. */
void sl_objects_drop_context(CUcontext ctx, void (*fn)(const struct sl_object *object));
/* The same in two steps, around a call that ends a context and may fail: all of its objects are
 * forgotten at once, so that none of a later context with the same handle is meant; then each is
 * handed to fn, or (fn NULL) all are remembered again. */
struct sl_objects_taken *sl_objects_take_context(CUcontext ctx);
void sl_objects_end_taken(
	struct sl_objects_taken *taken, void (*fn)(const struct sl_object *object));
/* In the child of a fork. */
void sl_objects_forget(void);

#endif
