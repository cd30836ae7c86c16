/*
 * node - the driver of one node, between its kubelet, its sluiced and the API server
 *
 * The driver's only state is open requests. sluiced's GPUs become the node's ResourceSlice. A
 * prepared claim of the API server is a workload with its own socket in sluiced
 * (daemon/control/entry.h) and a CDI file, both under the claim's uid. So the driver may be
 * restarted at any time; pods keep what they have.
 *
 *   GPUs      are read every 5 s, and when sluiced connects.
 *   prepare   GET the claim, ENTRY_ADD, the CDI file; each may exist already. Where sluiced moves
 *             workloads, containers get the device nodes of all GPUs to which theirs may go.
 *   unprepare ENTRY_END, then the file is removed.
 *   sluiced   is compared with the claims of this node's pods when it connects, and every
 *             5 minutes (sync.c). Claims with a CDI file that sluiced lacks are added again, and
 *             workloads without a claim on this node are ended.
 *
 * With the option device_plugin there are no slice and no claims: the kubelet allocates units of
 * memory, and a container with units is a workload (units_node.c).
 *
 * One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_NODE_H
#define SL_CLUSTER_KUBERNETES_NODE_NODE_H

#include <systemd/sd-event.h>

#include "base/error.h"

#define SL_KUBE_EXTRAS 16

struct sl_kube_node;

/* Texts must stay valid as long as the node. */
struct sl_kube_node_options {
	const char *name;       /* the node's name in Kubernetes */
	const char *kubeconfig; /* NULL: as config.h finds it */
	const char *socket;     /* sluiced's */
	const char *kubelet;    /* the kubelet's root */
	const char *cdi;        /* folder of CDI files */
	const char *library;    /* libsluice.so on the node */
	/* The vendor whose CDI kind has device nodes and driver of each GPU by UUID, e.g.
	 * nvidia.com/gpu; NULL: none. */
	const char *vendor;
	/* Preload by this file on the node instead of LD_PRELOAD; NULL: do not. */
	const char *preload_file;
	/* Offer units of GPU memory as a device plugin instead of preparing claims. */
	bool device_plugin;
	/* Percentage of the GPUs' memory that may be claimed; 0: 100. For claims only. */
	unsigned int memory_factor_pct;
	/* For all containers: "NAME=VALUE", "/on/node:/in/container" (read-only), "/dev/node". */
	const char *env[SL_KUBE_EXTRAS], *mounts[SL_KUBE_EXTRAS], *nodes[SL_KUBE_EXTRAS];
	size_t env_count, mount_count, node_count;
};

/* 0 or negative errno (err). */
SL_MUST_CHECK int sl_kube_node_new(sd_event *loop,
	const struct sl_kube_node_options *options, struct sl_kube_node **out,
	struct sl_error *err);
/* Returns NULL; accepts NULL. */
struct sl_kube_node *sl_kube_node_free(struct sl_kube_node *node);

#endif
