/*
 * internal - what the files of the node's driver share
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_NODE_INTERNAL_H

#include "base/list.h"
#include "cluster/kubernetes/node/cdi.h"
#include "cluster/kubernetes/node/kubelet.h"
#include "cluster/kubernetes/node/line.h"
#include "cluster/kubernetes/node/node.h"
#include "cluster/kubernetes/node/publish.h"
#include "cluster/kubernetes/claims/share.h"
#include "cluster/kubernetes/claims/slice.h"

/* Paths inside a container. */
#define SL_KUBE_IN_SOCKET_DIR "/run/sluice"
#define SL_KUBE_IN_LIBRARY    "/opt/sluice/libsluice.so"

/* Eight UUIDs. */
#define SL_KUBE_VISIBLE_MAX 512

struct sl_kube_node_gpu {
	char uuid[41], model[64], pci[32];
	char device[SL_KUBE_DEVICE_NAME_MAX];
	uint32_t number;          /* sluiced's present number */
	uint64_t shareable_bytes; /* of a lost GPU the last known value */
	uint32_t condition;       /* SL_GPU_* */
};

struct sl_kube_sync;
struct sl_kube_story;
struct sl_kube_units;

struct sl_kube_node {
	sd_event *loop;
	struct sl_kube_node_options options;
	struct sl_kube *kube;
	struct sl_kube_publisher *publisher;
	struct sl_line *line;
	struct sl_kubelet *kubelet;  /* NULL: units instead of claims */
	struct sl_kube_units *units; /* NULL: claims instead of units */
	sd_event_source *timer;      /* asks sluiced for its GPUs */
	struct sl_kube_node_gpu gpus[SL_KUBE_GPUS_MAX];
	size_t gpu_count;
	struct sl_kube_node_gpu found[SL_KUBE_GPUS_MAX]; /* while an answer arrives */
	size_t found_count;
	char driver[32];           /* its version */
	bool asking;               /* a question for GPUs is in flight */
	bool knows_gpus;           /* sluiced has listed them */
	bool swaps;                /* sluiced may move memory to the host */
	bool moves;                /* and workloads to other GPUs */
	uint32_t sync_in;          /* questions for GPUs until the next comparison */
	struct sl_link works;      /* prepare.c: open requests */
	struct sl_kube_sync *sync; /* sync.c: while it runs */
	struct sl_kube_story *story;
};

/* The node's GPU of that device of the slice; NULL: the node lacks it. */
const struct sl_kube_node_gpu *sl_kube_node_gpu_of(
	const struct sl_kube_node *node, const char *device);
/* What the smallest GPU of the share can share; 0: one of them is unknown. */
uint64_t sl_kube_node_own_bytes(
	const struct sl_kube_node *node, const struct sl_share *share);
/* --- node.c --- */

/* The text for users about a GPU with a fault; NULL: it has none. */
const char *sl_kube_node_trouble(const struct sl_kube_node_gpu *gpu);

/* --- prepare.c --- */

void sl_kube_node_prepare(void *context, const struct sl_kubelet_claim *claim,
	struct sl_kubelet_work *work);
void sl_kube_node_unprepare(void *context, const struct sl_kubelet_claim *claim,
	struct sl_kubelet_work *work);
/* sl_share_read() of a claim, with this node's memory factor. */
SL_MUST_CHECK int sl_kube_node_share(const struct sl_kube_node *node, const json_t *claim,
	struct sl_share *out, struct sl_error *err);
/* The name wanted for a share's workload: NAMESPACE.POD, cut to sluiced's limit. */
void sl_kube_node_workload(const struct sl_share *share, char *name, size_t size);
/* Fills ENTRY_ADD for a share. 0 or negative errno (err): a GPU is missing, or a text is too
 * long. */
SL_MUST_CHECK int sl_kube_node_entry(const struct sl_kube_node *node,
	const struct sl_share *share, union sl_msg *msg, struct sl_error *err);
/* A container's edits, with the storage of their texts. Zero-initialise. */
struct sl_kube_edits {
	char socket[64], visible[SL_KUBE_VISIBLE_MAX + 32];
	const char *env[SL_KUBE_EXTRAS + 4];
	struct sl_cdi_mount mounts[SL_KUBE_EXTRAS + 3];
	struct sl_cdi_node nodes[SL_KUBE_EXTRAS];
	char host_paths[SL_KUBE_EXTRAS][256];
	struct sl_cdi_device device;
};
/* folder: the socket's folder on the node. visible: the UUIDs of the GPUs, with commas. Borrows
 * both. */
void sl_kube_node_edits(const struct sl_kube_node_options *options, const char *folder,
	const char *visible, struct sl_kube_edits *edits);
/* Does the kubelet wait for a request about the claim? */
bool sl_kube_node_is_at_work(const struct sl_kube_node *node, const char *uid);
/* Ends the open requests with an error. */
void sl_kube_node_end_works(struct sl_kube_node *node);

/* --- sync.c --- */

/* Starts again if a comparison is running. */
void sl_kube_node_sync(struct sl_kube_node *node);
void sl_kube_node_end_sync(struct sl_kube_node *node);
/* The claim was prepared or unprepared: the running comparison drops it. */
void sl_kube_node_sync_leave(struct sl_kube_node *node, const char *uid);

/* --- units_node.c --- */

/* 0 or negative errno (err). */
SL_MUST_CHECK int sl_kube_units_new(
	struct sl_kube_node *node, struct sl_kube_units **out, struct sl_error *err);
/* Returns NULL; accepts NULL. */
struct sl_kube_units *sl_kube_units_free(struct sl_kube_units *units);
/* The node's GPUs became known or changed. */
void sl_kube_units_tell(struct sl_kube_units *units);
/* Compares sluiced's workloads with the kubelet's allocations. */
void sl_kube_units_round(struct sl_kube_units *units);

#endif
