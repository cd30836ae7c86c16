/*
 * plays - small plays of swapping programs with exact expectations in virtual time
 */
#ifndef SL_SIM_SWAP_SCENES_H
#define SL_SIM_SWAP_SCENES_H

#include "world.h"

/* Plays all. False: a play had an unexpected result, which is printed (quiet: stops after the
 * first). otherwise: a file with the names of plays that must have another result, a line each;
 * NULL: none. */
bool swap_scenes_run(struct swap_world *world, bool quiet, const char *otherwise);

#endif
