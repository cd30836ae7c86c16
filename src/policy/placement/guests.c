/*
 * guests - see the header
 */
#include "policy/placement/guests.h"

#include "policy/compute/compute.h"

#define GPUS_MAX 32

/* --- going home --------------------------------------------------------------------------- */

/* GPUs whose requests of memory or time would exceed them once those that go are at home. */
static uint32_t too_full(
	const struct sl_guests_gpu gpus[], const struct sl_guest guests[], size_t count)
{
	uint32_t full = 0;

	for (uint32_t gpu = 0; gpu < GPUS_MAX; gpu++) {
		uint64_t come = 0, leave = 0;
		uint32_t come_pm = 0, leave_pm = 0;

		for (size_t i = 0; i < count; i++) {
			const struct sl_guest *guest = &guests[i];

			if (!guest->goes)
				continue;
			come += guest->home >> gpu & 1 ? guest->request_bytes : 0;
			leave += guest->at >> gpu & 1 ? guest->request_bytes : 0;
			come_pm += guest->home >> gpu & 1 ? guest->compute_pm : 0;
			leave_pm += guest->at >> gpu & 1 ? guest->compute_pm : 0;
		}
		if ((come && gpus[gpu].requests_bytes + come >
				     gpus[gpu].shareable_bytes + leave) ||
			(come_pm && gpus[gpu].compute_pm + come_pm >
					    SL_COMPUTE_WHOLE + leave_pm))
			full |= 1u << gpu;
	}
	return full;
}

/* Marks the guests on these GPUs. False: *stuck cannot leave. */
static bool mark(struct sl_guest guests[], size_t count, uint32_t on, size_t *stuck)
{
	for (size_t i = 0; i < count; i++) {
		struct sl_guest *guest = &guests[i];

		if (!guest->claims || !(guest->at & ~guest->home & on))
			continue;
		if (!guest->moves) {
			*stuck = i;
			return false;
		}
		guest->goes = true;
	}
	return true;
}

/* One that goes and has no room at home. */
static size_t without_room(const struct sl_guest guests[], size_t count, uint32_t full)
{
	size_t i = 0;

	while (i < count && !(guests[i].goes && guests[i].home & full))
		i++;
	return i;
}

enum sl_guests_outcome sl_guests_leave(const struct sl_guests_gpu gpus[],
	struct sl_guest guests[], size_t count, uint32_t wanted, size_t *stuck)
{
	uint32_t cleared = 0, next = wanted;
	bool any = false;

	for (size_t i = 0; i < count; i++)
		guests[i].goes = false;
	/* Each round clears another GPU. */
	while (next & ~cleared) {
		if (!mark(guests, count, next, stuck))
			return SL_GUESTS_STUCK;
		cleared |= next;
		next = too_full(gpus, guests, count);
	}
	if (next) {
		*stuck = without_room(guests, count, next);
		return SL_GUESTS_STUCK;
	}
	for (size_t i = 0; i < count; i++)
		any |= guests[i].goes;
	return any ? SL_GUESTS_GO : SL_GUESTS_NONE;
}

/* --- spreading ---------------------------------------------------------------------------- */

static uint32_t unused(
	const struct sl_guests_gpu gpus[], const struct sl_guest guests[], size_t count)
{
	uint32_t free = 0;

	for (uint32_t gpu = 0; gpu < GPUS_MAX; gpu++)
		free |= (uint32_t)(gpus[gpu].works && !gpus[gpu].users &&
				   !gpus[gpu].requests_bytes)
			<< gpu;
	for (size_t i = 0; i < count; i++) {
		if (guests[i].returns)
			free &= ~(guests[i].home | guests[i].at);
	}
	return free;
}

static bool may_spread(const struct sl_guests_gpu gpus[], const struct sl_guest *guest,
	uint32_t free, sl_ns now)
{
	return guest->claims && guest->moves && guest->bursts && guest->reach & free &&
	       __builtin_popcount(guest->at) == 1 &&
	       gpus[__builtin_ctz(guest->at)].users > 1 &&
	       (!guest->moved || now >= guest->moved + SL_GUESTS_STAY);
}

size_t sl_guests_spread(const struct sl_guests_gpu gpus[], const struct sl_guest guests[],
	size_t count, sl_ns now, uint32_t *gpu)
{
	uint32_t free = unused(gpus, guests, count);
	size_t best = count;

	for (size_t i = 0; i < count; i++) {
		if (may_spread(gpus, &guests[i], free, now) &&
			(best == count || guests[i].moved < guests[best].moved))
			best = i;
	}
	if (best < count)
		*gpu = (uint32_t)__builtin_ctz(guests[best].reach & free);
	return best;
}
