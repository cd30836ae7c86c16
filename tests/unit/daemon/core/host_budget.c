/* How much memory the host has, as made-up files of /proc and /sys tell it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "daemon/core/host_budget.h"

#define MEMINFO                                                                          \
	"MemTotal:       8388608 kB\nMemFree:        1000 kB\nMemAvailable:   4194304 "  \
	"kB\nHugePages_Total:       8\nHugePages_Free:        6\nHugePages_Rsvd:       " \
	" 2\n"                                                                           \
	"Hugepagesize:       2048 kB\n"

static char root[64];

static int setup(void **state)
{
	(void)snprintf(root, sizeof(root), "/tmp/sluice-room-XXXXXX");
	return mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void put(const char *path, const char *text)
{
	char whole[256], folder[256];

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	(void)snprintf(folder, sizeof(folder), "%s", whole);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(sl_file_make_dirs(folder, 0755), 0);
	assert_int_equal(sl_file_replace(whole, text, strlen(text), false), 0);
}

static struct sl_host_budget look(void)
{
	struct sl_host_budget room;

	assert_int_equal(sl_host_budget_read(root, &room), 0);
	return room;
}

static void without_meminfo_there_is_nothing(void **state)
{
	struct sl_host_budget room;

	assert_true(sl_host_budget_read(root, &room) < 0);
	assert_true(room.available_bytes == 0);
}

static void the_machine_alone(void **state)
{
	struct sl_host_budget room;

	put("/proc/meminfo", MEMINFO);
	room = look();
	assert_true(room.total_bytes == 8 * SL_GIB);
	assert_true(room.available_bytes == 4 * SL_GIB);
	assert_true(room.huge_page_bytes == 2 * SL_MIB);
	assert_true(room.huge_free_bytes == 8 * SL_MIB);
	assert_true(sl_host_budget_margin(&room) == 256 * SL_MIB);
}

/* The least of all levels counts, wherever it is; "max" and too large a number are no limits. */
static void groups_of_the_unified_hierarchy(void **state)
{
	put("/proc/meminfo", MEMINFO);
	put("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b/c\n");
	put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/c/memory.current", "1048576\n");
	put("/sys/fs/cgroup/a/b/memory.max", "2147483648\n");
	put("/sys/fs/cgroup/a/b/memory.current", "1610612736\n");
	put("/sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 536870912\n");
	put("/sys/fs/cgroup/a/memory.max", "1000000000000\n");
	assert_true(look().available_bytes == SL_GIB);
	assert_true(look().total_bytes == 2 * SL_GIB);
	put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/a/memory.current", "1073741824\n");
	assert_true(look().available_bytes == 0);
	put("/sys/fs/cgroup/a/memory.max", "max\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	assert_true(look().available_bytes == 4 * SL_GIB);
}

/* In a container the path leads nowhere, and the top is the daemon's own group. */
static void groups_of_the_first_hierarchy(void **state)
{
	put("/proc/meminfo", MEMINFO);
	put("/proc/self/cgroup",
		"5:cpu,cpuacct:/z\n4:memory:/docker/0123\n0::/nowhere\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483648\n");
	put("/sys/fs/cgroup/memory/memory.stat",
		"inactive_file 9\ntotal_inactive_file 1048576\n");
	assert_true(look().available_bytes == SL_GIB + SL_MIB);
	assert_true(look().total_bytes == 3 * SL_GIB);
}

static void nodes_of_gpus(void **state)
{
	put("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
	put("/sys/bus/pci/devices/0001:3b:00.1/numa_node", "-1\n");
	assert_int_equal(sl_host_budget_node(root, "00000000:3B:00.0"), 1);
	assert_int_equal(sl_host_budget_node(root, "0001:3b:00.1"), -1);
	assert_int_equal(sl_host_budget_node(root, "00000000:3C:00.0"), -1);
	assert_int_equal(sl_host_budget_node(root, "../../../../etc"), -1);
	assert_int_equal(sl_host_budget_node(root, ""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			without_meminfo_there_is_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(the_machine_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			groups_of_the_unified_hierarchy, setup, teardown),
		cmocka_unit_test_setup_teardown(
			groups_of_the_first_hierarchy, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_of_gpus, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
