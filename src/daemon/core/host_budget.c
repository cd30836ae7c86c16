/*
 * host_budget - meminfo, and control groups from the daemon's own up to the top
 *
 * MemAvailable ignores control groups, and the kernel kills processes in a group that is full. So
 * the least over all levels counts. Unused pages of files count as available, as they do in
 * MemAvailable. Both versions of control groups are read: many machines still have memory in
 * version 1.
 */
#include "daemon/core/host_budget.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

#define FILE_MAX   (64u << 10)
#define PATH_BYTES 1024

/* The number behind `key` at the beginning of a line; false if the line is missing. */
static bool number_of(const char *text, const char *key, uint64_t *out)
{
	size_t length = strlen(key);

	while (text && strncmp(text, key, length) != 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (!text)
		return false;
	text += length;
	while (*text == ' ' || *text == '\t' || *text == ':')
		text++;
	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

/* sl_file_read would trace each missing file as an error, and most of these are missing. */
static char *read_text(const char *root, const char *folder, const char *name)
{
	sl_cleanup(sl_freep) char *text = malloc(FILE_MAX + 1);
	sl_cleanup(sl_closep) int fd = -1;
	char path[2 * PATH_BYTES];
	size_t size = 0;
	ssize_t part;

	if (!text || snprintf(path, sizeof(path), "%s%s%s", root, folder, name) >=
			     (int)sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while (size < FILE_MAX && (part = read(fd, text + size, FILE_MAX - size)) > 0)
		size += (size_t)part;
	text[size] = '\0';
	return sl_steal(&text);
}

static bool read_number(
	const char *root, const char *folder, const char *name, uint64_t *out)
{
	sl_cleanup(sl_freep) char *text = read_text(root, folder, name);

	return number_of(text, "", out);
}

struct hierarchy {
	const char *top, *limit, *usage, *idle_pages;
};

static const struct hierarchy first = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
	"/memory.usage_in_bytes", "total_inactive_file"};
static const struct hierarchy unified = {
	"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};

/* One level. "max" does not parse as a number and means no limit. */
static void look_at(const char *root, const char *folder, const struct hierarchy *in,
	struct sl_host_budget *room)
{
	uint64_t limit, usage = 0, idle = 0;
	sl_cleanup(sl_freep) char *stat = NULL;

	if (!read_number(root, folder, in->limit, &limit) || limit >= room->total_bytes)
		return;
	room->total_bytes = limit;
	if (!read_number(root, folder, in->usage, &usage))
		return;
	stat = read_text(root, folder, "/memory.stat");
	(void)number_of(stat, in->idle_pages, &idle);
	room->available_bytes = sl_min_u64(
		room->available_bytes, sl_sub_sat(limit, sl_sub_sat(usage, idle)));
}

static void look_up(const char *root, const char *path, const struct hierarchy *in,
	struct sl_host_budget *room)
{
	char folder[PATH_BYTES];
	size_t top = strlen(in->top);
	char *slash;

	if (snprintf(folder, sizeof(folder), "%s%.*s", in->top, (int)strcspn(path, "\n"),
		    path) >= (int)sizeof(folder))
		return;
	for (;;) {
		look_at(root, folder, in, room);
		slash = strrchr(folder + top, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* Reads lines "4:memory:/path" and "0::/path". If the path lies outside the mounted hierarchy, it
 * leads nowhere; then the top, which is always looked at, is the daemon's own group. */
static void look_at_groups(const char *root, struct sl_host_budget *room)
{
	sl_cleanup(sl_freep) char *text = read_text(root, "/proc/self/cgroup", "");

	for (const char *line = text; line && *line;) {
		const char *list = strchr(line, ':');
		const char *path = list ? strchr(list + 1, ':') : NULL;
		const char *end = strchr(line, '\n');

		if (path && path == list + 1)
			look_up(root, path + 1, &unified, room);
		else if (path && path - list == 7 && strncmp(list, ":memory:", 8) == 0)
			look_up(root, path + 1, &first, room);
		line = end ? end + 1 : NULL;
	}
}

int sl_host_budget_read(const char *root, struct sl_host_budget *out)
{
	sl_cleanup(sl_freep) char *text = read_text(root, "/proc/meminfo", "");
	uint64_t pages = 0, page_kib = 0, reserved = 0;

	*out = (struct sl_host_budget){0};
	if (!number_of(text, "MemTotal", &out->total_bytes) ||
		!number_of(text, "MemAvailable", &out->available_bytes))
		return sl_err_origin(-ENOENT);
	out->total_bytes *= SL_KIB;
	out->available_bytes *= SL_KIB;
	(void)number_of(text, "HugePages_Free", &pages);
	(void)number_of(text, "HugePages_Rsvd", &reserved);
	(void)number_of(text, "Hugepagesize", &page_kib);
	out->huge_page_bytes = page_kib * SL_KIB;
	out->huge_free_bytes = sl_sub_sat(pages, reserved) * out->huge_page_bytes;
	look_at_groups(root, out);
	return 0;
}

uint64_t sl_host_budget_margin(const struct sl_host_budget *room)
{
	return sl_min_u64(4 * SL_GIB, sl_max_u64(128 * SL_MIB, room->total_bytes / 32));
}

/* The choice is "always within_size [advise] never deny force". Newer kernels also have one per
 * size. */
static bool is_advise(const char *root, const char *folder)
{
	sl_cleanup(sl_freep) char *text = read_text(root, folder, "/shmem_enabled");

	return text && strstr(text, "[advise]");
}

bool sl_host_budget_advises(const char *root)
{
	return is_advise(root, "/sys/kernel/mm/transparent_hugepage") ||
	       is_advise(root, "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB");
}

int sl_host_budget_node(const char *root, const char *pci)
{
	unsigned int domain, bus, device, function;
	sl_cleanup(sl_freep) char *text = NULL;
	char folder[96];
	uint64_t node;

	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return -1;
	(void)snprintf(folder, sizeof(folder),
		"/sys/bus/pci/devices/%04x:%02x:%02x.%x/numa_node", domain, bus, device,
		function);
	text = read_text(root, folder, "");
	/* "-1": the machine has one node, or does not say. */
	return number_of(text, "", &node) && node < 1024 ? (int)node : -1;
}
