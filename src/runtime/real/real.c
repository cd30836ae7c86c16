/*
 * real - looks the driver's functions up in the loaded library
 *
 * RTLD_NOLOAD with the library's soname finds it whatever path it was loaded from. The handle is
 * kept for the life of the process: our table points into the library, so it must not be unloaded.
 */
#include "runtime/real/real.h"
#include "runtime/process/libc.h"

#include <dlfcn.h>
#include <string.h>

/* First call through a slot: finds the real function, which replaces this one. */
#define SL_HOOK(symbol, since, class, params, args)      \
	static SL_COLD CUresult first_##symbol params    \
	{                                                \
		if (!sl_real_find(SL_HOOK_##symbol))     \
			return CUDA_ERROR_NOT_SUPPORTED; \
		return sl_real.symbol args;              \
	}
#include "runtime/real/hooks.def"
#undef SL_HOOK

union sl_real_table sl_real_table = {
	.functions =
		{
#define SL_HOOK(symbol, since, class, params, args) .symbol = first_##symbol,
#include "runtime/real/hooks.def"
#undef SL_HOOK
		},
};

#define ADDRESS_GATE(symbol)    ((void *)symbol)
#define ADDRESS_COPY(symbol)    ((void *)symbol)
#define ADDRESS_LAUNCH(symbol)  ((void *)symbol)
#define ADDRESS_GRAPH(symbol)   ((void *)symbol)
#define ADDRESS_MEM(symbol)     ((void *)symbol)
#define ADDRESS_QUERY(symbol)   ((void *)symbol)
#define ADDRESS_PASS(symbol)    ((void *)symbol)
#define ADDRESS_VMM(symbol)     ((void *)symbol)
#define ADDRESS_IPC(symbol)     ((void *)symbol)
#define ADDRESS_CTX(symbol)     ((void *)symbol)
#define ADDRESS_LOAD(symbol)    ((void *)symbol)
#define ADDRESS_CAPTURE(symbol) ((void *)symbol)
#define ADDRESS_ROUTE(symbol)   ((void *)symbol)
#define ADDRESS_WATCH(symbol)   ((void *)symbol)
#define ADDRESS_NEED(symbol)    ((void *)symbol)
#define ADDRESS_USE(symbol)     NULL

const struct sl_hook_row sl_hook_rows[SL_HOOKS] = {
#define SL_HOOK(symbol, since, class, params, args)                               \
	{#symbol, sizeof(#symbol) - 1, SL_CLASS_##class, ADDRESS_##class(symbol), \
		(void *)first_##symbol},
#include "runtime/real/hooks.def"
#undef SL_HOOK
};

static void *driver_handle;
static int all_found;

static void *handle(void)
{
	void *now = __atomic_load_n(&driver_handle, __ATOMIC_ACQUIRE);

	if (!now) {
		now = sl_libc_dlopen_loaded("libcuda.so.1");
		if (now)
			__atomic_store_n(&driver_handle, now, __ATOMIC_RELEASE);
	}
	return now;
}

void sl_real_offer(void *offered)
{
	sl_dlsym_fn look_up = sl_libc_dlsym();
	void *none = NULL;

	if (offered == RTLD_DEFAULT || offered == RTLD_NEXT || handle() || !look_up)
		return;
	if (look_up(offered, "cuDriverGetVersion") && look_up(offered, "cuMemAlloc_v2"))
		(void)__atomic_compare_exchange_n(&driver_handle, &none, offered, false,
			__ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void *sl_real_address(const char *symbol)
{
	sl_dlsym_fn look_up = sl_libc_dlsym();
	void *driver = handle();

	return driver && look_up ? look_up(driver, symbol) : NULL;
}

bool sl_real_find(enum sl_hook_id id)
{
	void *function = __atomic_load_n(&sl_real_table.slots[id], __ATOMIC_RELAXED);

	if (function != sl_hook_rows[id].first)
		return true;
	function = sl_real_address(sl_hook_rows[id].symbol);
	if (!function)
		return false;
	__atomic_store_n(&sl_real_table.slots[id], function, __ATOMIC_RELAXED);
	return true;
}

static SL_COLD void find_all(void)
{
	if (!handle())
		return;
	for (int id = 0; id < SL_HOOKS; id++)
		(void)sl_real_find((enum sl_hook_id)id);
	/* A driver older than a row lacks its function: the program must not see the error. */
	sl_libc_clear_dlerror();
	__atomic_store_n(&all_found, 1, __ATOMIC_RELEASE);
}

const struct sl_hook_row *sl_real_row_of(const void *function)
{
	if (!__atomic_load_n(&all_found, __ATOMIC_ACQUIRE))
		find_all();
	for (int id = 0; id < SL_HOOKS; id++) {
		const void *real =
			__atomic_load_n(&sl_real_table.slots[id], __ATOMIC_RELAXED);

		if (real == function && sl_hook_rows[id].hook)
			return &sl_hook_rows[id];
	}
	return NULL;
}

const struct sl_hook_row *sl_hook_row_named(const char *symbol)
{
	size_t length = strlen(symbol);

	/* Programs look up hundreds of names when they start. */
	for (int id = 0; id < SL_HOOKS; id++) {
		if (sl_hook_rows[id].length == length &&
			memcmp(sl_hook_rows[id].symbol, symbol, length) == 0)
			return &sl_hook_rows[id];
	}
	return NULL;
}
