/*
 * execute - one operation on a stream's worker
 *
 * Copies go in pieces. Each piece is looked up and held while it is copied. So memory that is
 * unmapped meanwhile ends the context with an illegal address, as in hardware, and never the
 * program with a signal. A context with an error does nothing more; its operations just complete.
 */
#include "softgpu/driver/driver.h"
#include "softgpu/memory/space.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES (4 * SL_MIB)
#define HOLE_BYTES \
	SL_SG_PAGE /* zeros of at least this size become holes, without touching memory */
#define POLL_NS 50000

/* Links --------------------------------------------------------------------------------------- */

/* A copy asks for the link again after each piece, and keeps it that long. */
#define BETWEEN_NS 2000000u

static void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

/*
 * The share of the link's speed that a copy to the GPU gets while another copies from it. On real
 * links such copies, which the GPU reads, slow down (to half, as published for an A100); copies
 * from the GPU do not.
 */
static double share_of(CUdevice device, bool to_gpu, uint64_t now_ns)
{
	uint64_t *out = sl_link_way(device, false);

	return to_gpu && __atomic_load_n(out, __ATOMIC_RELAXED) + BETWEEN_NS > now_ns
		       ? (double)sl_drv.hello.duplex_pct / 100
		       : 1;
}

/* Occupies the link, which all processes share, for the time that `bytes` need at its speed.
 * Returns the end of that time, or 0. If the process dies, the link is occupied in vain for one
 * piece at most. */
