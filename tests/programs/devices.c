/*
 * devices - every GPU the program sees: UUID, memory, and whether it works
 *
 * One line per device with what a program would use to tell GPUs apart, after an allocation and a
 * kernel on each. Index, UUID and account must belong together (peer-failures rows 2, 19).
 */
#include "prog.h"

/* Allocates, fills and checks on the device; false if a word is wrong. */
static bool try_device(CUdevice device, uint64_t bytes)
{
	CUmodule module;
	CUdeviceptr at, bad;
	uint32_t wrong = 1;

	prog_context(device);
	module = prog_kernels();
	PROG_MUST(cuMemAlloc_v2(&at, bytes));
	PROG_MUST(cuMemAlloc_v2(&bad, 4));
	PROG_MUST(
		prog_fill(prog_kernel(module, "prog_fill"), at, bytes, (uint32_t)device));
	PROG_MUST(prog_check(prog_kernel(module, "prog_check"), at, bytes,
		(uint32_t)device, bad, &wrong));
	return !wrong;
}

int main(int argc, char **argv)
{
	uint64_t bytes = 32 << 20, hold_ms = 0;
	const char *until = NULL;
	const struct prog_option options[] = {
		{"bytes", PROG_SIZE, &bytes, "bytes to hold on each"},
		{"hold-ms", PROG_NUMBER, &hold_ms, "time to hold them"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
	};
	bool good = true;
	int count;

	prog_options(argc, argv, "Looks at every GPU.", options,
		sizeof(options) / sizeof(options[0]));
	PROG_MUST(cuInit(0));
	PROG_MUST(cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		const unsigned char *u;
		size_t total;
		CUuuid uuid;
		bool works = try_device(i, bytes);

		good &= works;
		PROG_MUST(cuDeviceTotalMem_v2(&total, i));
		PROG_MUST(cuDeviceGetUuid(&uuid, i));
		u = (const unsigned char *)uuid.bytes;
		prog_say("{\"device\":%d,\"uuid\":\"GPU-%02x%02x%02x%02x-%02x%02x-%02x%"
			 "02x-"
			 "%02x%02x-%02x%02x%02x%02x%02x%02x\",\"total_bytes\":%zu,"
			 "\"works\":%d}",
			i, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9],
			u[10], u[11], u[12], u[13], u[14], u[15], total, works);
	}
	prog_say("{\"event\":\"held\",\"count\":%d,\"good\":%d}", count, good);
	prog_rest(hold_ms, until);
	return good ? PROG_OK : PROG_WRONG;
}
