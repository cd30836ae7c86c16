#include "copy-stub.h"
#include "../stub.h"
#include "../vmm-stub.h"

#include "runtime/real/real.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS_MAX  4096
#define PINS_MAX 256

enum { COPY_OUT, COPY_IN, CLEAR };

struct op {
	int kind;
	CUdeviceptr at;
	unsigned char *host;
	uint64_t bytes;
};

/* A point in the one order in which all is done. */
struct CUevent_st {
	uint64_t reached;
};

struct CUstream_st {
	int unused;
};

struct copy_stub copy_stub;
static struct op ops[OPS_MAX];
static uint64_t begun, done;
static struct {
	unsigned char *at;
	uint64_t bytes;
} pins[PINS_MAX];
static CUresult (*real_push)(CUcontext);

static void data_of(CUdeviceptr at, unsigned char *host, uint64_t bytes, int kind)
{
	while (bytes) {
		uint64_t part = bytes;
		unsigned char *data = vmm_stub_data(at, 0, &part);

		if (!data)
			abort(); /* a copy of memory that does not exist */
		if (kind == COPY_OUT)
			memcpy(host, data, part);
		else if (kind == COPY_IN)
			memcpy(data, host, part);
		else
			memset(data, 0, part);
		at += part;
		host += host ? part : 0;
		bytes -= part;
	}
}

/* Under the lock. */
static void do_until(uint64_t end)
{
	for (; done < end; done++) {
		const struct op *op = &ops[done % OPS_MAX];

		if (!copy_stub.broken)
			data_of(op->at, op->host, op->bytes, op->kind);
	}
}

static bool is_used(CUdeviceptr at, uint64_t bytes)
{
	for (uint64_t i = done; i < begun && !copy_stub.broken; i++) {
		const struct op *op = &ops[i % OPS_MAX];

		if (op->at < at + bytes && at < op->at + op->bytes)
			return true;
	}
	return false;
}

/* In one piece, and of one registration only, as some drivers will have it. */
static bool is_pinned(const unsigned char *at, uint64_t bytes)
{
	for (size_t i = 0; i < PINS_MAX; i++)
		if (at >= pins[i].at && at < pins[i].at + pins[i].bytes)
			return at + bytes <= pins[i].at + pins[i].bytes;
	return false;
}

static CUresult begin(int kind, CUdeviceptr at, unsigned char *host, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	if (vmm_stub_fails(&r))
		return r;
	vmm_stub_lock();
	if (begun - done == OPS_MAX)
		abort();
	ops[begun++ % OPS_MAX] = (struct op){kind, at, host, bytes};
	copy_stub.copies++;
	if (kind == COPY_OUT)
		copy_stub.out_bytes += bytes;
	else if (kind == COPY_IN)
		copy_stub.in_bytes += bytes;
	if (copy_stub.most < begun - done)
		copy_stub.most = (unsigned int)(begun - done);
	if (kind != CLEAR && !is_pinned(host, bytes)) {
		copy_stub.pageable++;
		do_until(begun);
	}
	vmm_stub_unlock();
	return copy_stub.broken;
}

static CUresult copy_out(void *host, CUdeviceptr at, size_t bytes, CUstream stream)
{
	return begin(COPY_OUT, at, host, bytes);
}

static CUresult copy_in(CUdeviceptr at, const void *host, size_t bytes, CUstream stream)
{
	return begin(COPY_IN, at, (unsigned char *)(uintptr_t)host, bytes);
}

static CUresult clear(CUdeviceptr at, unsigned int value, size_t words, CUstream stream)
{
	return begin(CLEAR, at, NULL, words * 4);
}

static CUresult wait_until(uint64_t end)
{
	CUresult r = CUDA_SUCCESS;

	if (vmm_stub_fails(&r))
		return r;
	vmm_stub_lock();
	do_until(sl_min_u64(end, begun));
	r = copy_stub.broken;
	vmm_stub_unlock();
	return r;
}

static CUresult stream_create(CUstream *out, unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	if (vmm_stub_fails(&r))
		return r;
	*out = calloc(1, sizeof(**out));
	copy_stub.streams++;
	return r;
}

static CUresult stream_destroy(CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	(void)vmm_stub_fails(&r); /* it is gone all the same */
	(void)wait_until(UINT64_MAX);
	free(stream);
	copy_stub.streams--;
	return r;
}

static CUresult stream_synchronize(CUstream stream)
{
	return wait_until(UINT64_MAX);
}

uint32_t copy_stub_hold;

static CUresult ctx_synchronize(void)
{
	while (__atomic_load_n(&copy_stub_hold, __ATOMIC_ACQUIRE))
		usleep(100);
	return wait_until(UINT64_MAX);
}

static CUresult event_create(CUevent *out, unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	if (vmm_stub_fails(&r))
		return r;
	*out = calloc(1, sizeof(**out));
	copy_stub.events++;
	return r;
}

static CUresult event_destroy(CUevent event)
{
	CUresult r = CUDA_SUCCESS;

	(void)vmm_stub_fails(&r);
	free(event);
	copy_stub.events--;
	return r;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	CUresult r = CUDA_SUCCESS;

	if (vmm_stub_fails(&r))
		return r;
	event->reached = begun;
	return copy_stub.broken;
}

