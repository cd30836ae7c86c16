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
	size_t count;        /* length of `after` */
	CUgraphNode *after;
	CUgraphEdgeData *edges; /* zeros, for queries; NULL: none yet */
};

struct sl_capture {
	struct sl_link link;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	bool spoiled;
	bool into; /* the capture adds to the program's own graph */
	CUgraph graph;
	struct sl_link members;
};

extern pthread_mutex_t sl_capture_lock;
extern struct sl_link sl_captures;
extern _Atomic unsigned sl_capture_count; /* without captures no call takes the lock */
extern __thread CUstreamCaptureMode sl_capture_thread_mode;

struct sl_capture_member *sl_capture_first(const struct sl_capture *c);
/* The stream's part in the capture, or NULL. */
struct sl_capture_member *sl_capture_member_of(
	const struct sl_capture *c, const struct CUstream_st *s);
/* Adds the stream to the capture; false: out of memory. */
SL_MUST_CHECK bool sl_capture_join(struct sl_capture *c, CUstream s);
/* Adds nodes on which the member's next node depends; false: out of memory. */
SL_MUST_CHECK bool sl_capture_after(
	struct sl_capture_member *m, const CUgraphNode *list, size_t count);
void sl_capture_members_free(struct sl_capture *c);
/* Frees the capture; the caller gets the graph. */
void sl_capture_take_apart(struct sl_capture *c);

#endif
