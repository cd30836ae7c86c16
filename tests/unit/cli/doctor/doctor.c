/*
 * The checks of sluice doctor on made-up machines: a machine without faults, and then one fault at
 * a time. Each row changes that machine in one place and names the check that must notice.
 */
#include "../../base/test.h"

#include "cli/line/cli.h"
#include "cli/doctor/doctor.h"

#include <stdlib.h>

static union sl_msg status_row, gpu_rows[2], pool_row, use_rows[2],
	part_rows[SL_WIRE_PARTS];

/* A machine on which nothing is wrong. */
static void make_well(struct sl_facts *f)
{
	sl_wire_init(&status_row, SL_MSG_STATUS_ROW);
	strcpy(status_row.status_row.version, SL_VERSION);
	status_row.status_row.nvml_ok = 1;
	sl_wire_init(&pool_row, SL_MSG_POOL_ROW);
	pool_row.pool_row.swap_on = 1;
	pool_row.pool_row.pool_bytes = 16 * SL_GIB;
	pool_row.pool_row.made_bytes = 4 * SL_GIB;
	pool_row.pool_row.huge_bytes = 4 * SL_GIB;
	pool_row.pool_row.available_bytes = 64 * SL_GIB;
	for (uint32_t i = 0; i < SL_WIRE_PARTS; i++) {
		sl_wire_init(&part_rows[i], SL_MSG_PART_ROW);
		part_rows[i].part_row.part = i;
		strcpy(part_rows[i].part_row.path, "/var/lib/sluice");
	}
	sl_wire_init(&gpu_rows[0], SL_MSG_GPU_ROW);
	sl_wire_init(&gpu_rows[1], SL_MSG_GPU_ROW);
	*f = (struct sl_facts){.has_library = true,
		.library = "/usr/lib/sluice/libsluice.so",
		.library_loads = true,
		.glibc_needed = 17,
		.glibc_present = 36,
		.status =
			{
				.all = &status_row,
				.count = 1,
				.socket = "/run/sluice/sluiced.sock",
			},
		.pool = {.all = &pool_row, .count = 1},
		.parts = {.all = part_rows, .count = SL_WIRE_PARTS},
		.gpus = {.all = gpu_rows, .count = 2},
		.devices = SL_DEVICES_OK,
		.has_membarrier = true,
		.has_pidfd = true,
		.nofile = 4096,
		.memlock_bytes = UINT64_MAX,
		.cgroup_v2 = true,
		.cgroup_memory_max_bytes = UINT64_MAX};
	f->nvml = (struct sl_nvml_report){.driver = "535.104.05", .count = 2};
}

