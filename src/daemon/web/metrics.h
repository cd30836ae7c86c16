/*
 * metrics - the books as numbers for Prometheus (text format 0.0.4)
 *
 * In two steps, because they have different rules. Taking (metrics_books.c) copies every number at
 * one moment, in the loop's thread, so that the figures of one answer go together. Rendering is
 * pure: it makes text of the copy, piece by piece, whenever the reader has room. The list of
 * metrics is metrics.def. Bytes are backing bytes; a GPU is named by its UUID, a workload by its
 * id, which is never reused, beside its name. There are samples for living workloads only, so their
 * number is bounded by max_clients. What the history sums up is bounded by history/sums.h.
 */
#ifndef SL_DAEMON_WEB_METRICS_H
#define SL_DAEMON_WEB_METRICS_H

#include <sys/types.h>

#include "daemon/history/sums.h"
#include "policy/node.h"
#include "wire/wire.h"

/* No line is longer: a name, and three values of 63 bytes of which each may become three. */
#define SL_METRICS_LINE_MAX 1024

struct sl_daemon;

struct sl_metrics_gpu {
	char uuid[48], name[64], pci[32];
	struct sl_node_gpu_view view;
	bool measured; /* the next two are known */
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
		view; /* of it alone: no turn_left, no longest_wait */
};

/* One workload on one GPU; indices into the arrays of the books. */
struct sl_metrics_use {
	uint32_t workload, gpu;
	struct sl_node_use_view view;
	uint64_t out_bytes, in_bytes, clean_bytes;
};

/* What was said of a project, in thousandths of a GPU. */
#define SL_METRICS_ALL UINT64_MAX /* all there is */
struct sl_metrics_quota {
	char project[64];
	uint64_t quota, limit;
};
/* Projects whose quota is told; of more than these the first by name. */
#define SL_METRICS_QUOTAS_MAX 256

struct sl_metrics_books {
	unsigned int users; /* who reads it; the last one frees it */
	sl_ns taken_at, start_unix_ns, longest_turn;
	bool nvml_up;
	char version[32], driver[32];
	uint64_t messages, grants, scrapes;
	uint64_t events[SL_REASONS], refusals[SL_REASONS];
	uint64_t jobs[SL_JOB_STATES], job_ends[SL_JOB_STATES];
	struct sl_node_pool_view pool;
	uint64_t host_made_bytes, host_huge_bytes, host_available_bytes, host_failures;
	uint64_t evictions[SL_SWAP_CAUSES],
		restores[SL_SWAP_CAUSES]; /* by how they ended */
	uint32_t client_count, expected_count, peer_count;
	bool well[SL_WIRE_PARTS];
	struct sl_history_sums *sums; /* NULL: there are none */
	uint32_t gpu_count, workload_count, use_count, quota_count;
	struct sl_metrics_gpu gpus[SL_NODE_GPUS_MAX];
	struct sl_metrics_workload *workloads;
	struct sl_metrics_use *uses;
	struct sl_metrics_quota *quotas;
};

/* Copies the daemon's numbers; one user. The caller sets start, scrapes and longest_turn. NULL
 * without memory. O(workloads x their GPUs + clients). */
struct sl_metrics_books *sl_metrics_take(const struct sl_daemon *daemon);
/* Gives one use back; NULL is fine; returns NULL. */
struct sl_metrics_books *sl_metrics_put(struct sl_metrics_books *books);

/* Where rendering stands; zeroed: at the beginning. */
struct sl_metrics_cursor {
	uint32_t metric, item, kind;
	bool titled;
};

/* Writes the next whole lines, as many as fit, and returns their bytes; 0: that was all. size is
 * SL_METRICS_LINE_MAX at least. */
size_t sl_metrics_render(const struct sl_metrics_books *books,
	struct sl_metrics_cursor *cursor, char *buf, size_t size);

/* Prints the tables of docs/metrics.md to a stream of the caller. */
void sl_metrics_document(void (*put)(void *context, const char *line), void *context);

#endif
