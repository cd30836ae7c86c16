/*
 * arena - memory that grows by blocks and is freed as a whole
 *
 * Made for the policy. It allocates only when something is added (a GPU, a workload, a client, a
 * demand), and keeps free objects on its own lists. Addresses never move. Memory comes zeroed. Not
 * thread-safe. Out of memory ends the process by abort(): the daemon cannot decide without its
 * books.
 */
#ifndef SL_BASE_ARENA_H
#define SL_BASE_ARENA_H

#include "base/sl.h"

struct sl_arena;

struct sl_arena *sl_arena_new(void);
/* Accepts NULL; returns NULL. */
struct sl_arena *sl_arena_free(struct sl_arena *arena);
/* size bytes, zeroed, aligned to 16. */
void *sl_arena_take(struct sl_arena *arena, size_t size);
/* Bytes handed out so far; tests use it to find growth without cause. */
size_t sl_arena_used_bytes(const struct sl_arena *arena);

/*
 * A copy of all memory handed out; it costs as many bytes as are used. restore puts the memory back
 * byte for byte, which undoes every change and allocation since, and frees the image. Restore the
 * newest of several images first.
 */
struct sl_arena_image;
struct sl_arena_image *sl_arena_save(struct sl_arena *arena);
void sl_arena_restore(struct sl_arena *arena, struct sl_arena_image *image);
/* As restore, but the image stays and can be put back again. */
void sl_arena_put_back(struct sl_arena *arena, const struct sl_arena_image *image);

#endif
