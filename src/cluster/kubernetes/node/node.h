/*
 * node - the driver of one node: between its kubelet, its sluiced and the API server
 *
 * What it has of its own are questions that are open. GPUs are sluiced's and become the node's
 * ResourceSlice; claims are the API server's, and a claim that is prepared is a workload with a
 * socket of its own in sluiced (daemon/entry.h) and a CDI file, both under the claim's uid. So it
 * may end at any time and be started anew; what pods have stays.
 *
 *   GPUs      are asked for every 5 s, and when sluiced comes.
 *   prepare   GET the claim, ENTRY_ADD, the CDI file; each may be there already.
 *   unprepare ENTRY_END, then the file goes.
 *   sluiced   that comes, and every 5 minutes, is compared with the claims of this node's pods
 *             (sync.c): it is told of those that have a CDI file and are not known there; and of
 *             those without a claim on this node any more that they have ended.
 *
 * With the option device_plugin there is neither slice nor claim: units of memory are handed out by
 * the kubelet, and a container with units is a workload (units_node.c).
 *
 * One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_NODE_H
#define SL_CLUSTER_KUBERNETES_NODE_NODE_H

#include <systemd/sd-event.h>

#include "base/error.h"

#define SL_KUBE_EXTRAS 16

struct sl_kube_node;

/* Texts outlive the node. */
struct sl_kube_node_options {
	const char *name;       /* the node's, as Kubernetes has it */
	const char *kubeconfig; /* NULL: as config.h finds it */
	const char *socket;     /* sluiced's */
	const char *kubelet;    /* the kubelet's root */
	const char *cdi;        /* folder of CDI files */
	const char *library;    /* libsluice.so on the node */
	/* Whose CDI kind has device nodes and driver of each GPU by its UUID, e.g.
	 * nvidia.com/gpu; NULL: nobody's. */
	const char *vendor;
	/* Preload by a file instead of LD_PRELOAD: its path on the node; NULL: not so. */
	const char *preload_file;
	/* Hand out units of GPU memory as a device plugin instead of preparing claims. */
	bool device_plugin;
	/* So much of what GPUs have may be claimed; 0: 100. Only of claims. */
	unsigned int memory_factor_pct;
	/* For all containers: "NAME=VALUE", "/on/node:/in/container" (read-only), "/dev/node". */
	const char *env[SL_KUBE_EXTRAS], *mounts[SL_KUBE_EXTRAS], *nodes[SL_KUBE_EXTRAS];
	size_t env_count, mount_count, node_count;
};

/* 0 or negative errno (err). */
SL_MUST_CHECK int sl_kube_node_new(sd_event *loop,
	const struct sl_kube_node_options *options, struct sl_kube_node **out,
	struct sl_error *err);
/* Returns NULL; takes it, too. */
struct sl_kube_node *sl_kube_node_free(struct sl_kube_node *node);

#endif
