/*
 * metrics - the daemon's numbers for Prometheus (text format 0.0.4)
 *
 * Two steps with different rules. Taking (metrics_books.c) copies all numbers at one moment, in the
 * loop's thread, so that the figures of one answer match. Rendering is pure: it turns the copy into
 * text piece by piece, as the client has room. metrics.def lists the metrics. Bytes are backing
 * bytes; a GPU is named by its UUID, a workload by its id, which is never reused, and its name.
 * Only living workloads have samples, so max_clients bounds their number; history/sums.h bounds the
 * sums of the history.
 */
#ifndef SL_DAEMON_WEB_METRICS_H
#define SL_DAEMON_WEB_METRICS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "daemon/history/sums.h"
#include "policy/node.h"
#include "wire/wire.h"

/* Longest line: a name, and three values of 63 bytes, each of which may triple when escaped. */
#define SL_METRICS_LINE_MAX 1024

struct sl_daemon;

struct sl_metrics_gpu {
	char uuid[48], name[64], pci[32];
	struct sl_node_gpu_view view;
	bool measured; /* the next three are known */
	uint32_t utilisation_pct;
	bool by_process;
	sl_ns measured_age;
	uint64_t out_bytes_s, in_bytes_s; /* 0: not known */
	uint64_t out_bytes, in_bytes, clean_bytes;
};

struct sl_metrics_workload {
	uint64_t id;
	uid_t uid;
	char name[64], project[64];
	struct sl_node_workload_view
		view; /* of it alone: turn_left and longest_wait are not set */
	uint32_t compute_request_pm, compute_limit_pm;
	sl_ns compute_had, compute_alone;
};

/* One workload on one GPU; workload and gpu are indices into the arrays of the books. */
struct sl_metrics_use {
	uint32_t workload, gpu;
	struct sl_node_use_view view;
	uint64_t out_bytes, in_bytes, clean_bytes;
};

/* A project's configured quota, in thousandths of a GPU or of its time. */
#define SL_METRICS_ALL UINT64_MAX /* unlimited */
struct sl_metrics_quota {
	char project[64];
	uint64_t quota, limit, compute_quota, compute_limit;
};
/* Most projects with a quota in metrics: the first by name. */
#define SL_METRICS_QUOTAS_MAX 256

struct sl_metrics_books {
	atomic_uint users; /* references; the last one put frees it */
	sl_ns taken_at, start_unix_ns, longest_turn;
	bool nvml_up;
	char version[32], driver[32];
	uint64_t messages, grants, scrapes;
	uint64_t events[SL_REASONS], refusals[SL_REASONS];
	uint64_t jobs[SL_JOB_STATES], job_ends[SL_JOB_STATES];
	struct sl_node_pool_view pool;
	uint64_t host_made_bytes, host_huge_bytes, host_available_bytes, host_failures;
	/* By result. */
	uint64_t evictions[SL_SWAP_CAUSES], restores[SL_SWAP_CAUSES];
	uint32_t client_count, expected_count, peer_count;
	bool well[SL_WIRE_PARTS];
	struct sl_history_sums *sums; /* NULL: there are none */
	uint32_t gpu_count, workload_count, use_count, quota_count;
	struct sl_metrics_gpu gpus[SL_NODE_GPUS_MAX];
	struct sl_metrics_workload *workloads;
	struct sl_metrics_use *uses;
	struct sl_metrics_quota *quotas;
};

/* Copies the daemon's numbers, with one reference. The caller sets start, scrapes and longest_turn.
 * NULL: no memory. O(workloads x their GPUs + clients). */
struct sl_metrics_books *sl_metrics_take(const struct sl_daemon *daemon);
/* Any thread may take and drop references; NULL is fine. The second returns NULL. */
struct sl_metrics_books *sl_metrics_ref(struct sl_metrics_books *books);
struct sl_metrics_books *sl_metrics_put(struct sl_metrics_books *books);

/* The position of rendering; zeroed: the beginning. */
struct sl_metrics_cursor {
	uint32_t metric, item, kind;
	bool titled;
};

/* Writes as many of the next whole lines as fit, and returns their bytes; 0: the end. size is at
 * least SL_METRICS_LINE_MAX. */
size_t sl_metrics_render(const struct sl_metrics_books *books,
	struct sl_metrics_cursor *cursor, char *buf, size_t size);

/* Prints the tables of docs/metrics.md, line by line to put. */
void sl_metrics_document(void (*put)(void *context, const char *line), void *context);

#endif
