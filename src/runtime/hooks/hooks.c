/*
 * hooks - the hooks that hooks.def describes completely
 *
 * These are the hooks of the classes GATE, COPY, LAUNCH, GRAPH, LOAD, WATCH and NEED. The others do
 * more than pass the gate and are written by hand. What calls the driver outside of the gate passes
 * the door (door.h).
 */
#include "runtime/contexts/sticky.h"
#include "runtime/driver/graph.h"
#include "runtime/driver/pool.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/hooks/order.h"
#include "runtime/memory/oom.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

/*
 * Fast path: one thread-local load, two thread-private stores, one load of a word that is shared
 * and almost never written, one indirect call. No lock, no system call, no fence. Budget 5 ns over
 * the bare call. Without a record (bypass) the call goes straight through.
 *
 * Everything else is in another function with the same arguments, so that the fast function need
 * not save its arguments for rare calls: slowly_X when the thread has no record or the gate is not
 * open, again_X when the driver is out of memory.
 */
#define GATED(self, stack, symbol, args)       \
	({                                     \
		CUresult gated_;               \
                                               \
		sl_gate_enter_at(self, stack); \
		gated_ = sl_real.symbol args;  \
		sl_gate_leave(self);           \
		gated_;                        \
	})
/* Prevents a tail call: otherwise the compiler loads all arguments from the caller's frame first,
 * which was a third of a launch's overhead. */
#define CALLED(call)                                  \
	({                                            \
		CUresult called_ = (call);            \
                                                      \
		__asm__ volatile("" : "+r"(called_)); \
		called_;                              \
	})
/* As sl_sticky_note(), after the gate was left. */
static SL_COLD CUresult look(CUresult result)
{
	SL_DOOR;

	return sl_sticky_look(result);
}

static inline CUresult noted(CUresult result)
{
	return sl_likely(result < CUDA_ERROR_ECC_UNCORRECTABLE) ? result : look(result);
}

