/*
 * stage - the scheduler without a network: the test gives the watches' events and answers the calls
 *
 * The real files of src/cluster/kubernetes/scheduler, with stand-ins for the client of the API.
 * Calls wait until the test answers them; calls for the Lease are answered automatically. One stage
 * at a time.
 */
#ifndef SL_TESTS_KUBERNETES_STAGE_H
#define SL_TESTS_KUBERNETES_STAGE_H

#include "../../base/test.h"

#include "cluster/kubernetes/scheduler/internal.h"

struct stage_call {
	struct sl_link link;
	enum sl_kube_verb verb;
	char path[700];
	json_t *body; /* NULL: none */
	sl_ns after;
	sl_kube_done_fn done;
	void *context;
	struct sl_kube_call **slot;
};

/* Setup and teardown of a test. The Lease is held, and all watches are synced. */
int stage_open(void **state);
int stage_close(void **state);
void stage_open_for(sl_ns lease);
/* The two halves of it: the Lease is held; then all watches are synced. */
void stage_start(sl_ns lease);
void stage_sync(void);
struct sl_ks *stage(void);
/* The Lease's calls are not answered any more. */
void stage_mute_lease(void);
/* Until the next cycle is over. */
void stage_settle(void);
/* Until the teller has had its turn; every pod has waited long enough for it. */
void stage_tell(void);

/* An event of a watch: a format of JSON. */
void stage_event(enum sl_ks_watch watch, enum sl_kube_event_kind kind, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* A ready node. labels: further ones, such as ",\"a\":\"b\"". */
void stage_node(enum sl_kube_event_kind kind, const char *name, const char *labels,
	unsigned int cpus);
void stage_slice(enum sl_kube_event_kind kind, const char *node, unsigned int gpus,
	unsigned int gib);
/* A pod of namespace "n" that has its name as uid. meta and spec: further members, such as
 * ",\"a\":1". */
void stage_pod(enum sl_kube_event_kind kind, const char *name, const char *meta,
	const char *spec);
struct sl_ks_pod *stage_find_pod(const char *name);
/* Where the pod was put: a node's name, or "". */
const char *stage_place(const char *pod);

/* The first call under way with this in its path; NULL: none. */
struct stage_call *stage_find_call(const char *part);
unsigned int stage_count_calls(const char *part);
/* Ends the call. body is taken, and may be NULL. */
void stage_answer(struct stage_call *call, int status, json_t *body);

#endif