#define FAULTS(X)                                                                       \
	X(no_library, library, FAIL, "nowhere", "", f->has_library = false;             \
		strcpy(f->library_error.text, "nowhere"))                               \
	X(library_too_new, library, FAIL, "does not load",                              \
		"needs glibc 2.40 and this is 2.36", f->library_loads = false;          \
		f->glibc_needed = 40)                                                   \
	X(library_broken, library, FAIL, "wrong ELF class", "build of Sluice",          \
		f->library_loads = false;                                               \
		strcpy(f->library_trouble, "wrong ELF class"))                          \
	X(no_daemon, daemon, FAIL, "start one", "",                                     \
		f->daemon_status = SL_EXIT_NO_DAEMON;                                   \
		strcpy(f->daemon_error.text, "start one"))                              \
	X(no_daemon_gpus, gpus, UNKNOWN, "without the daemon", "",                      \
		f->daemon_status = SL_EXIT_NO_DAEMON;                                   \
		f->gpus.count = 0)                                                      \
	X(mute_daemon, daemon, FAIL, "does not report", "restart", f->status.count = 0) \
	X(old_daemon, daemon, WARN, "sluiced 0.0.9", "restart the daemon",              \
		strcpy(status_row.status_row.version, "0.0.9"))                         \
	X(young_daemon, daemon, WARN, "just started", "again",                          \
		status_row.status_row.recovering = 1)                                   \
	X(no_journal, daemon, FAIL,                                                     \
		"journal in /var/lib/s?luice (No space left on device)",                \
		"make room in /var/lib/s?luice",                                        \
		status_row.status_row.journal_error = 28;                               \
		strcpy(status_row.status_row.journal, "/var/lib/s\033luice"))           \
	X(no_nvml, nvml, FAIL, "not installed", "sluice softgpu",                       \
		f->nvml.outcome = SL_NVML_NO_LIBRARY)                                   \
	X(nvml_error, nvml, FAIL, "does not work", "/proc/driver/nvidia/version",       \
		f->nvml.outcome = SL_NVML_ERROR)                                        \
	X(nvml_hangs, nvml, FAIL, "hangs", "dmesg", f->nvml.outcome = SL_NVML_HANGS)    \
	X(nvml_only_here, nvml, FAIL, "not in the daemon: no", "restart the daemon",    \
		status_row.status_row.nvml_ok = 0;                                      \
		strcpy(status_row.status_row.nvml_text, "no"))                          \
	X(old_driver, driver, FAIL, "470.82", "R525",                                   \
		strcpy(f->nvml.driver, "470.82.01"))                                    \
	X(no_driver, driver, UNKNOWN, "not known", "",                                  \
		f->nvml.outcome = SL_NVML_NO_LIBRARY)                                   \
	X(no_devices, devices, FAIL, "no /dev/nvidia", "--gpus all",                    \
		f->devices = SL_DEVICES_NONE)                                           \
	X(closed_devices, devices, FAIL, "/dev/nvidia0", "group",                       \
		f->devices = SL_DEVICES_DENIED;                                         \
		strcpy(f->device_denied, "/dev/nvidia0"))                               \
	X(no_gpus, gpus, FAIL, "manages no GPU", "sluiced.conf", f->gpus.count = 0)     \
	X(some_gpus, gpus, WARN, "1 of 2", "sluiced.conf", f->gpus.count = 1)           \
	X(degraded, gpus, WARN, "1 of 2 GPUs is degraded", "UNMANAGED",                 \
		gpu_rows[1].gpu_row.unmanaged_bytes = 1 << 30;                          \
		gpu_rows[1].gpu_row.condition = SL_GPU_DEGRADED)                        \
	X(degraded_by_ours, gpus, WARN, "1 of 2 GPUs is degraded", "HIDDEN",            \
		gpu_rows[0].gpu_row.unmanaged_bytes = 1 << 30;                          \
		gpu_rows[1].gpu_row.condition = SL_GPU_DEGRADED)                        \
	X(lost, gpus, FAIL, "1 of 2 GPUs is lost (H at 0: Xid 79)", "nvidia-smi -r",    \
		gpu_rows[1].gpu_row.condition = SL_GPU_LOST;                            \
		strcpy(status_row.status_row.nvml_text, "H at 0 is lost: Xid 79"))      \
	X(lost_and_degraded, gpus, FAIL, "2 of 2 GPUs are lost", "nvidia-smi -r",       \
		gpu_rows[0].gpu_row.condition = SL_GPU_LOST | SL_GPU_DEGRADED;          \
		gpu_rows[1].gpu_row.condition = SL_GPU_LOST)                            \
	X(reserve, gpus, WARN, "context_reserve is more than 1 of 2 GPUs has",          \
		"sluiced.conf", gpu_rows[1].gpu_row.condition = SL_GPU_RESERVE)         \
	X(unmanaged, gpus, WARN, "programs outside Sluice use 3 GiB", "sluice run",     \
		gpu_rows[0].gpu_row.unmanaged_bytes = 3ull << 30)                       \
	X(endless, waits, WARN, "1 workload may wait for its GPU without end: train",   \
		"sluice why", sl_wire_init(&use_rows[1], SL_MSG_USE_ROW);               \
		strcpy(use_rows[1].use_row.name, "train");                              \
		use_rows[1].use_row.workload = 7;                                       \
		use_rows[1].use_row.longest_wait_ms = UINT64_MAX;                       \
		f->uses.all = use_rows; f->uses.count = 2)                              \
	X(no_daemon_waits, waits, UNKNOWN, "without the daemon", "",                    \
		f->daemon_status = SL_EXIT_NO_DAEMON)                                   \
	X(no_pool_row, host, UNKNOWN, "without the daemon", "", f->pool.count = 0)      \
	X(no_daemon_host, host, UNKNOWN, "without the daemon", "", f->pool.count = 0;   \
		f->daemon_status = SL_EXIT_NO_DAEMON)                                   \
	X(no_host_memory, host, WARN, "host_memory is 0", "leave host_memory out",      \
		pool_row.pool_row.pool_bytes = 0)                                       \
	X(no_swap, host, WARN, "not among the resolvers", "resolvers: swap wait",       \
		pool_row.pool_row.swap_on = 0)                                          \
	X(host_short, host, WARN, "host has only 11", "lower host_memory",              \
		pool_row.pool_row.available_bytes = 11 * SL_GIB)                        \
	X(pool_full, host, WARN, "is full", "raise host_memory",                        \
		pool_row.pool_row.evicted_bytes = 12 * SL_GIB;                          \
		pool_row.pool_row.lent_bytes = 4 * SL_GIB)                              \
	X(no_huge_pages, host, OK, "16", "vm.nr_hugepages",                             \
		pool_row.pool_row.huge_bytes = 0)                                       \
	X(numa, host, OK, "GPU 0 on NUMA node 1", "",                                   \
		strcpy(f->numa, "GPU 0 on NUMA node 1"))                                \
	X(no_shim, shim, FAIL, "there is none", "install Sluice whole, or else",        \
		part_rows[SL_PART_SHIM].part_row.health = SL_HEALTH_BROKEN;             \
		strcpy(part_rows[SL_PART_SHIM].part_row.text,                           \
			"there is none; install Sluice whole, or else"))                \
	X(no_projects, projects, FAIL, "in /a?b are damaged: x", "move it; restart",    \
		part_rows[SL_PART_PROJECTS].part_row.health = SL_HEALTH_BROKEN;         \
		strcpy(part_rows[SL_PART_PROJECTS].part_row.text,                       \
			"in /a\033b are damaged: x; move it; restart"))                 \
	X(projects_unstored, projects, WARN, "locked", "",                              \
		part_rows[SL_PART_PROJECTS].part_row.health = SL_HEALTH_PARTLY;         \
		strcpy(part_rows[SL_PART_PROJECTS].part_row.text, "locked"))            \
	X(some_projects, projects, OK, "2 projects in /var/lib/sluice", "",             \
		part_rows[SL_PART_PROJECTS].part_row.count = 2)                         \
	X(job_unread, jobs, WARN, "job 3 is left alone", "repair it",                   \
		part_rows[SL_PART_JOBS].part_row.health = SL_HEALTH_PARTLY;             \
		strcpy(part_rows[SL_PART_JOBS].part_row.text,                           \
			"job 3 is left alone; repair it"))                              \
	X(no_parts, jobs, UNKNOWN, "without the daemon", "", f->parts.count = 0)        \
	X(no_daemon_parts, jobs, UNKNOWN, "without the daemon", "", f->parts.count = 0; \
		f->daemon_status = SL_EXIT_NO_DAEMON)                                   \
	X(page_served, page, OK, "served at /var/lib/sluice", "", (void)f)              \
	X(metrics_port, metrics, WARN, "in use", "choose another",                      \
		part_rows[SL_PART_METRICS].part_row.health = SL_HEALTH_PARTLY;          \
		strcpy(part_rows[SL_PART_METRICS].part_row.text,                        \
			"metrics: address in use; choose another address"))             \
	X(page_nowhere, page, OK, "not served", "",                                     \
		part_rows[SL_PART_PAGE].part_row.path[0] = 0)                           \
	X(page_port, page, WARN, "cannot be served", "choose another address",          \
		part_rows[SL_PART_PAGE].part_row.health = SL_HEALTH_PARTLY;             \
		strcpy(part_rows[SL_PART_PAGE].part_row.text,                           \
			"the page cannot be served; choose another address"))           \
	X(no_modes, modes, UNKNOWN, "without NVML", "",                                 \
		f->nvml.outcome = SL_NVML_NO_LIBRARY;                                   \
		f->nvml.count = 0)                                                      \
	X(mig, modes, FAIL, "MIG", "-mig 0", f->nvml.gpus[1].mig = 1)                   \
	X(exclusive, modes, FAIL, "compute mode 3", "-c DEFAULT",                       \
		f->nvml.gpus[0].compute_mode = 3)                                       \
	X(mps, modes, WARN, "MPS", "nvidia-cuda-mps-control", f->has_mps = true)        \
	X(no_pidfd, kernel, FAIL, "pidfd_open", "5.3", f->has_pidfd = false)            \
	X(no_membarrier, kernel, WARN, "membarrier", "seccomp",                         \
		f->has_membarrier = false)                                              \
	X(few_files, limits, WARN, "only 256", "ulimit -n", f->nofile = 256)            \
	X(few_files_of_daemon, limits, WARN, "only 1024 files open", "LimitNOFILE",     \
		f->daemon_nofile = 1024)                                                \
	X(cgroup_v1, cgroup, OK, "no cgroup v2", "", f->cgroup_v2 = false)              \
	X(rival, preload, FAIL, "libvgpu.so", "LD_PRELOAD",                             \
		f->preload = "/usr/lib/libvgpu.so")                                     \
	X(system_preload, preload, WARN, "/etc/ld.so.preload", "hooks",                 \
		f->system_preload = true)                                               \
	X(container, container, WARN, "docker", "-v /run/sluice",                       \
		strcpy(f->container, "docker");                                         \
		f->daemon_status = SL_EXIT_NO_DAEMON)

