/*
 * scenes - the lists of scenes, and what their rows have in common
 *
 * One GPU of 100 bytes to share unless a scene says otherwise.
 */
#ifndef SL_SIM_SCENES_H
#define SL_SIM_SCENES_H

#include "scene.h"

#define G100                           \
	{                              \
		0, GPU(0, 110, 10), "" \
	}
/* Nothing is kept for contexts and code. */
#define G100_BARE                     \
	{                             \
		0, GPU(0, 100, 0), "" \
	}
#define W(id)                                                                    \
	{                                                                        \
		0, WORKLOAD(id, NONE, NONE, 1, 1, 0), "ADMIT " #id " m1 r0 l100" \
	}
#define C(c, w)                   \
	{                         \
		0, JOIN(c, w), "" \
	}

#define SCENE(scene_rows)                                \
	{                                                \
		.name = #scene_rows, .rows = scene_rows, \
		.count = SL_ARRAY_LEN(scene_rows)        \
	}
extern const struct scene change_scenes[], held_scenes[], stop_scenes[];
extern const size_t change_scenes_count, held_scenes_count, stop_scenes_count;

#endif
