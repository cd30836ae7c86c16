/*
 * objects - what we remember about the driver's objects, by their handle or address
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
	CUcontext ctx; /* the record goes with it; NULL: outlives contexts */
	struct sl_gpu *gpu;
	uint64_t bytes; /* charged for it */
	uint64_t extra; /* meaning depends on the kind */
};

/* Stores a copy; it replaces a record of the same kind and key. False: no host memory. */
SL_MUST_CHECK bool sl_objects_put(const struct sl_object *object);
/* Removes the record and copies it out. False: not known. */
SL_MUST_CHECK bool sl_objects_take(
	enum sl_object_kind kind, uint64_t key, struct sl_object *out);
/* Copies it out. False: not known. */
SL_MUST_CHECK bool sl_objects_get(
	enum sl_object_kind kind, uint64_t key, struct sl_object *out);
/* Removes each object of the context and passes it to fn, which may call functions of this
 * module. */
void sl_objects_drop_context(CUcontext ctx, void (*fn)(const struct sl_object *object));
/* sl_objects_drop_context in two steps, around a call that ends a context and may fail. Before it,
 * the first removes all objects of the context, so a new context with the same handle starts empty.
 * After it, the second passes each object to fn, or if fn is NULL stores them again. */
struct sl_objects_taken *sl_objects_take_context(CUcontext ctx);
void sl_objects_end_taken(
	struct sl_objects_taken *taken, void (*fn)(const struct sl_object *object));
/* In the child of a fork. */
void sl_objects_forget(void);

#endif
