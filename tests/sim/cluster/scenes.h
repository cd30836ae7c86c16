/* cluster_scenes - what went wrong in the scenes of the cluster machine; NULL: nothing. */
#ifndef SL_SIM_CLUSTER_SCENES_H
#define SL_SIM_CLUSTER_SCENES_H

#include "policy/cluster.h"

const char *cw_scenes(void);

#endif
