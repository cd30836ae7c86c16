/*
 * trace - counts every call of the driver that a program makes, and says which library answered it
 *
 * A library to preload in front of libsluice.so (or alone). For each function that the program
 * looks up by dlsym, dlvsym or cuGetProcAddress, it gets a few instructions that count and jump on
 * to the real result: registers, stack and result are as without. At exit it writes one line per
 * function that was looked up to the file $SLUICE_TRACE.<pid>:
 *
 *   CALLS NAME OBJECT
 *
 * OBJECT is the library whose code ran: libsluice.so means that a hook saw the call. Functions
 * without a name are written as well: "TABLE uuid" for private tables that were fetched. Programs
 * that are linked with libcuda are not seen; frameworks open it.
 */
#include "base/cuda_types.h"
#include "base/sl.h"
#include "runtime/process/libc.h"
#include "runtime/hooks/route.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLES_MAX 64

/* One entry per function: its count, where it goes on, and the instructions that do it. */
#define SL_CUDA_NAME(symbol, since)                         \
	__asm__(".pushsection .data\n"                      \
		".balign 8\n"                               \
		"trace_count_" #symbol ": .quad 0\n"        \
		"trace_target_" #symbol ": .quad 0\n"       \
		".popsection\n"                             \
		".pushsection .text\n"                      \
		"trace_entry_" #symbol ":\n"                \
		"endbr64\n"                                 \
		"lock incq trace_count_" #symbol "(%rip)\n" \
		"jmp *trace_target_" #symbol "(%rip)\n"     \
		".popsection\n");                           \
	extern uint64_t trace_count_##symbol SL_HIDDEN;     \
	extern void *trace_target_##symbol SL_HIDDEN;       \
	extern void trace_entry_##symbol(void) SL_HIDDEN;
#include "base/cuda_names.def"
#undef SL_CUDA_NAME

static const struct entry {
	const char *name;
	uint64_t *count;
	void **target;
	void *code;
} entries[] = {
#define SL_CUDA_NAME(symbol, since)                              \
	{#symbol, &trace_count_##symbol, &trace_target_##symbol, \
		(void *)trace_entry_##symbol},
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
};

static struct {
	unsigned char uuid[16];
} tables[TABLES_MAX];
static unsigned int table_count;

static const struct entry *entry_of(const char *name)
{
	size_t low = 0, high = SL_ARRAY_LEN(entries);

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(name, entries[middle].name);

		if (order == 0)
			return &entries[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* --- what the program gets -------------------------------------------------------------------- */

static CUresult get_export_table(const void **table, const CUuuid *id);
static CUresult get_proc_address(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags);
static CUresult get_proc_address_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status);

static const struct {
	const char *name;
	void *replacement;
} replaced[] = {
	{"cuGetExportTable", (void *)get_export_table},
	{"cuGetProcAddress", (void *)get_proc_address},
	{"cuGetProcAddress_v2", (void *)get_proc_address_v2},
};
static void *behind[SL_ARRAY_LEN(replaced)];

/* found, counted from now on. The functions above stand between the entry and the real one. */
static void *counted(const char *name, void *found)
{
	const struct entry *entry = entry_of(name);

	if (!found || !entry || found == entry->code)
		return found;
	for (size_t i = 0; i < SL_ARRAY_LEN(replaced); i++) {
		if (strcmp(name, replaced[i].name) == 0) {
			__atomic_store_n(&behind[i], found, __ATOMIC_RELEASE);
			found = replaced[i].replacement;
		}
	}
	__atomic_store_n(entry->target, found, __ATOMIC_RELEASE);
	return entry->code;
}

/* A pointer has its exported name, whatever the program called it. */
static void *counted_pointer(void *function)
{
	const char *name = function ? sl_libc_name_of(function) : NULL;

	return name ? counted(name, function) : function;
}

static CUresult get_export_table(const void **table, const CUuuid *id)
{
	CUresult (*real)(const void **, const CUuuid *) = behind[0];
	unsigned int at;

	if (id) {
		at = __atomic_fetch_add(&table_count, 1, __ATOMIC_RELAXED);
		if (at < TABLES_MAX)
			memcpy(tables[at].uuid, id, sizeof(tables[at].uuid));
	}
	return real(table, id);
}

static CUresult get_proc_address(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t) = behind[1];
	CUresult r = real(symbol, fn, cuda_version, flags);

	if (r == CUDA_SUCCESS && fn)
		*fn = counted_pointer(*fn);
	return r;
}

static CUresult get_proc_address_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t,
		CUdriverProcAddressQueryResult *) = behind[2];
	CUresult r = real(symbol, fn, cuda_version, flags, status);

	if (r == CUDA_SUCCESS && fn)
		*fn = counted_pointer(*fn);
	return r;
}

