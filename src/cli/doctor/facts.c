/*
 * Gathers facts from the system itself instead of guessing from versions: preloads the library into
 * a program, queries membarrier, opens a pidfd.
 */
#include "cli/doctor/doctor.h"

#include "base/file.h"
#include "base/elffile.h"
#include "base/library.h"
#include "softgpu/link/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `sluice help --names` with the library preloaded: ld.so complains on standard error. */
static bool try_preload(const char *library, char *trouble, size_t size)
{
	sl_cleanup(sl_closep) int reading = -1;
	int ends[2], status = 0;
	size_t have = 0;
	ssize_t n;
	pid_t child;

	if (pipe(ends) < 0) {
		snprintf(trouble, size, "no pipe: %s", strerror(errno));
		return false;
	}
	reading = ends[0];
	child = fork();
	if (!child) {
		int null = open("/dev/null", O_WRONLY);

		dup2(ends[1], STDERR_FILENO);
		dup2(null, STDOUT_FILENO);
		setenv("LD_PRELOAD", library, 1);
		execl("/proc/self/exe", "sluice", "help", "--names", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	while (have + 1 < size &&
		(n = read(reading, trouble + have, size - 1 - have)) > 0)
		have += (size_t)n;
	trouble[have] = '\0';
	trouble[strcspn(trouble, "\n")] = '\0';
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		if (!have)
			snprintf(
				trouble, size, "a program with it preloaded did not run");
		return false;
	}
	return !have;
}

static void gather_library(struct sl_facts *f)
{
	struct sl_elf elf;
	const char *version = strchr(gnu_get_libc_version(), '.');

	f->glibc_present = version ? (unsigned int)strtoul(version + 1, NULL, 10) : 0;
	f->has_library =
		!sl_library_find(f->library, sizeof(f->library), &f->library_error);
	if (!f->has_library)
		return;
	if (!sl_elf_read(f->library, &elf))
		f->glibc_needed = elf.needs_glibc;
	f->library_loads =
		try_preload(f->library, f->library_trouble, sizeof(f->library_trouble));
}

/* The hard limit counts, since the daemon raises its soft limit to that. In another pid namespace
 * the pid means nothing. */
static uint64_t nofile_of(uint32_t pid)
{
	static const char row[] = "Max open files";
	sl_cleanup(sl_freep) char *text = NULL;
	unsigned long long hard = 0;
	char path[64];
	size_t size;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	if (!pid || sl_file_read(path, SL_MIB, &text, &size) ||
		strncmp(text, "sluiced", 7) != 0)
		return 0;
	free(sl_steal(&text));
	snprintf(path, sizeof(path), "/proc/%u/limits", pid);
	if (sl_file_read(path, SL_MIB, &text, &size))
		return 0;
	at = strstr(text, row);
	if (!at || sscanf(at + sizeof(row) - 1, "%*s %llu", &hard) != 1)
		return 0;
	return hard;
}

static void gather_daemon(struct sl_facts *f)
{
	const struct {
		struct sl_rows *rows;
		enum sl_list_what what;
	} lists[] = {{&f->status, SL_LIST_STATUS}, {&f->gpus, SL_LIST_GPUS},
		{&f->pool, SL_LIST_POOL}, {&f->uses, SL_LIST_USES},
		{&f->parts, SL_LIST_PARTS}};

	f->daemon_status = SL_EXIT_OK;
	for (size_t i = 0; i < SL_ARRAY_LEN(lists) && !f->daemon_status; i++)
		f->daemon_status =
			sl_rows_fetch(lists[i].rows, lists[i].what, &f->daemon_error);
	if (!f->daemon_status && f->status.count)
		f->daemon_nofile = nofile_of(f->status.all[0].status_row.pid);
}

static void gather_devices(struct sl_facts *f)
{
	DIR *dev = opendir("/dev");
	struct dirent *entry;

	while (dev && (entry = readdir(dev))) {
		char path[300];

		/* nvidiactl, nvidia-uvm, nvidia0 ...; not nvidia-caps (a folder) and the like. */
		if (strcmp(entry->d_name, "nvidiactl") &&
			strcmp(entry->d_name, "nvidia-uvm") &&
			(strncmp(entry->d_name, "nvidia", 6) || entry->d_name[6] < '0' ||
				entry->d_name[6] > '9'))
			continue;
		if (f->devices == SL_DEVICES_NONE)
			f->devices = SL_DEVICES_OK;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		if (access(path, R_OK | W_OK)) {
			f->devices = SL_DEVICES_DENIED;
			snprintf(f->device_denied, sizeof(f->device_denied), "%.60s",
				path);
		}
	}
	if (dev)
		closedir(dev);
}

static bool has_mps(void)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[SL_PATH_MAX];

	snprintf(path, sizeof(path), "%s/control", dir && *dir ? dir : "/tmp/nvidia-mps");
	return !access(path, F_OK);
}

