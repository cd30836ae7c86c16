/*
 * range - the addresses that the program has reserved
 *
 * The program's mappings lie in them. cuMemAddressFree looks its range up here, so only the
 * program's own reservations go back to the driver. A record is allocated before the driver's call
 * and put into the table after it. So a lack of host memory shows before anything has changed. One
 * lock, never held during a driver call; functions take it themselves.
 */
#ifndef SL_RUNTIME_DRIVER_RANGE_H
#define SL_RUNTIME_DRIVER_RANGE_H

#include "base/sl.h"

struct sl_range;

/* A record in no table yet, with room for it in the table. NULL: no host memory. */
struct sl_range *sl_range_new(void);
/* The driver refused. */
void sl_range_discard(struct sl_range *range);
/* The driver reserved it; older records of that range are dropped. Bytes. */
void sl_range_add(struct sl_range *range, uint64_t address, uint64_t bytes);
/* Takes the record out before the driver frees the range; NULL: not the program's. */
struct sl_range *sl_range_take(uint64_t address);
/* The driver refused to free it. */
void sl_range_put_back(struct sl_range *range);
/* The driver has freed it. */
void sl_range_drop(struct sl_range *range);

/* Records, and rooms for those being made; for tests. */
struct sl_range_counts {
	size_t ranges, promised;
};
struct sl_range_counts sl_range_count(void);

/* In the child of a fork: empties the table without freeing. */
void sl_range_forget(void);

#endif
