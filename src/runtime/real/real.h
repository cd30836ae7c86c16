/*
 * real - the driver's own functions, and the hooks that programs get in their place
 *
 * hooks.def generates ids, a typed table of real functions (sl_real), rows for look-ups and
 * prototypes of the hooks. A slot of the table first holds a small function. It finds the real one
 * in the loaded libcuda.so.1, stores it and calls it, so modules simply call sl_real.cuX(...). We
 * never load a driver. Slots are written idempotently and atomically; no lock.
 */
#ifndef SL_RUNTIME_REAL_REAL_H
#define SL_RUNTIME_REAL_REAL_H

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
	uint16_t length; /* of symbol: rules most rows out without comparing the text */
	enum sl_hook_class class;
	void *hook;  /* what programs get in its place; NULL for class USE */
	void *first; /* in its slot until the real one is found */
};

extern SL_HIDDEN union sl_real_table sl_real_table;
extern const struct sl_hook_row sl_hook_rows[SL_HOOKS];

#define sl_real sl_real_table.functions

/* The functions that programs find in place of the driver's. */
#define SL_HOOK(symbol, since, class, params, args) CUresult symbol params;
#include "runtime/real/hooks.def"
#undef SL_HOOK

/* Fills the slot of id. False if the driver lacks the function or is not loaded. */
bool sl_real_find(enum sl_hook_id id);
/* Makes handle the driver's, if none is known yet and it looks like a driver. */
void sl_real_offer(void *handle);
/* The row whose real function is `function`, or NULL. The first call fills all slots. */
const struct sl_hook_row *sl_real_row_of(const void *function);
/* The driver's function of that exported name, or NULL. */
void *sl_real_address(const char *symbol);
/* The row of an exported name, or NULL. Linear: a microsecond. */
const struct sl_hook_row *sl_hook_row_named(const char *symbol);

#endif