static void gather_kernel(struct sl_facts *f)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0);
	sl_cleanup(sl_closep) int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct rlimit limit;

	f->has_membarrier = commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	f->has_pidfd = pidfd >= 0;
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		f->nofile = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		f->memlock_bytes =
			limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

static void gather_cgroup(struct sl_facts *f)
{
	sl_cleanup(sl_freep) char *own = NULL;
	sl_cleanup(sl_freep) char *max = NULL;
	char path[SL_PATH_MAX];
	const char *line;
	size_t size;

	f->cgroup_memory_max_bytes = UINT64_MAX;
	f->cgroup_v2 = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
	if (!f->cgroup_v2 || sl_file_read("/proc/self/cgroup", SL_MIB, &own, &size))
		return;
	line = strstr(own, "0::");
	if (!line)
		return;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/memory.max",
		(int)strcspn(line + 3, "\n"), line + 3);
	if (!sl_file_read(path, 4096, &max, &size) && max[0] >= '0' && max[0] <= '9')
		f->cgroup_memory_max_bytes = strtoull(max, NULL, 10);
}

/* Of the default size; 0 if there are none. */
static uint64_t free_huge_bytes(void)
{
	sl_cleanup(sl_freep) char *text = NULL;
	unsigned long long pages = 0, kib = 0;
	const char *at;
	size_t size;

	if (sl_file_read("/proc/meminfo", SL_MIB, &text, &size))
		return 0;
	at = strstr(text, "HugePages_Free:");
	if (!at || sscanf(at, "HugePages_Free: %llu", &pages) != 1)
		return 0;
	at = strstr(text, "Hugepagesize:");
	if (!at || sscanf(at, "Hugepagesize: %llu", &kib) != 1)
		return 0;
	return pages * kib * SL_KIB;
}

/* -1: unknown, or the machine has no nodes. NVML writes the PCI domain with eight digits, the
 * kernel with four. */
static int numa_node_of(const char *pci)
{
	sl_cleanup(sl_freep) char *text = NULL;
	unsigned int domain, bus, device, function;
	char path[96];
	size_t size;

	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/numa_node",
		domain, bus, device, function);
	return sl_file_read(path, 4096, &text, &size) ? -1 : atoi(text);
}

static void gather_host(struct sl_facts *f)
{
	size_t used = 0;

	f->huge_free_bytes = free_huge_bytes();
	if (access("/sys/devices/system/node/node1", F_OK))
		return;
	for (size_t i = 0; i < f->gpus.count && used + 40 < sizeof(f->numa); i++) {
		const struct sl_msg_gpu_row *row = &f->gpus.all[i].gpu_row;
		int node = numa_node_of(row->pci);

		if (node >= 0)
			used += (size_t)snprintf(f->numa + used, sizeof(f->numa) - used,
				"%sGPU %u on NUMA node %d", used ? ", " : "", row->gpu,
				node);
	}
}

static void gather_container(struct sl_facts *f)
{
	const char *named = getenv("container");

	if (!access("/.dockerenv", F_OK))
		named = "docker";
	else if (!access("/run/.containerenv", F_OK))
		named = "podman";
	else if (getenv("KUBERNETES_SERVICE_HOST"))
		named = "kubernetes";
	if (named)
		snprintf(f->container, sizeof(f->container), "%s", named);
}

static bool has_system_preload(void)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size;

	return !sl_file_read("/etc/ld.so.preload", SL_MIB, &text, &size) &&
	       strspn(text, " \t\n") < size;
}

void sl_doctor_gather(struct sl_facts *f)
{
	*f = (struct sl_facts){.preload = getenv("LD_PRELOAD")};
	f->software = getenv(SL_SOFTGPU_ENV) != NULL;
	f->system_preload = has_system_preload();
	f->has_mps = has_mps();
	gather_library(f);
	gather_daemon(f);
	sl_nvml_ask(&f->nvml);
	gather_devices(f);
	gather_kernel(f);
	gather_cgroup(f);
	gather_host(f);
	gather_container(f);
}

void sl_doctor_facts_fini(struct sl_facts *f)
{
	sl_rows_fini(&f->status);
	sl_rows_fini(&f->gpus);
	sl_rows_fini(&f->uses);
	sl_rows_fini(&f->pool);
	sl_rows_fini(&f->parts);
}