/* --- looking up ------------------------------------------------------------------------------- */

/* dlsym and dlvsym of libsluice.so if it is there, of the C library if not. */
static void *next_of(const char *name, void *libc_one)
{
	void *sluice = sl_libc_dlopen_loaded("libsluice.so");
	sl_dlsym_fn look_up = sl_libc_dlsym();
	void *found = sluice && look_up ? look_up(sluice, name) : NULL;

	return found ? found : libc_one;
}

static sl_dlsym_fn next_dlsym(void)
{
	static void *kept;
	void *next = __atomic_load_n(&kept, __ATOMIC_RELAXED);

	if (!next) {
		next = next_of("dlsym", (void *)sl_libc_dlsym());
		__atomic_store_n(&kept, next, __ATOMIC_RELAXED);
	}
	return (sl_dlsym_fn)next;
}

bool sl_route_knows(const char *name)
{
	return entry_of(name) != NULL;
}

int sl_route_open_flags(int flags)
{
	return flags;
}

void *sl_route_real_dlopen(void)
{
	return (void *)sl_libc_dlopen();
}

void *sl_route_real_dlsym(void)
{
	return (void *)next_dlsym();
}

void *sl_route_real_dlvsym(void)
{
	return next_of("dlvsym", (void *)sl_libc_dlvsym());
}

void *sl_route_dlsym(void *handle, const char *name)
{
	return counted(name, next_dlsym()(handle, name));
}

void *sl_route_dlvsym(void *handle, const char *name, const char *version)
{
	sl_dlvsym_fn next = (sl_dlvsym_fn)sl_route_real_dlvsym();

	return counted(name, next(handle, name, version));
}

/* --- the report ------------------------------------------------------------------------------- */

static const char *object_of(void *function)
{
	static char name[128];
	const char *file;
	Dl_info info;

	for (size_t i = 0; i < SL_ARRAY_LEN(replaced); i++) {
		if (function == replaced[i].replacement)
			function = behind[i];
	}
	if (!dladdr(function, &info) || !info.dli_fname)
		return "?";
	file = strrchr(info.dli_fname, '/');
	snprintf(name, sizeof(name), "%s", file ? file + 1 : info.dli_fname);
	return name;
}

static __attribute__((destructor)) void report(void)
{
	const char *prefix = getenv("SLUICE_TRACE");
	unsigned int count = table_count < TABLES_MAX ? table_count : TABLES_MAX;
	char path[4096];
	FILE *file;

	if (!prefix || (size_t)snprintf(path, sizeof(path), "%s.%d", prefix,
			       (int)getpid()) >= sizeof(path))
		return;
	file = fopen(path, "we");
	if (!file)
		return;
	for (size_t i = 0; i < SL_ARRAY_LEN(entries); i++) {
		void *target = *entries[i].target;

		if (target)
			fprintf(file, "%llu %s %s\n",
				(unsigned long long)*entries[i].count, entries[i].name,
				object_of(target));
	}
	for (unsigned int i = 0; i < count; i++) {
		fprintf(file, "TABLE ");
		for (size_t k = 0; k < sizeof(tables[i].uuid); k++)
			fprintf(file, "%02x", tables[i].uuid[k]);
		fprintf(file, "\n");
	}
	(void)fclose(file);
}
