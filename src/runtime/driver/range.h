/*
 * range - the addresses that the program has reserved
 *
 * What it maps lies in them, and what it frees is looked up here, so that only its own reservations
 * are given back to the driver. A record is made before the driver is called and put into the table
 * after, so that missing host memory shows while nothing has happened yet. One lock, never held
 * during a driver call; functions take it themselves.
 */
#ifndef SL_RUNTIME_DRIVER_RANGE_H
#define SL_RUNTIME_DRIVER_RANGE_H

#include "base/sl.h"

struct sl_range;

/* A record that nobody knows yet, with room in the table, or NULL without host memory. */
struct sl_range *sl_range_new(void);
/* The driver said no after all. */
void sl_range_discard(struct sl_range *range);
/* The driver reserved it; what we thought to be there before is not. Bytes. */
void sl_range_add(struct sl_range *range, uint64_t address, uint64_t bytes);
/* Takes it out before the driver frees it; NULL if it is not the program's. */
struct sl_range *sl_range_take(uint64_t address);
/* The driver refused. */
void sl_range_put_back(struct sl_range *range);
/* The driver has freed it. */
void sl_range_drop(struct sl_range *range);

/* What there is, and rooms for what is being made; for tests. */
struct sl_range_counts {
	size_t ranges, promised;
};
struct sl_range_counts sl_range_count(void);

/* In the child of a fork: nothing is left, nothing is freed. */
void sl_range_forget(void);

#endif
