/*
 * host_budget - host memory that the daemon may still use, and the NUMA node of a GPU
 *
 * Reads a few small files of /proc and /sys. root precedes their paths; it is "" except in tests.
 * Amounts are in bytes. Any thread.
 */
#ifndef SL_DAEMON_CORE_HOST_BUDGET_H
#define SL_DAEMON_CORE_HOST_BUDGET_H

#include "base/sl.h"

/* Name of the memory files of evicted bytes: a process that maps one is recognised by it. */
#define SL_HOST_FILE_NAME "sluice-host"

struct sl_host_budget {
	/* Of the machine, or of the daemon's control group where that has less. */
	uint64_t total_bytes, available_bytes;
	uint64_t huge_page_bytes,
		huge_free_bytes; /* pages set aside by the administrator */
};

/* 0, or negative errno: /proc/meminfo cannot be read. */
SL_MUST_CHECK int sl_host_budget_read(const char *root, struct sl_host_budget *out);
/* Left free for other programs: the kernel kills processes before an allocation fails. */
uint64_t sl_host_budget_margin(const struct sl_host_budget *room);
/* Does a memory file get transparent huge pages exactly where its mapping asks for them? */
SL_MUST_CHECK bool sl_host_budget_advises(const char *root);
/* The NUMA node of the GPU at this PCI address ("00000000:3B:00.0"), or -1. */
int sl_host_budget_node(const char *root, const char *pci);

#endif
