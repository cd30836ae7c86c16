/*
 * node_internal - what the files of the node's driver share
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_NODE_INTERNAL_H

#include "base/list.h"
#include "cluster/kubernetes/kubelet.h"
#include "cluster/kubernetes/line.h"
#include "cluster/kubernetes/node.h"
#include "cluster/kubernetes/publish.h"
#include "cluster/kubernetes/share.h"
#include "cluster/kubernetes/slice.h"

/* Where a container finds what it is given. */
#define SL_KUBE_IN_SOCKET_DIR "/run/sluice"
#define SL_KUBE_IN_LIBRARY    "/opt/sluice/libsluice.so"

struct sl_kube_node_gpu {
	char uuid[41], model[64], pci[32];
	char device[SL_KUBE_DEVICE_NAME_MAX];
	uint32_t number;          /* as sluiced counts them now */
	uint64_t shareable_bytes; /* of a lost one: the last that was known */
	uint32_t condition;       /* SL_GPU_* */
};

struct sl_kube_sync;
struct sl_kube_story;

struct sl_kube_node {
	sd_event *loop;
	struct sl_kube_node_options options;
	struct sl_kube *kube;
	struct sl_kube_publisher *publisher;
	struct sl_line *line;
	struct sl_kubelet *kubelet;
	sd_event_source *timer; /* asks for GPUs */
	struct sl_kube_node_gpu gpus[SL_KUBE_GPUS_MAX];
	size_t gpu_count;
	struct sl_kube_node_gpu found[SL_KUBE_GPUS_MAX]; /* while the answer comes */
	size_t found_count;
	char driver[32];           /* its version */
	bool asking;               /* for GPUs */
	bool knows_gpus;           /* sluiced has listed them */
	bool swaps;                /* sluiced may move memory to the host */
	uint32_t sync_in;          /* questions for GPUs until the next comparison */
	struct sl_link works;      /* prepare.c: those that are open */
	struct sl_kube_sync *sync; /* sync.c: while it goes on */
	struct sl_kube_story *story;
};

/* Of that device of the slice; NULL: the node does not have it. */
const struct sl_kube_node_gpu *sl_kube_node_gpu_of(
	const struct sl_kube_node *node, const char *device);

/* --- prepare.c --- */

void sl_kube_node_prepare(void *context, const struct sl_kubelet_claim *claim,
	struct sl_kubelet_work *work);
void sl_kube_node_unprepare(void *context, const struct sl_kubelet_claim *claim,
	struct sl_kubelet_work *work);
/* ENTRY_ADD of a share. 0 or negative errno (err): a GPU is not there, or a text is too long. */
SL_MUST_CHECK int sl_kube_node_entry(const struct sl_kube_node *node,
	const struct sl_share *share, union sl_msg *msg, struct sl_error *err);
/* Ends those that are open with an error. */
void sl_kube_node_end_works(struct sl_kube_node *node);

/* --- sync.c --- */

/* Begins anew if it goes on already. */
void sl_kube_node_sync(struct sl_kube_node *node);
void sl_kube_node_end_sync(struct sl_kube_node *node);
/* The claim is unprepared: what goes on does not bring it back. */
void sl_kube_node_sync_forget(struct sl_kube_node *node, const char *uid);

#endif
