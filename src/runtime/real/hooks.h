/*
 * hooks - the driver functions that we route or call, and the real ones behind them
 *
 * From hooks.def: ids, a typed table of real functions (sl_real), rows for look-ups. A slot of the
 * table first holds a small function that finds the real one, stores it and calls it, so users just
 * call sl_real.cuX(...). Slots are written idempotently and atomically; no lock.
 */
#ifndef SL_RUNTIME_REAL_HOOKS_H
#define SL_RUNTIME_REAL_HOOKS_H

#include "base/cuda_abi.h"
#include "base/cuda_abi_more.h"
#include "base/sl.h"

struct CUDA_ARRAY3D_DESCRIPTOR_v1_st;
struct CUDA_ARRAY_DESCRIPTOR_v1_st;
struct CUDA_MEMCPY2D_v1_st;
struct CUDA_MEMCPY3D_v1_st;
struct CUDA_FABRIC_COPY_BATCH_OP_st;
struct CUtexref_st;
struct CUstreamCigCaptureParams_st;

enum sl_hook_class {
	SL_CLASS_MEM,
	SL_CLASS_QUERY,
	SL_CLASS_PASS,
	SL_CLASS_VMM,
	SL_CLASS_IPC,
	SL_CLASS_CTX,
	SL_CLASS_LOAD,
	SL_CLASS_CAPTURE,
	SL_CLASS_ROUTE,
	SL_CLASS_GATE,
	SL_CLASS_COPY,
	SL_CLASS_LAUNCH,
	SL_CLASS_GRAPH,
	SL_CLASS_WATCH,
	SL_CLASS_NEED,
	SL_CLASS_USE,
};

enum sl_hook_id {
#define SL_HOOK(symbol, since, class, params, args) SL_HOOK_##symbol,
#include "runtime/real/hooks.def"
#undef SL_HOOK
	SL_HOOKS
};

struct sl_real_functions {
#define SL_HOOK(symbol, since, class, params, args) CUresult(*symbol) params;
#include "runtime/real/hooks.def"
#undef SL_HOOK
};

union sl_real_table {
	struct sl_real_functions functions;
	void *slots[SL_HOOKS];
};

struct sl_hook_row {
	const char *symbol;
	uint16_t length; /* of symbol: tells most rows apart without a look at the text */
	int since;
	enum sl_hook_class class;
	void *hook;  /* what programs get in its place; NULL for class USE */
	void *first; /* what its slot holds until the real one is found */
};

extern union sl_real_table sl_real_table;
extern const struct sl_hook_row sl_hook_rows[SL_HOOKS];

#define sl_real sl_real_table.functions

/* The functions that programs find in place of the driver's. */
#define SL_HOOK(symbol, since, class, params, args) CUresult symbol params;
#include "runtime/real/hooks.def"
#undef SL_HOOK

#endif
