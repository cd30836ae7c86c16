/*
 * room_worlds - small worlds in which room() is asked, and judged (room_judge.h)
 */
#ifndef SL_TESTS_ROOM_WORLDS_H
#define SL_TESTS_ROOM_WORLDS_H

#include "room_judge.h"

/* What the worlds that are drawn by chance are drawn from. */
extern uint64_t room_worlds_seed;

/* A test of cmocka's. */
void room_worlds_keep_promises(void **state);

#endif