static uint64_t pace(CUdevice device, bool to_gpu, bool pageable, uint64_t bytes)
{
	uint64_t speed =
		to_gpu ? sl_drv.hello.h2d_bytes_per_s : sl_drv.hello.d2h_bytes_per_s;
	uint64_t *way = sl_link_way(device, to_gpu), now_ns = sl_drv_now_ns();
	uint64_t free_ns, until, span;
	double share;

	if (!speed || !way)
		return 0;
	share = share_of(device, to_gpu, now_ns);
	if (pageable)
		share *= (double)sl_drv.hello.pageable_pct / 100;
	span = (uint64_t)((double)bytes * 1e9 / ((double)speed * share));
	free_ns = __atomic_load_n(way, __ATOMIC_RELAXED);
	do
		until = sl_max_u64(free_ns, now_ns) + span;
	while (!__atomic_compare_exchange_n(
		way, &free_ns, until, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return until;
}

/* Copies and sets ----------------------------------------------------------------------------- */

/* One end of a piece. Host ends are plain pointers. For devices without mutual access the driver
 * copies in two steps, so at each end access by the memory's own device suffices. */
static bool pin_end(uint64_t address, bool is_host, CUdevice device, bool write,
	uint64_t *bytes, char **where, struct sl_phys **phys)
{
	struct sl_mapping m;

	*phys = NULL;
	*where = (char *)(uintptr_t)address;
	if (is_host || sl_space_pin(address, device, write, bytes, where, phys))
		return true;
	return sl_space_mapping(address, &m) && m.device != device && !m.is_host &&
	       sl_space_pin(address, m.device, write, bytes, where, phys);
}

/* The device whose access counts for an end. */
static CUdevice device_of(CUstream s, uint8_t by)
{
	return by ? (CUdevice)by - 1 : s->ctx->device;
}

static bool copy_row(CUstream s, const struct sl_copy *c, uint64_t dst, uint64_t src)
{
	CUdevice device = s->ctx->device;

	for (uint64_t left = c->width; left;) {
		uint64_t n = sl_min_u64(left, PIECE_BYTES);
		struct sl_phys *to = NULL, *from = NULL;
		char *d, *p;
		bool ok = pin_end(dst, c->dst_host, device_of(s, c->dst_by), true, &n, &d,
				  &to) &&
			  pin_end(src, c->src_host, device_of(s, c->src_by), false, &n,
				  &p, &from);

		uint64_t until = ok && c->src_host != c->dst_host
					 ? pace(device, c->src_host, c->pageable, n)
					 : 0;

		if (ok)
			memmove(d, p, n);
		if (ok)
			sl_space_echo(dst, d, n);
		sl_space_unpin(to);
		sl_space_unpin(from);
		if (!ok)
			return false;
		if (until)
			sleep_until(until);
		dst += n;
		src += n;
		left -= n;
	}
	return true;
}

static bool copy_box(CUstream s, const struct sl_copy *c)
{
	for (size_t z = 0; z < c->slices; z++)
		for (size_t y = 0; y < c->rows; y++)
			if (!copy_row(s, c, c->dst + z * c->dst_slice + y * c->dst_pitch,
				    c->src + z * c->src_slice + y * c->src_pitch))
				return false;
	return true;
}

static void do_copy(CUstream s, const struct sl_copy *c)
{
	if (!copy_box(s, c))
		sl_ctx_fail(s->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void fill(char *where, uint32_t value, uint32_t size, uint64_t bytes)
{
	if (size == 1) {
		memset(where, (int)value, bytes);
	} else if (size == 2) {
		uint16_t v = (uint16_t)value;

		for (uint64_t i = 0; i < bytes; i += 2)
			memcpy(where + i, &v, 2);
	} else {
		for (uint64_t i = 0; i < bytes; i += 4)
			memcpy(where + i, &value, 4);
	}
}

/* Zeros over whole host pages free the pages, so a large GPU stays sparse. */
static bool punch_zeros(char *where, uint64_t bytes, bool is_gpu)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char *first = (char *)(uintptr_t)sl_round_up((uint64_t)(uintptr_t)where, page);
	char *last = (char *)((uintptr_t)(where + bytes) & ~(page - 1));

	if (!is_gpu || bytes < HOLE_BYTES ||
		madvise(first, (size_t)(last - first), MADV_REMOVE) < 0)
		return false;
	memset(where, 0, (size_t)(first - where));
	memset(last, 0, (size_t)(where + bytes - last));
	return true;
}

static bool set_row(CUdevice device, const struct sl_set *set, uint64_t dst)
{
	for (uint64_t left = set->width * set->size; left;) {
		uint64_t n = set->value ? sl_min_u64(left, PIECE_BYTES) : left;
		struct sl_phys *phys;
		char *where;

		if (!sl_space_pin(dst, device, true, &n, &where, &phys))
			return false;
		if (set->value || !punch_zeros(where, n, phys))
			fill(where, set->value, set->size, n);
		sl_space_echo(dst, where, n);
		sl_space_unpin(phys);
		dst += n;
		left -= n;
	}
	return true;
}

static void do_set(CUstream s, CUdevice device, const struct sl_set *set)
{
	for (size_t y = 0; y < set->rows; y++)
		if (!set_row(device, set, set->dst + y * set->pitch)) {
			sl_ctx_fail(s->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
			return;
		}
}

/* Kernels ------------------------------------------------------------------------------------- */

static CUresult launch_by(int fd, const struct sl_cp_launch *l)
{
	struct sl_cp_reply reply;

	if (fd < 0 || sl_sg_send(fd, l, SL_CP_LAUNCH_BYTES(l), NULL, 0, NULL, 0) < 0 ||
		sl_sg_receive(fd, &reply, sizeof(reply), NULL, NULL) !=
			(ssize_t)sizeof(reply))
		return CUDA_ERROR_LAUNCH_FAILED;
	return (CUresult)reply.result;
}

/* A kernel runs on the GPU of its function. Only in a graph that may differ from the stream's. */
static CUresult launch(CUstream s, CUcontext ctx, const struct sl_cp_launch *l)
{
	CUresult r = sl_ctx_error(ctx);

	if (r == CUDA_SUCCESS && ctx->device == s->ctx->device) {
		if (s->companion_fd < 0)
			s->companion_fd = sl_companion_connect(ctx->device);
		r = launch_by(s->companion_fd, l);
	} else if (r == CUDA_SUCCESS) {
		int fd = sl_companion_connect(ctx->device);

		r = launch_by(fd, l);
		if (fd >= 0)
			close(fd);
	}
	/* On a lost GPU that is the error, whatever its companion reports. */
	if (r != CUDA_SUCCESS && sl_ctx_error(ctx) == CUDA_SUCCESS)
		sl_ctx_fail(ctx, r);
	return r;
}

/* Words --------------------------------------------------------------------------------------- */

static bool value_met(uint64_t now, uint64_t want, uint32_t bytes, uint32_t flags)
{
	switch (flags & 3) {
	case CU_STREAM_WAIT_VALUE_EQ: return now == want;
	case CU_STREAM_WAIT_VALUE_AND: return (now & want) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return bytes == 4 ? (uint32_t) ~(now | want) != 0 : ~(now | want) != 0;
	default:
		return bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)want) >= 0
				  : (int64_t)(now - want) >= 0;
	}
}

/* One attempt: false if the address is illegal; *met: the wait is over. */
static bool touch_value(CUstream s, const CUstreamBatchMemOpParams *p, bool *met)
{
	const struct CUstreamMemOpWaitValueParams_st *v = &p->waitValue;
	bool is_wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
		       p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	bool is_wait = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		       p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	uint64_t n = is_wide ? 8 : 4, now;
	struct sl_phys *phys;
	char *where;

	if (!sl_space_pin(v->address, s->ctx->device, !is_wait, &n, &where, &phys))
		return false;
	*met = true;
	if (is_wait) {
		now = is_wide ? __atomic_load_n((uint64_t *)where, __ATOMIC_ACQUIRE)
			      : __atomic_load_n((uint32_t *)where, __ATOMIC_ACQUIRE);
		*met = value_met(
			now, is_wide ? v->value64 : v->value, is_wide ? 8 : 4, v->flags);
	} else if (is_wide) {
		__atomic_store_n((uint64_t *)where, v->value64, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n((uint32_t *)where, v->value, __ATOMIC_RELEASE);
	}
	if (!is_wait)
		sl_space_echo(v->address, where, is_wide ? 8 : 4);
	sl_space_unpin(phys);
	return true;
}

static void do_value(CUstream s, const CUstreamBatchMemOpParams *p)
{
	bool met = false;

	if (p->operation == CU_STREAM_MEM_OP_BARRIER ||
		p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
		return; /* operations here run in order and are visible at once */
	while (!met && sl_ctx_error(s->ctx) == CUDA_SUCCESS) {
		if (!touch_value(s, p, &met))
			sl_ctx_fail(s->ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
		else if (!met)
			sleep_until(sl_drv_now_ns() + POLL_NS);
	}
}

/* All ----------------------------------------------------------------------------------------- */

static void do_callback(CUstream s, struct sl_op *op)
{
	sl_in_callback = true;
	if (op->kind == SL_OP_HOST)
		op->host.fn(op->host.data);
	else
		op->host.callback(op->host.handle, sl_ctx_error(s->ctx), op->host.data);
	sl_in_callback = false;
}

void sl_op_execute(CUstream s, struct sl_op *op)
{
	bool broken = sl_ctx_error(s->ctx) != CUDA_SUCCESS;
	CUdevice device = device_of(s, op->kind == SL_OP_SET ? op->set.by : 0);
	uint64_t start = sl_drv_now_ns();
	CUresult r = CUDA_SUCCESS;

	/* A stream callback gets errors; all other operations are skipped in a broken context. */
	if (op->kind == SL_OP_EVENT)
		sl_shared_reached(&op->event.shared); /* others wait for it in any case */
	if (broken && op->kind != SL_OP_CALLBACK)
		return;
	switch (op->kind) {
	case SL_OP_COPY: do_copy(s, &op->copy); break;
	case SL_OP_SET: do_set(s, device, &op->set); break;
	case SL_OP_KERNEL:
		device = op->kernel.module->ctx->device;
		r = launch(s, op->kernel.module->ctx, op->kernel.launch);
		break;
	case SL_OP_HOST:
	case SL_OP_CALLBACK: do_callback(s, op); return;
	case SL_OP_EVENT: sl_event_reached(op->event.event, op->event.record); return;
	case SL_OP_VALUE:
		for (unsigned i = 0; i < op->value.count; i++)
			do_value(s, &op->value.list[i]);
		return;
	case SL_OP_CALL: op->call->run(s, op->call); return;
	case SL_OP_FREE: (void)!sl_space_free(op->free_address); return;
	case SL_OP_WAIT:
	case SL_OP_NOP: return;
	}
	/* Waits for the stream get the error, too. */
	if (r != CUDA_SUCCESS && sl_ctx_error(s->ctx) == CUDA_SUCCESS)
		sl_ctx_fail(s->ctx, r);
	sl_link_busy(device, sl_drv_now_ns() - start);
}
