/*
 * slab - see slab.h
 *
 * Slot records lie beside the slab in host memory, never in device memory. Chains are indices, so a
 * record is 16 bytes (3 % of the smallest slots). A function that changes a slab's own counts also
 * updates its space's counts of idle and empty slabs.
 */
#include "runtime/memory/slab.h"
#include "runtime/session/session.h"

#include <stdlib.h>

static bool is_empty(const struct sl_slab *slab)
{
	return slab->free == slab->slots;
}

/* Bytes that a flush of the space would free; cuMemGetInfo counts them as free. */
static void count_idle(struct sl_slab *slab, int by)
{
	slab->block.space->idle_slabs += (uint32_t)by;
	sl_session_quarantined(slab->block.space->gpu, by * (int64_t)SL_SLAB_BYTES);
}

unsigned int sl_slab_class(uint64_t bytes)
{
	uint64_t units = (bytes + SL_SLAB_ALIGN - 1) / SL_SLAB_ALIGN;
	unsigned int power;

	if (units <= 4)
		return units ? (unsigned int)units - 1 : 0;
	/* 2^power < units <= 2^(power + 1), in four steps. */
	power = 63 - (unsigned int)__builtin_clzll(units - 1);
	return 4 * (power - 1) +
	       (unsigned int)((units - 1 - (1ull << power)) >> (power - 2));
}

uint32_t sl_slab_class_bytes(unsigned int class)
{
	unsigned int power = class / 4 + 1, step = class % 4 + 1;

	if (class < 4)
		return (class + 1) * SL_SLAB_ALIGN;
	return ((1u << power) + (step << (power - 2))) * SL_SLAB_ALIGN;
}

struct sl_slab *sl_slab_new(unsigned int class)
{
	uint32_t slot_bytes = sl_slab_class_bytes(class);
	uint16_t slots = (uint16_t)(SL_SLAB_BYTES / slot_bytes);
	struct sl_slab *slab = calloc(1, sizeof(*slab) + slots * sizeof(slab->slot[0]));

	if (!slab)
		return NULL;
	slab->block.kind = SL_BLOCK_SLAB;
	slab->class = (uint16_t) class;
	slab->slots = slab->free = slots;
	slab->slot_bytes = slot_bytes;
	slab->freed_chain = slab->leaving_chain = SL_SLOT_NONE;
	for (uint16_t i = 0; i < slots; i++)
		slab->slot[i].next = i + 1 < slots ? (uint16_t)(i + 1) : SL_SLOT_NONE;
	sl_list_init(&slab->block.in_hands);
	sl_list_init(&slab->all);
	sl_list_init(&slab->with_room);
	sl_list_init(&slab->with_freed);
	return slab;
}

void sl_slab_add(struct sl_space *space, struct sl_slab *slab)
{
	sl_block_let_go(&slab->block);
	sl_list_push_tail(&space->slabs, &slab->all);
	sl_list_push_head(&space->with_room[slab->class], &slab->with_room);
	count_idle(slab, 1);
	space->empty_slabs++;
}

void sl_slab_remove(struct sl_slab *slab)
{
	sl_list_unlink(&slab->all);
	sl_list_unlink(&slab->with_room);
	sl_list_unlink(&slab->with_freed);
	if (slab->live == 0)
		count_idle(slab, -1);
	if (is_empty(slab))
		slab->block.space->empty_slabs--;
}

struct sl_slot *sl_slab_take(struct sl_space *space, unsigned int class, uint64_t bytes,
	uint64_t id, CUdeviceptr *out)
{
	struct sl_link *room = &space->with_room[class];
	struct sl_slab *slab;
	struct sl_slot *slot;

	if (sl_list_is_empty(room))
		return NULL;
	slab = SL_LIST_ENTRY(room->next, struct sl_slab, with_room);
	if (is_empty(slab))
		space->empty_slabs--;
	if (slab->live++ == 0)
		count_idle(slab, -1);
	*out = slab->block.backing.base + (uint64_t)slab->free_chain * slab->slot_bytes;
	slot = &slab->slot[slab->free_chain];
	slab->free_chain = slot->next;
	if (--slab->free == 0)
		sl_list_unlink(&slab->with_room);
	slot->bytes = (uint32_t)bytes;
	slot->state = SL_SLOT_LIVE;
	slot->sync_memops = false;
	slot->id = id;
	return slot;
}

