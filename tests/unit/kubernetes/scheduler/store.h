/*
 * store - claims as an API server has them, for the stage
 *
 * The store answers calls as a server would, and accepts every binding. All objects are in
 * namespace "n".
 */
#ifndef SL_TESTS_KUBERNETES_STORE_H
#define SL_TESTS_KUBERNETES_STORE_H

#include "stage.h"

/* Teardown of a test: forgets all, and does stage_close(). */
int store_close(void **state);
/* A claim, as the store and the watch have it now; one of that name before is forgotten. */
void store_claim(
	const char *name, const char *uid, unsigned int version, const char *memory);
/* One of version 5 that is allocated on GPU gpu-0 of the node. meta: as of stage_pod(). */
void store_allocated(const char *name, const char *memory, const char *node,
	const char *pod_uid, const char *meta);
/* What the store has becomes an event. */
void store_event(enum sl_kube_event_kind kind, const char *name);
/* The claim; NULL: unknown. */
const json_t *store_find(const char *name);
/* What the claim has of its GPU, such as "10Gi"; "": it is not allocated. */
const char *store_consumed(const char *name);

void store_serve(struct stage_call *call);
/* All calls, those that follow, and the cycles between. */
void store_serve_all(void);
/* How many were taken since the last time. */
unsigned int store_bindings(void);

#endif
