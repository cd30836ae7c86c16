/*
 * hostmem - which pages are asked of the kernel, near which GPU
 *
 * The machine that the tests run on mostly has one node, and no huge pages. So set_mempolicy(2),
 * memfd_create(2) and madvise(2) are the test's own, and remember their arguments. madvise(2) also
 * calls the kernel: where the kernel gives huge pages on request, the test sees them come.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/core/host_budget.h"
#include "daemon/swap/hostmem.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define THP       "/sys/kernel/mm/transparent_hugepage"
#define ON_NODE_1 1
#define ON_NODE_0 0
#define NOWHERE   (-1)

static struct {
	unsigned int policies; /* set so far */
	long mode;
	unsigned long mask; /* of nodes */
	unsigned int files, huge_files;
	bool no_huge; /* they are refused */
	/* Of mappings. Wrong requests: after pages were there, or where no huge one could begin. */
	uint64_t advised_bytes, wrong_bytes, populated_bytes;
	int no_populate; /* so it is refused */
	int fd;          /* the last file */
} asked;

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < SL_ARRAY_LEN(a); i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_set_mempolicy) {
		asked.policies++;
		asked.mode = a[0];
		asked.mask = a[1] ? *(const unsigned long *)a[1] : 0;
		return 0;
	}
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int memfd_create(const char *name, unsigned int flags)
{
	if (!(flags & MFD_HUGETLB)) {
		asked.files++;
	} else if (asked.no_huge) {
		errno = ENOMEM;
		return -1;
	} else {
		asked.huge_files++;
	}
	asked.fd = (int)syscall(SYS_memfd_create, name,
		flags & ~(unsigned int)MFD_HUGETLB, 0l, 0l, 0l, 0l);
	return asked.fd;
}

static uint64_t bytes_of(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 ? (uint64_t)stat.st_blocks * 512 : UINT64_MAX;
}

int madvise(void *at, size_t bytes, int advice)
{
	if (advice == MADV_HUGEPAGE) {
		asked.advised_bytes += bytes;
		if ((uintptr_t)at % SL_HOSTMEM_GRAIN ||
			bytes_of(asked.fd) != asked.populated_bytes)
			asked.wrong_bytes += bytes;
	} else if (advice == MADV_POPULATE_WRITE) {
		if (asked.no_populate) {
			errno = asked.no_populate;
			return -1;
		}
		asked.populated_bytes += bytes;
	}
	return (int)syscall(SYS_madvise, at, bytes, (long)advice, 0l, 0l, 0l);
}

/* --- a machine with two nodes ----------------------------------------------------------------- */

struct machine {
	char root[64];
	struct sl_hostmem *hostmem;
};

static void put(const struct machine *machine, const char *path, const char *text)
{
	char whole[256], folder[256];

	(void)snprintf(whole, sizeof(whole), "%s%s", machine->root, path);
	(void)snprintf(folder, sizeof(folder), "%s", whole);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(sl_file_make_dirs(folder, 0755), 0);
	assert_int_equal(sl_file_replace(whole, text, strlen(text), false), 0);
}

static void put_huge(const struct machine *machine, unsigned int pages)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		"MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nHugePages_Free: %u\n"
		"HugePages_Rsvd: 0\nHugepagesize: 2048 kB\n",
		pages);
	put(machine, "/proc/meminfo", text);
}

static int setup(void **state)
{
	static struct machine machine;

	(void)snprintf(machine.root, sizeof(machine.root), "/tmp/sluice-mem-XXXXXX");
	if (!mkdtemp(machine.root))
		return 1;
	put_huge(&machine, 0);
	memset(&asked, 0, sizeof(asked));
	*state = &machine;
	return sl_hostmem_new(machine.root, &machine.hostmem);
}

static int teardown(void **state)
{
	struct machine *machine = *state;
	char command[128];

	machine->hostmem = sl_hostmem_free(machine->hostmem);
	(void)snprintf(command, sizeof(command), "rm -rf %s", machine->root);
	return system(command);
}

/* Huge pages of a file: the kernel's figure for a mapping that does not ask for any, once
 * touched. */
static uint64_t mapped_huge(int fd, uint64_t bytes)
{
	char *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	unsigned long long kib = 0, from;
	char line[256];
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool here = false;

	assert_true(map != MAP_FAILED && smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%llx-%*x", &from) == 1 && strchr(line, '-'))
			here = from == (unsigned long long)(uintptr_t)map;
		else if (here && sscanf(line, "ShmemPmdMapped: %llu", &kib) == 1)
			break;
	}
	(void)fclose(smaps);
	(void)munmap(map, bytes);
	return kib * SL_KIB;
}

/* Makes a file and checks that it has all its pages, huge_bytes of them in transparent huge ones.
 * Returns whether it is of pages that were set aside. */
static bool makes_of(
	struct machine *machine, uint64_t bytes, int node, uint64_t *huge_bytes)
{
	struct pollfd ready = {.fd = sl_hostmem_fd(machine->hostmem), .events = POLLIN};
	struct sl_hostmem_answer *answer = NULL;
	bool huge;

