/*
 * ends - programs that close, drop and end things that others rely on
 *
 *	ends CASE [FILE]
 *
 * A case ends with 0 if the driver answered as it should all the time. Cases take away only what
 * belongs to Sluice: the line to the daemon and a pipe. The driver's own descriptors are left
 * alone, since the driver could not go on natively either.
 */
#include "prog.h"
#include "shape.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void *driver;
static const char *file;
static struct shape_order order = {.name = "ends"};
static struct shape_functions f;
static CUdeviceptr kept;

static void *find(const char *symbol)
{
	return dlsym(driver, symbol);
}

static bool use(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return driver && shape_use(find, &order);
}

/* With whatever descriptors there are: an error is told. */
static bool few_at_start(void)
{
	return use();
}

/* A context, and 64 MiB that stay. */
static bool start(void)
{
	CUcontext context = NULL;

	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return driver && shape_find("ends", find, &f) && f.cuInit(0) == CUDA_SUCCESS &&
	       f.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
	       f.cuCtxSetCurrent(context) == CUDA_SUCCESS &&
	       f.cuMemAlloc_v2(&kept, 64 << 20) == CUDA_SUCCESS &&
	       f.cuMemsetD8_v2(kept, 0x77, 64 << 20) == CUDA_SUCCESS;
}

/* What stayed is still there, and more can be had. */
static bool goes_on(void)
{
	const struct shape_order *o = &order;
	unsigned char seen = 0;

	return f.cuMemcpyDtoH_v2(&seen, kept + (64 << 20) - 1, 1) == CUDA_SUCCESS &&
	       seen == 0x77 && shape_touch(&f, o, 32 << 20);
}

static bool reopened(void)
{
	for (int i = 0; i < 5; i++) {
		if (!use() || dlclose(driver) != 0)
			return false;
	}
	return use();
}

static bool plugin_closed(void)
{
	for (int i = 0; i < 5; i++) {
		void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		shape_plugin plugin;

		*(void **)&plugin = library ? dlsym(library, "plugin_use") : NULL;
		if (!plugin || !plugin(&order) || dlclose(library) != 0)
			return false;
	}
	return true;
}

/* The line to the daemon and the agent's pipe. */
static bool is_ours(int fd)
{
	const char *path = getenv("SLUICE_SOCKET");
	struct sockaddr_un peer = {0};
	socklen_t size = sizeof(peer);
	struct stat stat_now;

	if (fstat(fd, &stat_now) != 0)
		return false;
	if (S_ISFIFO(stat_now.st_mode))
		return true;
	return S_ISSOCK(stat_now.st_mode) && path &&
	       getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
	       !strcmp(peer.sun_path, path);
}

static int lose_ours(int over)
{
	int lost = 0;

	for (int fd = 3; fd < 1024; fd++) {
		if (fd == over || !is_ours(fd))
			continue;
		lost++;
		if (over >= 0 ? dup2(over, fd) != fd : close(fd) != 0)
			return -1;
	}
	return lost;
}

/* As daemons do before they start. Otherwise an inherited descriptor could be mistaken for
 * Sluice's. */
static void close_inherited(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static bool lost_enough(int lost)
{
	prog_say("{\"lost\":%d}", lost);
	/* The line and both ends of a pipe; natively there is nothing to lose. */
	return lost == (getenv("SLUICE_WORKLOAD") ? 3 : 0);
}

static bool closes_all(void)
{
	close_inherited();
	return start() && lost_enough(lose_ours(-1)) && goes_on() && goes_on();
}

/* Other files under our numbers: nothing of ours may be written into them. */
static bool covers_all(void)
{
	struct stat stat_now;
	int over;

	close_inherited();
	over = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (over < 0 || !start() || !lost_enough(lose_ours(over)) || !goes_on() ||
		!goes_on())
		return false;
	prog_sleep_ms(300);
	return fstat(over, &stat_now) == 0 && stat_now.st_size == 0 &&
	       lseek(over, 0, SEEK_CUR) == 0;
}

static bool changes_root(void)
{
	return start() && chroot(file) == 0 && chdir("/") == 0 && goes_on();
}

static bool changes_user(void)
{
	return start() && setgroups(0, NULL) == 0 && setgid(65534) == 0 &&
	       setuid(65534) == 0 && geteuid() == 65534 && goes_on();
}

static bool forgets_environment(void)
{
	return start() && clearenv() == 0 && goes_on();
}

static bool few_descriptors(void)
{
	struct rlimit few = {3, 3};

	/* All allowed descriptors are in use; the driver has its own already. */
	return start() && setrlimit(RLIMIT_NOFILE, &few) == 0 && goes_on();
}

static bool little_room(void)
{
	struct rlimit little = {0};
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	bool good;

	if (!statm)
		return false;
	good = start();
	good &= fscanf(statm, "%lu", &pages) == 1;
	fclose(statm);
	statm = fopen("/proc/self/statm", "r");
	good &= statm && fscanf(statm, "%lu", &pages) == 1;
	/* The present size and 256 MiB: enough for the rest. */
	little.rlim_cur = little.rlim_max = (rlim_t)pages * 4096 + (256 << 20);
	return good && setrlimit(RLIMIT_AS, &little) == 0 && goes_on();
}

static void *busy(void *arg)
{
	CUcontext context = arg;
	CUdeviceptr at;

	(void)f.cuCtxSetCurrent(context);
	for (;;) {
		/* Ends by the process's end, so a refusal on the way out is no fault. */
		if (f.cuMemAlloc_v2(&at, 1 << 16) != CUDA_SUCCESS)
			continue;
		(void)f.cuMemsetD8_v2(at, 1, 1 << 16);
		(void)f.cuMemFree_v2(at);
	}
	return NULL;
}

static void *ends_all(void *arg)
{
	prog_sleep_ms(150);
	prog_say("{\"event\":\"exit\"}");
	exit(PROG_OK);
	return arg;
}

static bool ends_amidst(void)
{
	CUcontext context = NULL;
	pthread_t thread;

	if (!start() || f.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)
		return false;
	for (int i = 0; i < 8; i++)
		if (pthread_create(&thread, NULL, i == 7 ? ends_all : busy, context))
			return false;
	for (;;)
		pause();
}

static void frees_late(void)
{
	CUresult result = f.cuMemFree_v2(kept);

	prog_say("{\"late\":%d}", (int)result);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_DEINITIALIZED)
		_exit(PROG_WRONG);
}

static bool frees_at_exit(void)
{
	return atexit(frees_late) == 0 && start();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{"reopened", reopened},
		{"plugin-closed", plugin_closed},
		{"closes-all", closes_all},
		{"covers-all", covers_all},
		{"changes-root", changes_root},
		{"changes-user", changes_user},
		{"forgets-environment", forgets_environment},
		{"few-descriptors", few_descriptors},
		{"few-at-start", few_at_start},
		{"little-room", little_room},
		{"ends-amidst", ends_amidst},
		{"frees-at-exit", frees_at_exit},
	};

	file = argc > 2 ? argv[2] : "";
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1]))
			return cases[i].run() ? PROG_OK : PROG_WRONG;
	return PROG_USAGE;
}