static CUresult event_synchronize(CUevent event)
{
	return wait_until(event->reached);
}

static CUresult host_register(void *ptr, size_t bytes, unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;
	size_t i = 0;

	if (vmm_stub_fails(&r))
		return r;
	vmm_stub_lock();
	if (bytes > copy_stub.pin_most)
		r = CUDA_ERROR_NOT_SUPPORTED;
	for (size_t n = 0; n < PINS_MAX; n++)
		if (pins[n].bytes && pins[n].at == ptr)
			r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	while (r == CUDA_SUCCESS && pins[i].bytes)
		if (++i == PINS_MAX)
			abort();
	if (r == CUDA_SUCCESS) {
		pins[i].at = ptr;
		pins[i].bytes = bytes;
		copy_stub.pinned_bytes += bytes;
	}
	vmm_stub_unlock();
	return r;
}

static CUresult host_unregister(void *ptr)
{
	CUresult r = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;

	vmm_stub_lock();
	for (size_t i = 0; i < PINS_MAX; i++) {
		if (pins[i].at != ptr || !pins[i].bytes)
			continue;
		for (uint64_t n = done; n < begun && !copy_stub.broken; n++)
			if (ops[n % OPS_MAX].host >= pins[i].at &&
				ops[n % OPS_MAX].host < pins[i].at + pins[i].bytes)
				abort(); /* unpinned under a copy */
		copy_stub.pinned_bytes -= pins[i].bytes;
		pins[i].bytes = 0;
		r = CUDA_SUCCESS;
		break;
	}
	vmm_stub_unlock();
	return r;
}

void copy_stub_let_pin(uint64_t most_bytes)
{
	vmm_stub_lock();
	copy_stub.pin_most = most_bytes;
	vmm_stub_unlock();
}

void copy_stub_unpin_all(void)
{
	vmm_stub_lock();
	memset(pins, 0, sizeof(pins));
	copy_stub.pinned_bytes = 0;
	vmm_stub_unlock();
}

uint64_t copy_stub_pinned(void)
{
	uint64_t bytes;

	vmm_stub_lock();
	bytes = copy_stub.pinned_bytes;
	vmm_stub_unlock();
	return bytes;
}

static CUresult push(CUcontext ctx)
{
	CUresult r = CUDA_SUCCESS;

	return vmm_stub_fails(&r) ? r : real_push(ctx);
}

static unsigned char byte_of(uint64_t seed, uint64_t i)
{
	return (unsigned char)((seed * 2654435761u + i * 40503u) >> 7);
}

static bool each(CUdeviceptr at, uint64_t bytes, uint64_t seed, int what)
{
	bool same = true;
	uint64_t i = 0;

	vmm_stub_lock();
	while (i < bytes && same) {
		uint64_t part = bytes - i;
		unsigned char *data = vmm_stub_data(at + i, 0, &part);

		if (!data)
			same = false;
		else if (what == CLEAR)
			memset(data, 0, part);
		/* A byte of each 1021 is enough to tell places and orders apart. */
		for (uint64_t n = 0; same && what != CLEAR && n < part; n += 1021) {
			if (what == COPY_IN)
				data[n] = byte_of(seed, i + n);
			else
				same = data[n] == byte_of(seed, i + n);
		}
		i += part;
	}
	vmm_stub_unlock();
	return same;
}

void copy_stub_fill(CUdeviceptr at, uint64_t bytes, uint64_t seed)
{
	if (!each(at, bytes, seed, COPY_IN))
		abort();
}

bool copy_stub_is(CUdeviceptr at, uint64_t bytes, uint64_t seed)
{
	return each(at, bytes, seed, COPY_OUT);
}

void copy_stub_clear(CUdeviceptr at, uint64_t bytes)
{
	if (!each(at, bytes, 0, CLEAR))
		abort();
}

void copy_stub_install(void)
{
	memset(&copy_stub, 0, sizeof(copy_stub));
	copy_stub.pin_most = UINT64_MAX;
	vmm_stub_is_used = is_used;
	real_push = sl_real.cuCtxPushCurrent_v2;
	sl_real.cuCtxPushCurrent_v2 = push;
	sl_real.cuMemcpyDtoHAsync_v2 = copy_out;
	sl_real.cuMemcpyHtoDAsync_v2 = copy_in;
	sl_real.cuMemsetD32Async = clear;
	sl_real.cuStreamCreate = stream_create;
	sl_real.cuStreamDestroy_v2 = stream_destroy;
	sl_real.cuStreamSynchronize = stream_synchronize;
	sl_real.cuCtxSynchronize = ctx_synchronize;
	sl_real.cuEventCreate = event_create;
	sl_real.cuEventDestroy_v2 = event_destroy;
	sl_real.cuEventRecord = event_record;
	sl_real.cuEventSynchronize = event_synchronize;
	sl_real.cuMemHostRegister_v2 = host_register;
	sl_real.cuMemHostUnregister = host_unregister;
}
