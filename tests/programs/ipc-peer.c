/*
 * ipc-peer - does what it is told on stdin, a line at a time: memory that processes share
 *
 * A test starts several and tells each what to do. Commands and answers are those of told.h;
 * handles travel in files. Names stand for addresses.
 *
 *	device N              the primary context of that device, made current (device 0 at the
 *	                      start).
 *	alloc NAME BYTES      free NAME           part NAME OF OFFSET BYTES
 *	fill NAME SEED        check NAME SEED     by kernels, a word per page; value: words that
 *	                                          differ.
 *	write NAME VALUE      read NAME           the first word; value: the word.
 *	get NAME FILE         open NAME FILE      close NAME         bytes of what is opened: those
 *	                                          of `size`.
 *	size NAME BYTES       cycle FILE TIMES    open and close so often; value: openings that
 *	                                          failed.
 *	many PREFIX COUNT BYTES DIR   alloc and get each; openmany PREFIX COUNT DIR: open and read
 *	                              each
 *	range NAME            value: bytes the driver tells; base: whether it begins there.
 *	attribute NAME NUMBER value: what cuPointerGetAttribute tells.
 *	fork                  a child that does nothing for a while; value: its pid
 *	quit
 */
#include "told.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 4096 };

static struct name {
	char name[32];
	CUdeviceptr at;
	uint64_t bytes;
} names[NAMES_MAX];
static size_t name_count;

static struct {
	CUfunction fill, check;
	CUdeviceptr bad;
} devices[8];
static CUdevice device;

static struct name *named(const char *name)
{
	for (size_t i = 0; i < name_count; i++) {
		if (strcmp(names[i].name, name) == 0)
			return &names[i];
	}
	if (name_count == NAMES_MAX)
		exit(PROG_USAGE);
	(void)snprintf(names[name_count].name, sizeof(names[0].name), "%s", name);
	return &names[name_count++];
}

static void use_device(CUdevice number)
{
	CUmodule module;

	device = number;
	(void)prog_context(device);
	if (devices[device].bad)
		return;
	module = prog_kernels();
	devices[device].fill = prog_kernel(module, "prog_fill");
	devices[device].check = prog_kernel(module, "prog_check");
	PROG_MUST(cuMemAlloc_v2(&devices[device].bad, 4));
}

