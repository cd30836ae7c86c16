/*
 * names - asks for every name of the driver in every version and with every flag
 *
 * names FILE writes the driver's own answers.
 *
 * names FILE check compares: each name must have the same status, and exactly the names in
 * hooks.def and those that pass the door must give functions of Sluice.
 *
 * An answer is the exported name of the function that was found, and the library that exports it;
 * the library shows whose function it is. Names are asked for by cuGetProcAddress of both versions,
 * and by dlsym.
 */
#include "prog.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define SL_CUDA_NAME(symbol, since) #symbol,
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
};
#define NAMES (sizeof(names) / sizeof(names[0]))

static const int versions[] = {2000, 4000, 10000, 11030, 12000, 12040, 13000, 13050};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

static const char *const ours[] = {
#define HOOKED_USE(symbol)
#define HOOKED_OTHER(symbol)                        #symbol,
#define HOOKED_MEM                                  HOOKED_OTHER
#define HOOKED_QUERY                                HOOKED_OTHER
#define HOOKED_PASS                                 HOOKED_OTHER
#define HOOKED_VMM                                  HOOKED_OTHER
#define HOOKED_IPC                                  HOOKED_OTHER
#define HOOKED_CTX                                  HOOKED_OTHER
#define HOOKED_LOAD                                 HOOKED_OTHER
#define HOOKED_CAPTURE                              HOOKED_OTHER
#define HOOKED_ROUTE                                HOOKED_OTHER
#define HOOKED_GATE                                 HOOKED_OTHER
#define HOOKED_COPY                                 HOOKED_OTHER
#define HOOKED_LAUNCH                               HOOKED_OTHER
#define HOOKED_GRAPH                                HOOKED_OTHER
#define HOOKED_WATCH                                HOOKED_OTHER
#define HOOKED_NEED                                 HOOKED_OTHER
#define SL_HOOK(symbol, since, class, params, args) HOOKED_##class(symbol)
#include "runtime/real/hooks.def"
#undef SL_HOOK
#define SL_HOW(class, text)
#define SL_WHY(word, text)
#define SL_DIRECT(symbol, word)
#define SL_THROUGH(symbol, word) #symbol,
#include "runtime/real/entry-points.def"
};

struct answer {
	char name[96];
	int result, status, ours;
};

static __typeof__(&cuGetProcAddress) get_v1;
static __typeof__(&cuGetProcAddress_v2) get_v2;

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i], name))
			return true;
	return false;
}

static void describe(void *function, struct answer *out)
{
	Dl_info info = {0};

	if (!function) {
		snprintf(out->name, sizeof(out->name), "-");
		return;
	}
	if (!dladdr(function, &info) || !info.dli_fname || info.dli_saddr != function)
		info.dli_sname = NULL;
	snprintf(out->name, sizeof(out->name), "%s",
		info.dli_sname ? info.dli_sname : "?");
	out->ours = info.dli_fname && strstr(info.dli_fname, "libsluice") != NULL;
}

/* The name as programs ask for it: without the per-thread mark, with and without the version. */
static void base_of(const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	if (n > 5 && (!strcmp(name + n - 5, "_ptsz") || !strcmp(name + n - 5, "_ptds")))
		n -= 5;
	if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v')
		n -= 3;
	snprintf(out, size, "%.*s", (int)n, name);
}

/* way: 0 and 1 cuGetProcAddress and its v2 by base name, 2 and 3 by full name, 4 dlsym. */
static struct answer ask(void *driver, const char *name, int version, int flags, int way)
{
	CUdriverProcAddressQueryResult status = -1;
	struct answer a = {.status = -1};
	void *function = NULL;
	char asked[96];

	base_of(name, asked, sizeof(asked));
	if (way >= 2)
		snprintf(asked, sizeof(asked), "%s", name);
	if (way == 4)
		function = dlsym(driver, asked);
	else if (way % 2 == 0)
		a.result = get_v1(asked, &function, version, (cuuint64_t)flags);
	else
		a.result = get_v2(asked, &function, version, (cuuint64_t)flags, &status);
	a.status = (int)status;
	describe(function, &a);
	return a;
}

static uint64_t asked, differ, ours_count;

static void complain(const char *what, const char *name, int version, int flags, int way,
	const struct answer *want, const struct answer *got)
{
	if (differ++ < 20)
		prog_say("{\"error\":\"%s\",\"name\":\"%s\",\"version\":%d,\"flags\":%d,"
			 "\"way\":%d,\"want\":\"%s %d %d\",\"got\":\"%s %d %d "
			 "ours %d\"}",
			what, name, version, flags, way, want->name, want->result,
			want->status, got->name, got->result, got->status, got->ours);
}

static void compare(const char *name, int version, int flags, int way,
	const struct answer *want, const struct answer *got)
{
	if (want->result != got->result || want->status != got->status ||
		strcmp(want->name, got->name) != 0)
		complain("another function", name, version, flags, way, want, got);
	else if (got->ours != is_ours(got->name))
		complain(got->ours ? "ours" : "not ours", name, version, flags, way, want,
			got);
	ours_count += (uint64_t)got->ours;
}

static void one(FILE *file, bool check, void *driver, const char *name, int version,
	int flags, int way)
{
	struct answer got = ask(driver, name, version, flags, way), want = {0};

	asked++;
	if (!check) {
		fprintf(file, "%s %d %d\n", got.name, got.result, got.status);
		return;
	}
	if (fscanf(file, "%95s %d %d", want.name, &want.result, &want.status) != 3) {
		prog_say("{\"error\":\"the file is too short\"}");
		exit(PROG_USAGE);
	}
	compare(name, version, flags, way, &want, &got);
}

int main(int argc, char **argv)
{
	bool check = argc > 2;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	FILE *file = argc > 1 ? fopen(argv[1], check ? "r" : "w") : NULL;

	if (!driver || !file)
		return PROG_USAGE;
	*(void **)&get_v1 = dlsym(driver, "cuGetProcAddress");
	*(void **)&get_v2 = dlsym(driver, "cuGetProcAddress_v2");
	for (size_t i = 0; i < NAMES; i++) {
		for (size_t v = 0; v < VERSIONS; v++)
			for (int flags = 0; flags < 3; flags++)
				for (int way = 0; way < 4; way++)
					one(file, check, driver, names[i], versions[v],
						flags, way);
		one(file, check, driver, names[i], 0, 0, 4);
	}
	fclose(file);
	prog_say("{\"event\":\"end\",\"asked\":%llu,\"ours\":%llu,\"differ\":%llu}",
		(unsigned long long)asked, (unsigned long long)ours_count,
		(unsigned long long)differ);
	return differ ? PROG_WRONG : PROG_OK;
}
