/*
 * route - finds functions with libsluice.so preloaded, and tells whose they are
 *
 * Runs itself again with LD_PRELOAD, once active and once in bypass. argv: libsluice.so, folder of
 * the stub libcuda.so.1.
 */
#include "../child.h"

#include "base/cuda_abi.h"

#include <dlfcn.h>
#include <string.h>

int route_next_answer(void);
int route_next_grid(void);
int route_behind(void);

static const char *library, *folder;

/* "sluice", "cuda", "other" or "none". */
static const char *owner(const void *function)
{
	Dl_info info;

	if (!function)
		return "none";
	if (!dladdr(function, &info))
		return "other";
	if (strstr(info.dli_fname, "libsluice"))
		return "sluice";
	return strstr(info.dli_fname, "libcuda") ? "cuda" : "other";
}

#define CHECK_OWNER(function, want)                                              \
	do {                                                                     \
		const char *got_ = owner(function);                              \
		if (strcmp(got_, want) != 0) {                                   \
			fprintf(stderr, "%s:%d: %s is of %s, should be of %s\n", \
				__FILE__, __LINE__, #function, got_, want);      \
			_exit(1);                                                \
		}                                                                \
	} while (0)

static void *proc(void *cuda, const char *symbol, int version, unsigned long long flags)
{
	CUresult (*get)(
		const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *function = NULL;

	*(void **)&get = dlsym(cuda, "cuGetProcAddress_v2");
	CHECK(get);
	(void)get(symbol, &function, version, flags, NULL);
	return function;
}

static void *named(void *cuda, const char *symbol)
{
	return dlsym(cuda, symbol);
}

static void probe(const char *ours)
{
	const unsigned long long per_thread =
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	void *cuda;

	/* No driver is loaded: none is found, though libsluice.so exports the names. */
	CHECK_OWNER(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), "none");
	CHECK(dlerror());
	CHECK_OWNER(dlsym(RTLD_DEFAULT, "malloc"), "other");
	/* peer-failures row 22, and the reason why dlsym is entered in assembly. */
	CHECK_EQ(route_next_answer(), route_behind());
	CHECK_EQ(route_next_grid(), 4);
	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(cuda);
	CHECK_OWNER(named(cuda, "cuMemAlloc_v2"), ours);
	CHECK_OWNER(named(cuda, "cuLaunchKernel_ptsz"), ours);
	CHECK_OWNER(named(cuda, "cuDriverGetVersion"), ours);
	CHECK_OWNER(named(cuda, "cuMemAlloc_v9"), "cuda");
	/* peer-failures row 14. What the driver lacks is not there, hook or no hook. */
	CHECK_OWNER(named(cuda, "cuGraphLaunch"), "none");
	CHECK_OWNER(dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5"), "sluice");
	CHECK_OWNER(proc(cuda, "cuMemAlloc", 12000, 0), ours);
	CHECK_OWNER(proc(cuda, "cuLaunchKernel", 12000, per_thread), ours);
	CHECK_EQ(proc(cuda, "cuLaunchKernel", 12000, per_thread) ==
			 named(cuda, "cuLaunchKernel_ptsz"),
		1);
	CHECK_EQ(proc(cuda, "cuLaunchKernel", 12000, 0) == named(cuda, "cuLaunchKernel"),
		1);
	/* Exported under a name we do not know: another function, so not ours. */
	CHECK_OWNER(proc(cuda, "cuMemAlloc", 14000, 0), "cuda");
	/* Not exported at all: by name, version and flags. */
	CHECK_OWNER(proc(cuda, "cuMemsetD8", 12000, 0), ours);
	CHECK_OWNER(proc(cuda, "cuMemsetD8", 2000, 0), "cuda");
	CHECK_OWNER(proc(cuda, "cuGetProcAddress", 12000, 0), ours);
	CHECK_EQ(((__typeof__(&cuInit))named(cuda, "cuInit"))(0), CUDA_ERROR_NO_DEVICE);
}

static void run_again(const char *mode)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	CHECK(n > 0);
	self[n] = '\0';
	setenv("LD_PRELOAD", library, 1);
	setenv("LD_LIBRARY_PATH", folder, 1);
	setenv("SLUICE_SOCKET", "/nowhere", 1);
	if (strcmp(mode, "cuda") == 0)
		setenv("SLUICE_BYPASS", "1", 1);
	execl(self, self, "probe", mode, NULL);
}

static void body_active(void)
{
	run_again("sluice");
	_exit(2);
}

static void body_bypass(void)
{
	run_again("cuda");
	_exit(2);
}

static void test_active(void **state)
{
	in_child(body_active, 20);
}

static void test_bypass(void **state)
{
	in_child(body_bypass, 20);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_active),
		cmocka_unit_test(test_bypass),
	};

	if (argc == 3 && strcmp(argv[1], "probe") == 0) {
		probe(argv[2]);
		return 0;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: %s LIBSLUICE.SO FOLDER-OF-LIBCUDA\n", argv[0]);
		return 2;
	}
	library = argv[1];
	folder = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
