/*
 * capture - what the files about capture share
 *
 * All of it under sl_capture_lock.
 */
#ifndef SL_SOFTGPU_GRAPH_CAPTURE_H
#define SL_SOFTGPU_GRAPH_CAPTURE_H

#include "softgpu/graph/internal.h"

struct sl_capture_member {
	struct sl_link link; /* in sl_capture.members; the first began it */
	CUstream stream;     /* a reference */
	size_t count;        /* of `after` */
	CUgraphNode *after;
	CUgraphEdgeData *edges; /* zeros, for those who ask; NULL: nobody did */
};

struct sl_capture {
	struct sl_link link;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool spoiled;
	bool into; /* the graph is the program's */
	CUgraph graph;
	struct sl_link members;
};

extern pthread_mutex_t sl_capture_lock;
extern struct sl_link sl_captures;
extern _Atomic unsigned sl_capture_count; /* so that nobody else pays for the lock */
extern __thread CUstreamCaptureMode sl_capture_thread_mode;

struct sl_capture_member *sl_capture_first(const struct sl_capture *c);
/* Of a stream that takes part. */
struct sl_capture_member *sl_capture_member_of(
	const struct sl_capture *c, const struct CUstream_st *s);
/* The stream takes part from now on; false: no memory. */
SL_MUST_CHECK bool sl_capture_join(struct sl_capture *c, CUstream s);
/* Adds nodes to those that the member's next one comes after; false: no memory. */
SL_MUST_CHECK bool sl_capture_after(
	struct sl_capture_member *m, const CUgraphNode *list, size_t count);
void sl_capture_members_free(struct sl_capture *c);
/* Takes the capture apart; the graph is the caller's. */
void sl_capture_take_apart(struct sl_capture *c);

#endif
