/*
 * scenes_stop - who is stopped for a demand, when, and who never is
 */
#include "scenes.h"

const struct scene stop_scenes[] = {{0}};
const size_t stop_scenes_count = 0;
