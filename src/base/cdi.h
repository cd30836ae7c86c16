/*
 * cdi - specifications of the Container Device Interface
 *
 * A specification tells a container runtime what its containers get with a device. CDI 0.5.0 is the
 * first version that lets names of devices begin with a digit, as a UID may; nothing newer is used.
 * Pure.
 */
#ifndef SL_BASE_CDI_H
#define SL_BASE_CDI_H

#include <jansson.h>

#include "base/sl.h"

#define SL_CDI_NAME_MAX 63

struct sl_cdi_mount {
	const char *host_path, *container_path; /* absolute */
	bool is_writable;
};

struct sl_cdi_node {
	const char *path; /* in the container, absolute */
	/* NULL: the same. The runtime reads type and numbers from that path. */
	const char *host_path;
};

/* The contents of one device. Arrays may be NULL if their count is 0. */
struct sl_cdi_device {
	const char *const *env; /* NAME=VALUE */
	size_t env_count;
	const struct sl_cdi_mount *mounts;
	size_t mount_count;
	const struct sl_cdi_node *nodes;
	size_t node_count;
};

/* 1 to SL_CDI_NAME_MAX letters, digits and '-'; a '-' is neither first nor last. */
SL_MUST_CHECK bool sl_cdi_is_name(const char *name);
/* The entry of a specification's list. NULL: a variable is not NAME=VALUE, or a path is not
 * absolute. */
json_t *sl_cdi_device_json(const char *name, const struct sl_cdi_device *device);
/* The whole specification, of a kind VENDOR/CLASS. Takes devices, a list of the above. The caller
 * frees; NULL when out of memory. */
char *sl_cdi_text(const char *kind, json_t *devices);

#endif
