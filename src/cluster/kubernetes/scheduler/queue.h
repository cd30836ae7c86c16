/*
 * queue - KAI's Queue, read as a Project
 *
 * scheduling.run.ai/v2: parentQueue, priority, and of resources.gpu quota, limit (-1: without
 * bound; 0 or none: nothing, or nothing beyond the quota) and overQuotaWeight. GPUs are numbers
 * with fractions. CPU and memory are ignored. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_QUEUE_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_QUEUE_H

#include <jansson.h>

/* An object with the spec of a Project (project.yaml): quota -1 without a bound, and a priority.
 * NULL: out of memory. */
json_t *sl_queue_to_project(const json_t *queue);

#endif