#define MAKER(row, check, level, text, remedy, ...) \
	static void make_##row(struct sl_facts *f)  \
	{                                           \
		__VA_ARGS__;                        \
	}
FAULTS(MAKER)

static const struct {
	const char *row, *check;
	enum sl_level level;
	const char *text, *remedy;
	void (*make)(struct sl_facts *);
} rows[] = {
#define ROW(row, check, level, text, remedy, ...) \
	{#row, #check, SL_LEVEL_##level, text, remedy, make_##row},
	FAULTS(ROW)};

static void test_well(void **state)
{
	struct sl_facts *f = malloc(sizeof(*f));

	(void)state;
	make_well(f);
	for (const struct sl_check *check = sl_doctor_checks; check->name; check++) {
		struct sl_finding finding = {0};

		check->fn(f, &finding);
		assert_row_u64(check->name, finding.level, SL_LEVEL_OK);
		assert_row_text(check->name, finding.remedy, "");
		assert_true(finding.text[0]);
	}
	free(f);
}

static void test_faults(void **state)
{
	struct sl_facts *f = malloc(sizeof(*f));

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_check *check = sl_doctor_checks;
		struct sl_finding finding = {0};

		while (check->name && strcmp(check->name, rows[i].check))
			check++;
		assert_non_null(check->name);
		make_well(f);
		rows[i].make(f);
		check->fn(f, &finding);
		assert_row_u64(rows[i].row, finding.level, rows[i].level);
		assert_row_contains(rows[i].row, finding.text, rows[i].text);
		assert_row_contains(rows[i].row, finding.remedy, rows[i].remedy);
	}
	free(f);
}

/* On software GPUs there is no driver and no device file, and nothing is wrong with that. */
static void test_software(void **state)
{
	struct sl_facts *f = malloc(sizeof(*f));

	(void)state;
	make_well(f);
	f->software = true;
	f->devices = SL_DEVICES_NONE;
	strcpy(f->nvml.driver, "1.0");
	for (const struct sl_check *check = sl_doctor_checks; check->name; check++) {
		struct sl_finding finding = {0};

		check->fn(f, &finding);
		assert_row_u64(check->name, finding.level, SL_LEVEL_OK);
	}
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_well),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_software),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