#define EXPORT_GATE(symbol, params, args)                                         \
	static SL_COLD CUresult slowly_##symbol params                            \
	{                                                                         \
		struct sl_gate_thread *self = sl_gate_self;                       \
                                                                                  \
		if (!self && !(self = sl_gate_attach_here()))                     \
			return sl_real.symbol args;                               \
		return noted(GATED(self, self->entry, symbol, args));             \
	}                                                                         \
	SL_EXPORT CUresult symbol params                                          \
	{                                                                         \
		struct sl_gate_thread *self = sl_gate_self;                       \
		CUresult result;                                                  \
                                                                                  \
		if (sl_unlikely(!self) || sl_unlikely(!sl_gate_enter_open(self))) \
			return CALLED(slowly_##symbol args);                      \
		result = sl_real.symbol args;                                     \
		sl_gate_leave(self);                                              \
		return CALLED(noted(result));                                     \
	}
/* As GATE, plus one load: copies between two GPUs are ordered (order.h). */
#define EXPORT_COPY(symbol, params, args)                                      \
	static SL_COLD CUresult slowly_##symbol params                         \
	{                                                                      \
		struct sl_gate_thread *self = sl_gate_self;                    \
		struct sl_order order = {.count = 0};                          \
		CUresult result;                                               \
                                                                               \
		if (!self && !(self = sl_gate_attach_here()))                  \
			return sl_real.symbol args;                            \
		sl_gate_enter_at(self, self->entry);                           \
		if (sl_order_is_due(ENDS_##symbol args))                       \
			sl_order_begin(&order, ENDS_##symbol args);            \
		result = sl_real.symbol args;                                  \
		sl_order_end(&order, result);                                  \
		sl_gate_leave(self);                                           \
		return noted(result);                                          \
	}                                                                      \
	SL_EXPORT CUresult symbol params                                       \
	{                                                                      \
		struct sl_gate_thread *self = sl_gate_self;                    \
		CUresult result;                                               \
                                                                               \
		if (sl_unlikely(!self) ||                                      \
			sl_unlikely(sl_order_may_be_due(ENDS_##symbol args) && \
				    (self->entry = sl_gate_stack())) ||        \
			sl_unlikely(!sl_gate_enter_open(self)))                \
			return CALLED(slowly_##symbol args);                   \
		result = sl_real.symbol args;                                  \
		sl_gate_leave(self);                                           \
		return CALLED(noted(result));                                  \
	}
/* The ends of each copy, and whether its stream is the legacy one: in _ptsz and _ptds calls NULL,
 * or no stream argument, means the thread's own stream. */
#define ENDS(dst, src, legacy) ((struct sl_order_ends){dst, src, legacy})
#define IS_LEGACY(stream)      (!(stream) || (stream) == CU_STREAM_LEGACY)
#define IS_LEGACY_PTSZ(stream) ((stream) == CU_STREAM_LEGACY)
/* Arrays and host memory have no device address. */
#define END(copy, side)                                                         \
	((copy)->side##MemoryType == CU_MEMORYTYPE_HOST ||                      \
				(copy)->side##MemoryType == CU_MEMORYTYPE_ARRAY \
			? 0                                                     \
			: (copy)->side##Device)
#define ENDS_BOX(copy, legacy) \
	((copy) ? ENDS(END(copy, dst), END(copy, src), legacy) : ENDS(0, 0, false))
#define ENDS_cuMemcpy(dst, src, bytes)              ENDS(dst, src, true)
#define ENDS_cuMemcpy_ptds(dst, src, bytes)         ENDS(dst, src, false)
#define ENDS_cuMemcpyDtoD_v2(dst, src, bytes)       ENDS(dst, src, true)
#define ENDS_cuMemcpyDtoD_v2_ptds(dst, src, bytes)  ENDS(dst, src, false)
#define ENDS_cuMemcpyAsync(dst, src, bytes, stream) ENDS(dst, src, IS_LEGACY(stream))
#define ENDS_cuMemcpyAsync_ptsz(dst, src, bytes, stream) \
	ENDS(dst, src, IS_LEGACY_PTSZ(stream))
#define ENDS_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream) \
	ENDS(dst, src, IS_LEGACY(stream))
#define ENDS_cuMemcpyDtoDAsync_v2_ptsz(dst, src, bytes, stream) \
	ENDS(dst, src, IS_LEGACY_PTSZ(stream))
#define ENDS_cuMemcpyWithAttributesAsync(dst, src, bytes, attr, stream) \
	ENDS(dst, src, IS_LEGACY(stream))
#define ENDS_cuMemcpyWithAttributesAsync_ptsz(dst, src, bytes, attr, stream) \
	ENDS(dst, src, IS_LEGACY_PTSZ(stream))
#define ENDS_cuMemcpy2D_v2(copy)                   ENDS_BOX(copy, true)
#define ENDS_cuMemcpy2D_v2_ptds(copy)              ENDS_BOX(copy, false)
#define ENDS_cuMemcpy2DUnaligned_v2(copy)          ENDS_BOX(copy, true)
#define ENDS_cuMemcpy2DUnaligned_v2_ptds(copy)     ENDS_BOX(copy, false)
#define ENDS_cuMemcpy2DAsync_v2(copy, stream)      ENDS_BOX(copy, IS_LEGACY(stream))
#define ENDS_cuMemcpy2DAsync_v2_ptsz(copy, stream) ENDS_BOX(copy, IS_LEGACY_PTSZ(stream))
#define ENDS_cuMemcpy3D_v2(copy)                   ENDS_BOX(copy, true)
#define ENDS_cuMemcpy3D_v2_ptds(copy)              ENDS_BOX(copy, false)
#define ENDS_cuMemcpy3DAsync_v2(copy, stream)      ENDS_BOX(copy, IS_LEGACY(stream))
#define ENDS_cuMemcpy3DAsync_v2_ptsz(copy, stream) ENDS_BOX(copy, IS_LEGACY_PTSZ(stream))
/* Costs more than EXPORT_GATE: it stores the arguments, to keep them for a second call. slow: what
 * the slow function does instead of the call. */
#define EXPORT_RETRIED(symbol, params, args, slow)                              \
	static SL_COLD CUresult again_##symbol params                           \
	{                                                                       \
		SL_DOOR;                                                        \
		struct sl_gate_thread *self = sl_gate_self;                     \
		CUresult result = CUDA_ERROR_OUT_OF_MEMORY;                     \
                                                                                \
		SL_OOM_RETRY(result, SL_OOM_CURRENT,                            \
			GATED(self, sl_gate_stack(), symbol, args));            \
		return noted(result);                                           \
	}                                                                       \
	static SL_COLD CUresult slowly_##symbol params                          \
	{                                                                       \
		struct sl_gate_thread *self = sl_gate_self;                     \
		CUresult result;                                                \
                                                                                \
		if (!self && !(self = sl_gate_attach_here()))                   \
			return sl_real.symbol args;                             \
		slow;                                                           \
		result = GATED(self, self->entry, symbol, args);                \
		return result == CUDA_ERROR_OUT_OF_MEMORY ? again_##symbol args \
							  : noted(result);      \
	}
#define EXPORT_OPEN(symbol, params, args, otherwise)                                   \
	SL_EXPORT CUresult symbol params                                               \
	{                                                                              \
		struct sl_gate_thread *self = sl_gate_self;                            \
		CUresult result;                                                       \
                                                                                       \
		if (sl_unlikely(!self) ||                                              \
			sl_unlikely((otherwise) && (self->entry = sl_gate_stack())) || \
			sl_unlikely(!sl_gate_enter_open(self)))                        \
			return CALLED(slowly_##symbol args);                           \
		result = sl_real.symbol args;                                          \
		sl_gate_leave(self);                                                   \
		if (sl_unlikely(result == CUDA_ERROR_OUT_OF_MEMORY))                   \
			return CALLED(again_##symbol args);                            \
		return CALLED(noted(result));                                          \
	}
#define EXPORT_LAUNCH(symbol, params, args)           \
	EXPORT_RETRIED(symbol, params, args, (void)0) \
	EXPORT_OPEN(symbol, params, args, false)
/* As LAUNCH, plus one load: some graphs with memory of their own may have to ask for it. */
#define EXPORT_GRAPH(symbol, params, args)                         \
	EXPORT_RETRIED(symbol, params, args,                       \
		if (sl_graph_is_pending()) return sl_graph_launch( \
			sl_real.symbol, self, exec, stream))       \
	EXPORT_OPEN(symbol, params, args, sl_graph_is_pending())
#define EXPORT_LOAD(symbol, params, args)                                  \
	SL_EXPORT CUresult symbol params                                   \
	{                                                                  \
		SL_DOOR;                                                   \
		CUresult result = sl_real.symbol args;                     \
                                                                           \
		SL_OOM_RETRY(result, SL_OOM_CURRENT, sl_real.symbol args); \
		return sl_measure_after(result);                           \
	}
#define EXPORT_WATCH(symbol, params, args)             \
	SL_EXPORT CUresult symbol params               \
	{                                              \
		SL_DOOR;                               \
		CUresult result = sl_real.symbol args; \
                                                       \
		if (sl_likely(result == CUDA_SUCCESS)) \
			sl_pool_synced();              \
		return noted(result);                  \
	}
#define EXPORT_NEED(symbol, params, args)      \
	SL_EXPORT CUresult symbol params       \
	{                                      \
		CUresult needed_;              \
                                               \
		sl_residency_enter();          \
		needed_ = sl_real.symbol args; \
		sl_residency_leave();          \
		return noted(needed_);         \
	}
#define EXPORT_MEM(symbol, params, args)
#define EXPORT_QUERY(symbol, params, args)
#define EXPORT_PASS(symbol, params, args)
#define EXPORT_VMM(symbol, params, args)
#define EXPORT_IPC(symbol, params, args)
#define EXPORT_CTX(symbol, params, args)
#define EXPORT_CAPTURE(symbol, params, args)
#define EXPORT_ROUTE(symbol, params, args)
#define EXPORT_USE(symbol, params, args)
#define SL_HOOK(symbol, since, class, params, args) EXPORT_##class(symbol, params, args)
#include "runtime/real/hooks.def"
#undef SL_HOOK