struct sl_slab *sl_slab_take_empty(struct sl_space *space)
{
	if (space->empty_slabs == 0)
		return NULL;
	for (int class = 0; class < SL_SLAB_CLASSES; class ++) {
		sl_list_foreach (link, &space->with_room[class]) {
			struct sl_slab *slab =
				SL_LIST_ENTRY(link, struct sl_slab, with_room);

			if (is_empty(slab)) {
				sl_slab_remove(slab);
				return slab;
			}
		}
	}
	return NULL;
}

struct sl_slot *sl_slab_slot(struct sl_slab *slab, CUdeviceptr address, CUdeviceptr *base)
{
	uint64_t index = (address - slab->block.backing.base) / slab->slot_bytes;

	*base = slab->block.backing.base + index * slab->slot_bytes;
	return index < slab->slots ? &slab->slot[index] : NULL;
}

void sl_slab_quarantine(struct sl_slab *slab, struct sl_slot *slot)
{
	struct sl_space *space = slab->block.space;

	slot->state = SL_SLOT_FREED;
	slot->next = slab->freed_chain;
	slab->freed_chain = (uint16_t)(slot - slab->slot);
	space->freed_bytes += slab->slot_bytes;
	if (!sl_list_is_linked(&slab->with_freed))
		sl_list_push_tail(&space->with_freed, &slab->with_freed);
	if (--slab->live == 0)
		count_idle(slab, 1);
}

void sl_slab_take_batch(struct sl_space *space, struct sl_link *batch)
{
	sl_list_foreach_safe (link, &space->with_freed) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, with_freed);

		slab->leaving_chain = slab->freed_chain;
		slab->freed_chain = SL_SLOT_NONE;
		sl_list_unlink(link);
		sl_list_push_tail(batch, link);
	}
	space->freed_bytes = 0;
}

static void settled(struct sl_slab *slab)
{
	struct sl_space *space = slab->block.space;

	while (slab->leaving_chain != SL_SLOT_NONE) {
		struct sl_slot *slot = &slab->slot[slab->leaving_chain];
		uint16_t index = slab->leaving_chain;

		slab->leaving_chain = slot->next;
		slot->state = SL_SLOT_FREE;
		slot->next = slab->free_chain;
		slab->free_chain = index;
		slab->free++;
	}
	if (!sl_list_is_linked(&slab->with_room))
		sl_list_push_tail(&space->with_room[slab->class], &slab->with_room);
	if (is_empty(slab))
		space->empty_slabs++;
}

/* Slots freed while the batch was out wait for the next one. */
static void relist(struct sl_space *space, struct sl_slab *slab)
{
	sl_list_unlink(&slab->with_freed);
	if (slab->freed_chain != SL_SLOT_NONE)
		sl_list_push_tail(&space->with_freed, &slab->with_freed);
}

void sl_slab_return_batch(struct sl_space *space, struct sl_link *batch)
{
	sl_list_foreach_safe (link, batch) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, with_freed);

		settled(slab);
		relist(space, slab);
	}
}

void sl_slab_keep_batch(struct sl_space *space, struct sl_link *batch)
{
	sl_list_foreach_safe (link, batch) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, with_freed);

		while (slab->leaving_chain != SL_SLOT_NONE) {
			struct sl_slot *slot = &slab->slot[slab->leaving_chain];
			uint16_t index = slab->leaving_chain;

			slab->leaving_chain = slot->next;
			slot->next = slab->freed_chain;
			slab->freed_chain = index;
			space->freed_bytes += slab->slot_bytes;
		}
		relist(space, slab);
	}
}
