/*
 * snoop - looks for data of another program (`swapper`'s fill under a seed), wherever it can look
 *
 * Any three words in a row of such a fill are recognised by their values alone, wherever they are.
 * It looks into fresh GPU memory of both kinds, as much as there is; into all of its own memory,
 * with what its library may have been given; and into the files of memory that a process has open.
 * It also tells which files of a process in /proc it may open at all.
 */
#include "prog.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 8 << 20, PIECES_MAX = 4096, PATH_LENGTH = 600, NUMBERS = 1 << 26 };

static uint64_t seed = 1, found, looked_bytes, opened;

static uint32_t inverse(uint32_t odd)
{
	uint32_t x = odd;

	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

/* prog_mix backwards: which word of the fill has this value. */
static uint32_t number_of(uint32_t value)
{
	static uint32_t second, first;
	uint32_t x = value ^ (value >> 13) ^ (value >> 26);

	if (!first) {
		first = inverse(0x9E3779B1u);
		second = inverse(0x85EBCA6Bu);
	}
	x *= second;
	x ^= x >> 16;
	return (x - (uint32_t)seed) * first;
}

static void look(const uint32_t *words, uint64_t bytes)
{
	looked_bytes += bytes;
	for (uint64_t i = 0; i + 2 < bytes / 4; i++) {
		uint32_t number = number_of(words[i]);

		/* A fill of another seed is the same words from a far number on. */
		if (number < NUMBERS &&
			prog_mix((uint32_t)seed, number + 1) == words[i + 1] &&
			prog_mix((uint32_t)seed, number + 2) == words[i + 2])
			found++;
	}
}

/* --- the GPU ---------------------------------------------------------------------------------- */

static void look_at(CUdeviceptr at, uint32_t *words)
{
	PROG_MUST(cuMemcpyDtoH_v2(words, at, PIECE));
	look(words, PIECE);
	memset(words, 0, PIECE);
}

static CUresult map(CUdeviceptr *at)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	const CUmemAccessDesc access = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle handle;
	CUresult r = cuMemCreate(&handle, PIECE, &prop, 0);

	if (r != CUDA_SUCCESS)
		return r;
	PROG_MUST(cuMemAddressReserve(at, PIECE, 0, 0, 0));
	PROG_MUST(cuMemMap(*at, PIECE, 0, handle, 0));
	PROG_MUST(cuMemSetAccess(*at, PIECE, &access, 1));
	return cuMemRelease(handle);
}

/* As much as there is, half of it by each way. */
static void look_at_gpu(uint64_t bytes)
{
	uint32_t *words = malloc(PIECE);

	if (!words)
		exit(PROG_USAGE);
	prog_context(0);
	for (uint64_t i = 0; i < bytes / PIECE && i < PIECES_MAX; i++) {
		CUdeviceptr at;
		CUresult r = i % 2 ? map(&at) : cuMemAlloc_v2(&at, PIECE);

		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			break;
		PROG_MUST(r);
		look_at(at, words);
	}
	free(words);
}

/* --- memory of processes ---------------------------------------------------------------------- */

static void look_at_file(int fd, uint64_t from, uint64_t to)
{
	uint32_t *words = malloc(PIECE);
	ssize_t got;

	if (!words)
		exit(PROG_USAGE);
	for (uint64_t at = from; at < to; at += (uint64_t)got) {
		uint64_t size = to - at < PIECE ? to - at : PIECE;

		got = pread(fd, words, size, (off_t)at);
		if (got <= 0)
			break;
		look(words, (uint64_t)got);
		memset(words, 0, PIECE);
	}
	free(words);
}

/* The tables of a sanitizer, terabytes of them and nearly all empty, take hours and hold no
 * program's data. */
static bool is_table(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return bytes > (uint64_t)64 << 30;
#else
	(void)bytes;
	return false;
#endif
}

static void look_at_self(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	unsigned long from, to;
	char line[1024], may[8];

	if (!maps || mem < 0)
		exit(PROG_USAGE);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, may) == 3 && may[0] == 'r' &&
			!strstr(line, "[v") && !is_table(to - from))
			look_at_file(mem, from, to);
	}
	(void)fclose(maps);
	(void)close(mem);
}

/* Everything in a folder of /proc/PID that can be opened; memory files are looked into. */
static void look_at_folder(const char *path)
{
	char name[PATH_LENGTH], target[PATH_LENGTH];
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		ssize_t length;
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		length = readlink(name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		/* Opening a pipe would wait, and says nothing. */
		if (length > 0 && !strstr(target, "memfd:"))
			continue;
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		opened++;
		look_at_file(fd, 0, UINT64_MAX);
		(void)close(fd);
	}
	if (folder)
		(void)closedir(folder);
}

static void look_at_process(uint64_t pid)
{
	static const char *const parts[] = {"fd", "map_files"};
	char path[PATH_LENGTH];
	int mem;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%llu/%s",
			(unsigned long long)pid, parts[i]);
		look_at_folder(path);
	}
	(void)snprintf(path, sizeof(path), "/proc/%llu/mem", (unsigned long long)pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	opened += mem >= 0;
	if (mem >= 0)
		(void)close(mem);
}

int main(int argc, char **argv)
{
	uint64_t bytes = 0, pid = 0, fd = 0;
	bool self = false;
	const struct prog_option options[] = {
		{"seed", PROG_NUMBER, &seed, "of the fill that is looked for"},
		{"gpu", PROG_SIZE, &bytes,
			"look at so much fresh GPU memory, or all there is"},
		{"self", PROG_FLAG, &self, "and at all memory of this process"},
		{"pid", PROG_NUMBER, &pid, "and at what of that process can be opened"},
		{"fd", PROG_NUMBER, &fd, "and at the file that this number stands for"},
	};

	prog_options(argc, argv, "Looks for what another program wrote.", options,
		sizeof(options) / sizeof(options[0]));
	if (bytes)
		look_at_gpu(bytes);
	if (self)
		look_at_self();
	if (pid)
		look_at_process(pid);
	if (fd)
		look_at_file((int)fd, 0, UINT64_MAX);
	prog_say("{\"event\":\"end\",\"found\":%llu,\"opened\":%llu,\"looked_bytes\":%"
		 "llu}",
		(unsigned long long)found, (unsigned long long)opened,
		(unsigned long long)looked_bytes);
	return found ? PROG_WRONG : PROG_OK;
}
