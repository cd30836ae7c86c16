/*
 * move - the parts of sluice-move; base/move.h has its messages
 */
#ifndef SL_MOVE_MOVE_H
#define SL_MOVE_MOVE_H

#include "base/move.h"

/* Carries an order out, and sets all of *answer but its number and span. Takes as long as the
 * driver does. Any number of threads, each with another process. */
void sl_walk(const struct sl_move_order *order, struct sl_move_answer *answer);

#endif
