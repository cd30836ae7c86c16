/*
 * swap_scenes - small plays of swapping programs with exact expectations in virtual time
 */
#ifndef SL_SIM_SWAP_SCENES_H
#define SL_SIM_SWAP_SCENES_H

#include "swap_world.h"

/* All of them; false after the first that comes out otherwise, which is printed. */
bool swap_scenes_run(struct swap_world *world, bool quiet);

#endif