	assert_true(sl_hostmem_make(machine->hostmem, 1, bytes, node));
	for (int i = 0; i < 100 && !answer; i++) {
		(void)poll(&ready, 1, 100);
		answer = sl_hostmem_take(machine->hostmem);
	}
	assert_non_null(answer);
	assert_int_equal(answer->error, 0);
	assert_true(answer->fd >= 0 && answer->bytes == bytes);
	assert_int_equal(bytes_of(answer->fd), bytes);
	*huge_bytes = mapped_huge(answer->fd, bytes);
	huge = answer->huge;
	(void)sl_hostmem_answer_free(answer);
	return huge;
}

static bool makes(struct machine *machine, uint64_t bytes, int node)
{
	uint64_t huge_bytes;

	return makes_of(machine, bytes, node, &huge_bytes);
}

/* --- where ------------------------------------------------------------------------------------ */

static void pages_come_from_the_node_of_the_gpu(void **state)
{
	struct machine *machine = *state;

	(void)makes(machine, SL_HOSTMEM_GRAIN, ON_NODE_1);
	assert_int_equal(asked.policies, 1);
	assert_int_equal(asked.mode, MPOL_PREFERRED);
	assert_int_equal(asked.mask, 1u << 1);
	/* Nothing is asked twice. */
	(void)makes(machine, SL_HOSTMEM_GRAIN, ON_NODE_1);
	assert_int_equal(asked.policies, 1);
	(void)makes(machine, SL_HOSTMEM_GRAIN, ON_NODE_0);
	assert_int_equal(asked.policies, 2);
	assert_int_equal(asked.mode, MPOL_PREFERRED);
	assert_int_equal(asked.mask, 1u << 0);
	/* Of a GPU without one they may come from anywhere. */
	(void)makes(machine, SL_HOSTMEM_GRAIN, NOWHERE);
	assert_int_equal(asked.policies, 3);
	assert_int_equal(asked.mode, MPOL_DEFAULT);
}

/* --- how large -------------------------------------------------------------------------------- */

static void huge_pages_where_some_are_set_aside(void **state)
{
	struct machine *machine = *state;

	assert_false(makes(machine, 2 * SL_HOSTMEM_GRAIN, ON_NODE_0));
	assert_int_equal(asked.huge_files, 0);
	put_huge(machine, 2);
	assert_true(makes(machine, 2 * SL_HOSTMEM_GRAIN, ON_NODE_0));
	assert_int_equal(asked.huge_files, 1);
	assert_int_equal(asked.files, 1);
	/* Too few of them: ordinary ones, and not some of each. */
	assert_false(makes(machine, 3 * SL_HOSTMEM_GRAIN, ON_NODE_0));
	assert_int_equal(asked.huge_files, 1);
	/* They are gone meanwhile. */
	asked.no_huge = true;
	assert_false(makes(machine, 2 * SL_HOSTMEM_GRAIN, ON_NODE_0));
	assert_int_equal(asked.files, 3);
}

static void huge_pages_are_asked_for_before_there_are_any(void **state)
{
	struct machine *machine = *state;
	uint64_t bytes = 100 * SL_MIB, huge_bytes;

	/* "always" needs no asking, and without huge pages asking would only cost. */
	put(machine, THP "/shmem_enabled", "[always] within_size advise never deny\n");
	(void)makes(machine, bytes, NOWHERE);
	assert_int_equal(asked.advised_bytes, 0);
	put(machine, THP "/shmem_enabled", "always within_size [advise] never deny\n");
	(void)makes_of(machine, bytes, NOWHERE, &huge_bytes);
	assert_int_equal(asked.advised_bytes, bytes);
	assert_int_equal(asked.wrong_bytes, 0);
	assert_int_equal(asked.populated_bytes, bytes);
	/* On this machine, if it gives any on request: how many depends on its other memory use. */
	if (sl_host_budget_advises(""))
		assert_true(huge_bytes > 0);
	/* The size's own choice. */
	put(machine, THP "/shmem_enabled", "always within_size advise [never] deny\n");
	put(machine, THP "/hugepages-2048kB/shmem_enabled",
		"always inherit within_size [advise] never\n");
	asked.populated_bytes = 0;
	(void)makes(machine, bytes, NOWHERE);
	assert_int_equal(asked.advised_bytes, 2 * bytes);
	/* Those that are set aside need no asking. */
	put_huge(machine, 64);
	assert_true(makes(machine, bytes, NOWHERE));
	assert_int_equal(asked.advised_bytes, 2 * bytes);
}

/* The kernel does not know MADV_POPULATE_WRITE, or has not enough memory for it: pages come all the
 * same, or the answer says why not. */
static void pages_come_where_none_are_to_be_had_by_asking(void **state)
{
	static const int faults[] = {EINVAL, EFAULT, ENOMEM, EINTR};
	struct machine *machine = *state;

	put(machine, THP "/shmem_enabled", "always within_size [advise] never deny\n");
	for (size_t i = 0; i < SL_ARRAY_LEN(faults); i++) {
		asked.no_populate = faults[i];
		(void)makes(machine, 3 * SL_HOSTMEM_GRAIN, NOWHERE);
		assert_int_equal(asked.populated_bytes, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			pages_come_from_the_node_of_the_gpu, setup, teardown),
		cmocka_unit_test_setup_teardown(
			huge_pages_where_some_are_set_aside, setup, teardown),
		cmocka_unit_test_setup_teardown(
			huge_pages_are_asked_for_before_there_are_any, setup, teardown),
		cmocka_unit_test_setup_teardown(
			pages_come_where_none_are_to_be_had_by_asking, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
