/*
 * slab - small allocations, many to a grain of device memory
 *
 * A slab is one 2 MiB backing cut into slots of one size class. A slot is free, live, or freed and
 * in quarantine. Every function here is called under the books' lock and is O(1) unless it says
 * otherwise; nothing here calls the driver. Sizes are bytes; slots are aligned to 512 bytes, as the
 * driver's own allocations are.
 */
#ifndef SL_RUNTIME_MEMORY_SLAB_H
#define SL_RUNTIME_MEMORY_SLAB_H

#include "runtime/memory/block.h"

#define SL_SLAB_BYTES (2 * SL_MIB)
#define SL_SLAB_ALIGN 512u
/* Empty slabs a space keeps, so that alternating allocate and free costs no driver call. */
#define SL_EMPTY_SLABS_KEPT 4
#define SL_SLOT_NONE        UINT16_MAX

enum sl_slot_state { SL_SLOT_FREE = 0, SL_SLOT_LIVE, SL_SLOT_FREED };

struct sl_slot {
	uint32_t bytes; /* as asked */
	uint16_t next;  /* in the free or the quarantine chain */
	uint8_t state;
	bool sync_memops; /* the attribute of that name */
	uint64_t id;      /* never reused */
};

struct sl_slab {
	struct sl_block block;
	struct sl_link all;        /* space->slabs */
	struct sl_link with_room;  /* space->with_room[class], while a slot is free */
	struct sl_link with_freed; /* space->with_freed, while freed_chain is not empty */
	uint16_t class, slots, live, free;
	uint16_t free_chain, freed_chain;
	uint16_t leaving_chain; /* freed slots that the running flush will return */
	uint32_t slot_bytes;
	struct sl_slot slot[];
};

static inline struct sl_slab *sl_slab_of(struct sl_block *block)
{
	return SL_CONTAINER_OF(block, struct sl_slab, block);
}

/* The class of a size from 1 to SL_SLAB_BYTES, and the slot size of a class. Sizes grow by an
 * eighth to a quarter and are multiples of 512. */
unsigned int sl_slab_class(uint64_t bytes);
uint32_t sl_slab_class_bytes(unsigned int class);

/* A record for a slab of that class: all slots free, in no list yet. NULL: no memory. O(slots); the
 * only function that needs no lock. */
struct sl_slab *sl_slab_new(unsigned int class);
/* Puts the slab into the lists of block.space; block.backing is set already. */
void sl_slab_add(struct sl_space *space, struct sl_slab *slab);
/* Takes the slab out of the space's lists; no slot may be live or freed. */
void sl_slab_remove(struct sl_slab *slab);
/* Takes a free slot of the class, NULL if no slab has one. */
struct sl_slot *sl_slab_take(struct sl_space *space, unsigned int class, uint64_t bytes,
	uint64_t id, CUdeviceptr *out);
/* Takes any slab without a live or freed slot out of the space and returns it; or NULL. */
struct sl_slab *sl_slab_take_empty(struct sl_space *space);
/* The slot that contains address; *base is where the slot begins. */
struct sl_slot *sl_slab_slot(
	struct sl_slab *slab, CUdeviceptr address, CUdeviceptr *base);
/* Puts a live slot into quarantine. */
void sl_slab_quarantine(struct sl_slab *slab, struct sl_slot *slot);

/* Marks all quarantined slots of the space as the batch of a flush. O(slabs with freed slots). */
void sl_slab_take_batch(struct sl_space *space, struct sl_link *batch);
/* The batch is settled: its slots are free again. O(slots). */
void sl_slab_return_batch(struct sl_space *space, struct sl_link *batch);
/* The batch could not be settled: its slots go back into quarantine. O(slots). */
void sl_slab_keep_batch(struct sl_space *space, struct sl_link *batch);

#endif
