/*
 * refusal - why a pod cannot be placed, and how long names are
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_REFUSAL_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_REFUSAL_H

#include "base/sl.h"

#define SL_FACTS_NAME 254 /* names have at most 253 bytes */
#define SL_FACTS_UID  64

/* The reason for the pod's user, or "": the pod may be placed. */
struct sl_facts_refusal {
	char text[256];
};

#endif
