/*
 * plays - small plays of swapping programs with exact expectations in virtual time
 */
#ifndef SL_SIM_SWAP_SCENES_H
#define SL_SIM_SWAP_SCENES_H

#include "world.h"

/* All of them; false if one comes out otherwise, which is printed (quiet: after the first).
 * otherwise: a file with the names of plays that must come out otherwise, a line each; NULL:
 * none. */
bool swap_scenes_run(struct swap_world *world, bool quiet, const char *otherwise);

#endif
