/*
 * queue - KAI's Queue, read as a Project
 *
 * Fields of scheduling.run.ai/v2 that count: parentQueue, priority, and in resources.gpu quota,
 * limit and overQuotaWeight. -1 means no bound; a quota of 0 or none guarantees nothing, a limit of
 * 0 or none allows nothing beyond the quota. GPUs are fractional. CPU and memory are ignored. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_QUEUE_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_QUEUE_H

#include <jansson.h>

/* An object with the spec of a Project (project.yaml): quota -1 without a bound, and a priority.
 * NULL: out of memory. */
json_t *sl_queue_to_project(const json_t *queue);

#endif
