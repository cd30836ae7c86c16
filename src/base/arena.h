/*
 * arena - memory that grows by blocks and is given back as a whole
 *
 * For the policy: it may ask for memory only when something is added (a GPU, a workload, a
 * client, a demand), and keeps free objects on lists of its own. Addresses never move. Not
 * thread-safe. Memory comes zeroed. Out of memory ends the process by abort(): the daemon
 * cannot decide without its books.
 */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/sl.h"

struct sl_arena;

struct sl_arena *sl_arena_new(void);
/* NULL is fine; returns NULL. */
struct sl_arena *sl_arena_free(struct sl_arena *arena);
/* size bytes, zeroed, aligned to 16. */
void *sl_arena_take(struct sl_arena *arena, size_t size);
/* Bytes handed out so far, for tests that nothing grows without cause. */
size_t sl_arena_used_bytes(const struct sl_arena *arena);

/*
 * What has been handed out, copied away, to be put back byte for byte: what happens in between has
 * never happened, and what was taken in between is gone. It ends with restore; of several images
 * the one that was taken last ends first. Costs a copy of the used bytes each.
 */
struct sl_arena_image;
struct sl_arena_image *sl_arena_save(struct sl_arena *arena);
void sl_arena_restore(struct sl_arena *arena, struct sl_arena_image *image);
/* As restore, but the image stays out and can be put back again. */
void sl_arena_put_back(struct sl_arena *arena, const struct sl_arena_image *image);

#endif
