/*
 * ucx - two processes send each other memory of five kinds through UCX
 *
 * Every kind goes to every kind, as a message with a tag and as a put into the other's memory,
 * small and large. UCX copies small ones. For large ones it opens the other process's memory if the
 * kind can be exported, and otherwise copies in pieces. The memory is allocated and freed for each,
 * so that addresses come again and UCX's memory of them must be right.
 *
 * Output: a line "OPERATION/FROM-TO/BYTES pass|fail" for each. The suite compiles the file against
 * the headers of UCX in its package. Exit status: 0 if everything ran, whatever it showed.
 */
#include "base/cuda_abi.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

/* A hang is a result, too. */
enum { SECONDS_MAX = 600, LARGE = (3 << 20) + 1000 };

static const size_t sizes[] = {1000, LARGE};
static const char *const kinds[] = {"host", "device", "managed", "pool", "vmm"};
static const char *const operations[] = {"tag", "put"};
enum { KINDS = 5, OPERATIONS = 2, SIZES = 2 };

struct memory {
	unsigned int kind;
	size_t bytes;
	CUdeviceptr at;
	CUmemGenericAllocationHandle handle;
	size_t mapped_bytes;
};

static struct {
	bool sends;
	int peer; /* socket to the other process */
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	unsigned char *pattern, *read_back;
} my;

