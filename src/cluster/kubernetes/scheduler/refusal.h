/*
 * refusal - why a pod cannot be placed, and how long names are
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_REFUSAL_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_REFUSAL_H

#include "base/sl.h"

#define SL_FACTS_NAME 254 /* names have at most 253 bytes */
#define SL_FACTS_UID  64

/* What a pod must be told to be served, or "": it may be placed. */
struct sl_facts_refusal {
	char text[256];
};

#endif
