/*
 * route - see route.h
 *
 * Code here starts nothing and takes no lock of ours: dlsym may be called from constructors, from
 * other libraries' initialisation, and long before CUDA is used.
 */
#include "runtime/hooks/route.h"
#include "runtime/hooks/nvml.h"
#include "runtime/process/libc.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

#include <dlfcn.h>
#include <string.h>

bool sl_route_knows(const char *name)
{
	const struct sl_hook_row *row = sl_hook_row_named(name);

	return (row && row->hook) || sl_nvml_hook(name);
}

int sl_route_open_flags(int flags)
{
	return sl_mode_is_active() ? flags & ~RTLD_DEEPBIND : flags;
}

void *sl_route_real_dlopen(void)
{
	return (void *)sl_libc_dlopen();
}

void *sl_route_real_dlsym(void)
{
	return (void *)sl_libc_dlsym();
}

void *sl_route_real_dlvsym(void)
{
	return (void *)sl_libc_dlvsym();
}

/* found: the C library's result for the name. */
static void *replace(void *handle, const char *name, void *found)
{
	const struct sl_hook_row *row = sl_hook_row_named(name);
	void *hook = row ? row->hook : sl_nvml_hook(name), *driver;

	if (row && found != hook)
		sl_real_offer(handle);
	driver = row ? sl_real_address(name) : sl_nvml_address(name);
	/* The search found our own export, because we are in the global scope. */
	if (found == hook)
		return driver && sl_mode_is_active() ? hook : driver;
	return found == driver && sl_mode_is_active() ? hook : found;
}

void *sl_route_dlsym(void *handle, const char *name)
{
	sl_dlsym_fn look_up = sl_libc_dlsym();
	void *found = look_up ? look_up(handle, name) : NULL;

	if (found)
		found = replace(handle, name, found);
	if (found || !look_up)
		return found;
	/* If only our library has the name, there is no driver: fail as without us, with dlerror()
	 * set. RTLD_NEXT is relative to this function, so the call must not become a jump. */
	found = look_up(RTLD_NEXT, name);
	__asm__ volatile("" : "+r"(found));
	return found;
}

void *sl_route_dlvsym(void *handle, const char *name, const char *version)
{
	sl_dlvsym_fn look_up = sl_libc_dlvsym();
	void *found = look_up ? look_up(handle, name, version) : NULL;

	return found ? replace(handle, name, found) : NULL;
}

/* --- cuGetProcAddress ------------------------------------------------------------------------ */

static bool has_suffix(const char *text, size_t length, const char *suffix)
{
	size_t size = strlen(suffix);

	return length > size && memcmp(text + length - size, suffix, size) == 0;
}

/* Length of an exported name without _ptsz or _ptds (*per_thread) and without _v2 and the like. */
static size_t base_length(const char *exported, bool *per_thread)
{
	size_t length = strlen(exported);

	*per_thread = has_suffix(exported, length, "_ptsz") ||
		      has_suffix(exported, length, "_ptds");
	if (*per_thread)
		length -= strlen("_ptsz");
	if (length > 3 && exported[length - 3] == '_' && exported[length - 2] == 'v')
		length -= strlen("_v2");
	return length;
}

/* The newest row of that base name up to cuda_version. */
static const struct sl_hook_row *row_of_version(
	const char *symbol, int cuda_version, bool per_thread)
{
	const struct sl_hook_row *best = NULL;

	for (int id = 0; id < SL_HOOKS; id++) {
		const struct sl_hook_row *row = &sl_hook_rows[id];
		bool row_per_thread;
		size_t length = base_length(row->symbol, &row_per_thread);

		if (row->hook && row_per_thread == per_thread &&
			row->since <= cuda_version && strlen(symbol) == length &&
			memcmp(symbol, row->symbol, length) == 0 &&
			(!best || row->since > best->since))
			best = row;
	}
	return best;
}

void *sl_route_function(
	const char *symbol, void *function, int cuda_version, uint64_t flags)
{
	const struct sl_hook_row *row = sl_real_row_of(function);
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const char *exported;

	if (row)
		return row->hook;
	/* An exported function is identified by its exported name. One that we do not hook (a newer
	 * variant, or one that needs no hook) is passed on. */
	exported = sl_libc_name_of(function);
	if (exported) {
		row = sl_hook_row_named(exported);
		return row && row->hook ? row->hook : function;
	}
	row = row_of_version(symbol, cuda_version, per_thread);
	/* Only functions with a per-thread twin differ by that flag. */
	if (!row && per_thread)
		row = row_of_version(symbol, cuda_version, false);
	return row && sl_real_address(row->symbol) ? row->hook : function;
}

SL_EXPORT CUresult cuGetProcAddress(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags)
{
	CUresult r = sl_real.cuGetProcAddress(symbol, fn, cuda_version, flags);

	if (r == CUDA_SUCCESS && fn && *fn && sl_mode_is_active())
		*fn = sl_route_function(symbol, *fn, cuda_version, flags);
	return r;
}

SL_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult r = sl_real.cuGetProcAddress_v2(symbol, fn, cuda_version, flags, status);

	if (r == CUDA_SUCCESS && fn && *fn && sl_mode_is_active())
		*fn = sl_route_function(symbol, *fn, cuda_version, flags);
	return r;
}
