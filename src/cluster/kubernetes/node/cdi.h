/*
 * cdi - tells the container runtime what a claim's containers get
 *
 * Each claim has a file of the Container Device Interface, in a folder that the runtime watches.
 * The file's kind is sluice.dev/claim, with a device UID-NUMBER for each allocated GPU; containers
 * that use the claim get the device's environment, mounts and device nodes.
 *
 * LD_PRELOAD: a variable set by CDI replaces the image's, and CDI cannot append to it. Images with
 * an LD_PRELOAD of their own need preloading by a file instead: the loader reads /etc/ld.so.preload
 * besides the variable. A file with the library's path in the container is then mounted at
 * SL_CDI_PRELOAD_PATH, and the variable is left out. Images rarely have that file; the mount hides
 * it.
 *
 * Files are written completely or not at all, with mode 0644. Claim UIDs come from outside; a UID
 * that cannot be the name of a file is refused. Keeps no state.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_CDI_H
#define SL_CLUSTER_KUBERNETES_NODE_CDI_H

#include "base/cdi.h"
#include "base/error.h"

#define SL_CDI_DIR  "/var/run/cdi"
#define SL_CDI_KIND "sluice.dev/claim"

#define SL_CDI_PRELOAD_PATH "/etc/ld.so.preload"

/* "sluice.dev/claim=UID-NUMBER", the id for the kubelet. Returns buf. */
#define SL_CDI_ID_MAX (sizeof(SL_CDI_KIND) + SL_CDI_NAME_MAX + 12)
const char *sl_cdi_id(const char *uid, unsigned int number, char buf[SL_CDI_ID_MAX]);

/* Writes the claim's file in dir, which is made if absent; devices are numbered from 0. 0 or
 * negative errno; err has the fault. */
SL_MUST_CHECK int sl_cdi_write(const char *dir, const char *uid,
	const struct sl_cdi_device *devices, size_t count, struct sl_error *err);
/* Removes the claim's file; 0 also if there is none. */
SL_MUST_CHECK int sl_cdi_remove(const char *dir, const char *uid, struct sl_error *err);
/* Calls fn for each claim that has a file in dir; fn may remove it. Removes unfinished files of a
 * killed process. 0, also without the folder, or negative errno. */
SL_MUST_CHECK int sl_cdi_list(const char *dir, void (*fn)(void *context, const char *uid),
	void *context, struct sl_error *err);

#endif