static CUresult open_file(CUdeviceptr *at, const char *path)
{
	return cuIpcOpenMemHandle_v2(
		at, told_import(path), CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

/* --- commands: each answers by itself --------------------------------------------------------- */

static void do_device(char **word)
{
	use_device(atoi(word[1]));
	told_answer("device", CUDA_SUCCESS, (uint64_t)device);
}

static void do_alloc(char **word)
{
	struct name *name = named(word[1]);

	name->bytes = strtoull(word[2], NULL, 10);
	told_answer("alloc", cuMemAlloc_v2(&name->at, name->bytes), name->at);
}

static void do_free(char **word)
{
	told_answer("free", cuMemFree_v2(named(word[1])->at), 0);
}

static void do_part(char **word)
{
	CUdeviceptr base = named(word[2])->at;
	struct name *name = named(word[1]);

	name->at = base + strtoull(word[3], NULL, 10);
	name->bytes = strtoull(word[4], NULL, 10);
	told_answer("part", CUDA_SUCCESS, name->at);
}

static void do_size(char **word)
{
	named(word[1])->bytes = strtoull(word[2], NULL, 10);
	told_answer("size", CUDA_SUCCESS, 0);
}

static void do_fill(char **word)
{
	struct name *name = named(word[1]);
	CUresult r = prog_fill(
		devices[device].fill, name->at, name->bytes, (uint32_t)atoi(word[2]));

	told_answer("fill", r == CUDA_SUCCESS ? cuCtxSynchronize() : r, 0);
}

static void do_check(char **word)
{
	struct name *name = named(word[1]);
	uint32_t wrong = 0;
	CUresult r = prog_check(devices[device].check, name->at, name->bytes,
		(uint32_t)atoi(word[2]), devices[device].bad, &wrong);

	told_answer("check", r, wrong);
}

static void do_write(char **word)
{
	uint32_t value = (uint32_t)strtoul(word[2], NULL, 10);

	told_answer(
		"write", cuMemcpyHtoD_v2(named(word[1])->at, &value, sizeof(value)), 0);
}

static void do_read(char **word)
{
	uint32_t value = 0;
	CUresult r = cuMemcpyDtoH_v2(&value, named(word[1])->at, sizeof(value));

	told_answer("read", r, value);
}

static void do_get(char **word)
{
	told_answer("get", told_export(named(word[1])->at, word[2]), 0);
}

static void do_open(char **word)
{
	struct name *name = named(word[1]);
	CUresult r = open_file(&name->at, word[2]);

	told_answer("open", r, r == CUDA_SUCCESS ? name->at : 0);
}

static void do_close(char **word)
{
	told_answer("close", cuIpcCloseMemHandle(named(word[1])->at), 0);
}

static void do_cycle(char **word)
{
	uint64_t failed = 0;
	CUresult r, last = CUDA_SUCCESS;

	for (int i = 0; i < atoi(word[2]); i++) {
		CUdeviceptr at = 0;
		uint32_t value;

		r = open_file(&at, word[1]);
		if (r == CUDA_SUCCESS)
			r = cuMemcpyDtoH_v2(&value, at, sizeof(value));
		if (r == CUDA_SUCCESS)
			r = cuIpcCloseMemHandle(at);
		failed += r != CUDA_SUCCESS;
		last = r != CUDA_SUCCESS ? r : last;
	}
	told_answer("cycle", last, failed);
}

static void do_many(char **word)
{
	CUresult r = CUDA_SUCCESS;
	int count = atoi(word[2]);

	for (int i = 0; i < count && r == CUDA_SUCCESS; i++) {
		char name[64], path[512];
		uint32_t value = prog_mix(77, (uint64_t)i);
		CUdeviceptr at;

		(void)snprintf(name, sizeof(name), "%s%d", word[1], i);
		(void)snprintf(path, sizeof(path), "%s/%s", word[4], name);
		r = cuMemAlloc_v2(&at, strtoull(word[3], NULL, 10));
		if (r == CUDA_SUCCESS)
			r = cuMemcpyHtoD_v2(at, &value, sizeof(value));
		if (r == CUDA_SUCCESS)
			r = told_export(at, path);
		named(name)->at = at;
	}
	told_answer("many", r, (uint64_t)count);
}

static void do_openmany(char **word)
{
	CUresult r = CUDA_SUCCESS;
	uint64_t wrong = 0;

	for (int i = 0; i < atoi(word[2]) && r == CUDA_SUCCESS; i++) {
		char name[64], path[512];
		uint32_t value = 0;
		CUdeviceptr at;

		(void)snprintf(name, sizeof(name), "%s%d", word[1], i);
		(void)snprintf(path, sizeof(path), "%s/%s", word[3], name);
		r = open_file(&at, path);
		if (r == CUDA_SUCCESS)
			r = cuMemcpyDtoH_v2(&value, at, sizeof(value));
		wrong += value != prog_mix(77, (uint64_t)i);
	}
	told_answer("openmany", r, wrong);
}

static void do_range(char **word)
{
	CUdeviceptr base = 0, at = named(word[1])->at;
	size_t bytes = 0;
	CUresult r = cuMemGetAddressRange_v2(&base, &bytes, at);

	told_answer_more("range", r, bytes, "base", base == at);
}

static void do_attribute(char **word)
{
	unsigned long long value = 0;
	CUresult r = cuPointerGetAttribute(
		&value, (CUpointer_attribute)atoi(word[2]), named(word[1])->at);

	told_answer("attribute", r, value);
}

static void do_quit(char **word)
{
	(void)word;
	told_end();
	told_answer("quit", CUDA_SUCCESS, 0);
}

static const struct told_command commands[] = {
	{"device", 2, do_device},
	{"alloc", 3, do_alloc},
	{"free", 2, do_free},
	{"part", 5, do_part},
	{"size", 3, do_size},
	{"fill", 3, do_fill},
	{"check", 3, do_check},
	{"write", 3, do_write},
	{"read", 2, do_read},
	{"get", 3, do_get},
	{"open", 3, do_open},
	{"close", 2, do_close},
	{"cycle", 3, do_cycle},
	{"many", 5, do_many},
	{"openmany", 4, do_openmany},
	{"range", 2, do_range},
	{"attribute", 3, do_attribute},
	{"fork", 1, told_fork},
	{"quit", 1, do_quit},
};

int main(int argc, char **argv)
{
	(void)prog_options(argc, argv, "Does what it is told on stdin.", NULL, 0);
	use_device(0);
	told_obey(commands, sizeof(commands) / sizeof(commands[0]));
	return PROG_OK;
}