#define MUST(call, good)                                                               \
	do {                                                                           \
		int must_result = (int)(call);                                         \
		if (must_result != (int)(good)) {                                      \
			fprintf(stderr, "%s: %s: %d\n",                                \
				my.sends ? "sender" : "receiver", #call, must_result); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)
#define CU(call)  MUST(call, CUDA_SUCCESS)
#define UCX(call) MUST(call, UCS_OK)

/* --- memory --- */

static void vmm_alloc(struct memory *m)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	size_t grain;

	CU(cuMemGetAllocationGranularity(
		&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	m->mapped_bytes = (m->bytes + grain - 1) / grain * grain;
	CU(cuMemAddressReserve(&m->at, m->mapped_bytes, 0, 0, 0));
	CU(cuMemCreate(&m->handle, m->mapped_bytes, &prop, 0));
	CU(cuMemMap(m->at, m->mapped_bytes, 0, m->handle, 0));
	CU(cuMemSetAccess(m->at, m->mapped_bytes, &access, 1));
}

static void memory_alloc(struct memory *m)
{
	void *host;

	switch (m->kind) {
	case 0:
		CU(cuMemHostAlloc(&host, m->bytes, 0));
		m->at = (CUdeviceptr)(uintptr_t)host;
		return;
	case 1: CU(cuMemAlloc_v2(&m->at, m->bytes)); return;
	case 2: CU(cuMemAllocManaged(&m->at, m->bytes, CU_MEM_ATTACH_GLOBAL)); return;
	case 3:
		CU(cuMemAllocAsync(&m->at, m->bytes, NULL));
		CU(cuStreamSynchronize(NULL));
		return;
	default: vmm_alloc(m);
	}
}

static void memory_free(struct memory *m)
{
	switch (m->kind) {
	case 0: CU(cuMemFreeHost((void *)(uintptr_t)m->at)); return;
	case 1:
	case 2: CU(cuMemFree_v2(m->at)); return;
	case 3:
		CU(cuMemFreeAsync(m->at, NULL));
		CU(cuStreamSynchronize(NULL));
		return;
	default:
		CU(cuMemUnmap(m->at, m->mapped_bytes));
		CU(cuMemRelease(m->handle));
		CU(cuMemAddressFree(m->at, m->mapped_bytes));
	}
}

/* Contents differ from case to case, and from what the receiver's memory is filled with before. */
static void fill(unsigned char *at, size_t bytes, unsigned int seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		x = x * 1664525u + 1013904223u;
		at[i] = (unsigned char)(x >> 24);
	}
}

static void copy(CUdeviceptr to, const void *from, size_t bytes)
{
	CU(cuMemcpy(to, (CUdeviceptr)(uintptr_t)from, bytes));
	CU(cuCtxSynchronize());
}

/* --- the other process --- */

static void say(const void *what, size_t bytes)
{
	MUST(send(my.peer, what, bytes, MSG_NOSIGNAL), bytes);
}

/* UCX moves only in calls: the other's operation may need this process while it waits for its
 * result. */
static void hear(void *what, size_t bytes)
{
	size_t have = 0;
	ssize_t n;

	while (have < bytes) {
		(void)ucp_worker_progress(my.worker);
		n = recv(my.peer, (char *)what + have, bytes - have, MSG_DONTWAIT);
		if (n == 0)
			exit(1);
		if (n > 0)
			have += (size_t)n;
		else
			usleep(100);
	}
}

static ucs_status_t wait_for(ucs_status_ptr_t request)
{
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(request))
		return UCS_PTR_STATUS(request);
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
		(void)ucp_worker_progress(my.worker);
	ucp_request_free(request);
	return status;
}

/* --- operations --- */

static const ucp_request_param_t no_param = {.op_attr_mask = 0};

static ucs_status_t do_tag(const struct memory *m, unsigned int number)
{
	void *at = (void *)(uintptr_t)m->at;

	if (my.sends)
		return wait_for(ucp_tag_send_nbx(my.ep, at, m->bytes, number, &no_param));
	return wait_for(
		ucp_tag_recv_nbx(my.worker, at, m->bytes, number, UINT64_MAX, &no_param));
}

static ucs_status_t put(const struct memory *m)
{
	unsigned char packed[4096];
	uint64_t remote;
	size_t bytes;
	ucp_rkey_h rkey;
	ucs_status_t status;

	hear(&bytes, sizeof(bytes));
	hear(packed, bytes);
	hear(&remote, sizeof(remote));
	status = ucp_ep_rkey_unpack(my.ep, packed, &rkey);
	if (status != UCS_OK)
		return status;
	status = wait_for(ucp_put_nbx(
		my.ep, (void *)(uintptr_t)m->at, m->bytes, remote, rkey, &no_param));
	if (status == UCS_OK)
		status = wait_for(ucp_ep_flush_nbx(my.ep, &no_param));
	ucp_rkey_destroy(rkey);
	return status;
}

static ucs_status_t do_put(const struct memory *m, unsigned int number)
{
	ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
						     UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = (void *)(uintptr_t)m->at,
		.length = m->bytes};
	uint64_t at = m->at;
	ucs_status_t status;
	ucp_mem_h memh;
	void *packed;
	size_t bytes;

	(void)number;
	if (my.sends) {
		status = put(m);
		say(&status, sizeof(status));
		return status;
	}
	UCX(ucp_mem_map(my.context, &params, &memh));
	UCX(ucp_rkey_pack(my.context, memh, &packed, &bytes));
	say(&bytes, sizeof(bytes));
	say(packed, bytes);
	say(&at, sizeof(at));
	ucp_rkey_buffer_release(packed);
	hear(&status, sizeof(status));
	UCX(ucp_mem_unmap(my.context, memh));
	return status;
}

/* One case, at both ends. The receiver tells the sender its result, so both stay in step. */
static void one(unsigned int operation, unsigned int from, unsigned int to, size_t bytes)
{
	static unsigned int number;
	struct memory m = {.kind = my.sends ? from : to, .bytes = bytes};
	ucs_status_t status;
	bool right;

	number++;
	memory_alloc(&m);
	fill(my.pattern, bytes, number);
	memset(my.read_back, 0xee, bytes);
	copy(m.at, my.sends ? my.pattern : my.read_back, bytes);
	status = operation ? do_put(&m, number) : do_tag(&m, number);
	if (my.sends) {
		hear(&right, sizeof(right));
		printf("%s/%s-%s/%zu %s\n", operations[operation], kinds[from], kinds[to],
			bytes, right && status == UCS_OK ? "pass" : "fail");
		(void)fflush(stdout);
	} else {
		CU(cuMemcpy((CUdeviceptr)(uintptr_t)my.read_back, m.at, bytes));
		right = status == UCS_OK && memcmp(my.read_back, my.pattern, bytes) == 0;
		say(&right, sizeof(right));
	}
	if (status != UCS_OK)
		fprintf(stderr, "%s of %s to %s: %s\n", operations[operation],
			kinds[from], kinds[to], ucs_status_string(status));
	memory_free(&m);
}

/* --- both processes --- */

static void connect_peer(void)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA};
	ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	ucp_config_t *config;
	size_t bytes;
	void *remote;

	UCX(ucp_config_read(NULL, NULL, &config));
	UCX(ucp_init(&params, config, &my.context));
	ucp_config_release(config);
	UCX(ucp_worker_create(my.context, &worker, &my.worker));
	UCX(ucp_worker_get_address(my.worker, &address, &bytes));
	say(&bytes, sizeof(bytes));
	say(address, bytes);
	ucp_worker_release_address(my.worker, address);
	hear(&bytes, sizeof(bytes));
	remote = malloc(bytes);
	if (!remote)
		exit(1);
	hear(remote, bytes);
	ep.address = remote;
	UCX(ucp_ep_create(my.worker, &ep, &my.ep));
	free(remote);
}

static int run(void)
{
	CUcontext context;
	char bye = 0;

	(void)alarm(SECONDS_MAX);
	CU(cuInit(0));
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	my.pattern = malloc(LARGE);
	my.read_back = malloc(LARGE);
	if (!my.pattern || !my.read_back)
		return 1;
	connect_peer();
	for (unsigned int i = 0; i < OPERATIONS * KINDS * KINDS * SIZES; i++)
		one(i / (SIZES * KINDS * KINDS), i / (SIZES * KINDS) % KINDS,
			i / SIZES % KINDS, sizes[i % SIZES]);
	/* An end that went away would be an error to the other. */
	say(&bye, 1);
	hear(&bye, 1);
	(void)wait_for(ucp_ep_flush_nbx(my.ep, &no_param));
	ucp_worker_destroy(my.worker);
	ucp_cleanup(my.context);
	CU(cuDevicePrimaryCtxRelease_v2(0));
	return 0;
}

int main(void)
{
	int ends[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	my.sends = child != 0;
	my.peer = ends[my.sends];
	(void)close(ends[!my.sends]);
	if (run() != 0)
		return 1;
	if (!my.sends)
		return 0;
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
