/*
 * route - see route.h
 *
 * Code here starts nothing and takes no lock of ours: dlsym may be called from constructors, from
 * other libraries' initialisation, and long before CUDA is used.
 */
#include "runtime/hooks/route.h"
#include "runtime/hooks/nvml.h"
#include "runtime/hooks/through.h"
#include "runtime/process/libc.h"
#include "runtime/process/mode.h"
#include "runtime/real/real.h"

#include <dlfcn.h>
#include <string.h>

/* What programs get for that name: a trampoline or a hook; NULL: what they find. */
static void *ours(const char *name)
{
	void *found = sl_through_named(name);
	const struct sl_hook_row *row = found ? NULL : sl_hook_row_named(name);

	if (row)
		found = row->hook;
	return found ? found : sl_nvml_hook(name);
}

bool sl_route_knows(const char *name)
{
	return ours(name) != NULL;
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
	bool is_cuda = name[0] == 'c';
	void *hook = ours(name), *driver;

	if (is_cuda && found != hook)
		sl_real_offer(handle);
	driver = is_cuda ? sl_real_address(name) : sl_nvml_address(name);
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

static const struct {
	const char *symbol;
	int since;
} names[] = {
#define SL_CUDA_NAME(symbol, since) {#symbol, since},
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
};

/* The newest exported name of that base name up to cuda_version. */
static const char *name_of_version(const char *symbol, int cuda_version, bool per_thread)
{
	const char *best = NULL;
	int best_since = 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		const char *name = names[i].symbol;
		bool is_per_thread;
		size_t length = base_length(name, &is_per_thread);

		if (is_per_thread == per_thread && names[i].since <= cuda_version &&
			names[i].since > best_since && strlen(symbol) == length &&
			memcmp(symbol, name, length) == 0) {
			best = name;
			best_since = names[i].since;
		}
	}
	return best;
}

void *sl_route_function(
	const char *symbol, void *function, int cuda_version, uint64_t flags)
{
	const struct sl_hook_row *row = sl_real_row_of(function);
	bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	void *hook = row ? row->hook : sl_through_of(function);
	const char *name;

	if (hook)
		return hook;
	/* An exported function is identified by its exported name. One that we do not know, a newer
	 * variant, is passed on. */
	name = sl_libc_name_of(function);
	if (name) {
		hook = ours(name);
		return hook ? hook : function;
	}
	name = name_of_version(symbol, cuda_version, per_thread);
	/* Only functions with a per-thread twin differ by that flag. */
	if (!name && per_thread)
		name = name_of_version(symbol, cuda_version, false);
	hook = name && sl_real_address(name) ? ours(name) : NULL;
	return hook ? hook : function;
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
