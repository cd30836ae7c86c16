/*
 * roads - reaches the driver by every road that a loader offers
 *
 *	roads [--total BYTES] [--hold-bytes BYTES] [--hold-ms MS] [--plugins FOLDER] ROAD...
 *
 * A road is a way to find the driver's functions. Each road prints a line: were the reported memory
 * and the limit those of Sluice? The roads run in the given order in one process, so that one may
 * find what another has loaded. Not linked with the driver; a front library (next.c) is linked
 * before everything else. Ends with 1 if a road was not good.
 */
#include "prog.h"
#include "shape.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

void *next_find(const char *symbol);

static struct shape_order order;
static const char *plugins = "";
static void *driver;

static void *by_dlsym(const char *symbol)
{
	return dlsym(driver, symbol);
}

/* The driver's functions have no version, so any version that is asked for finds none. */
static void *by_dlvsym(const char *symbol)
{
	return dlvsym(driver, symbol, "GLIBC_2.2.5");
}

static void *by_default(const char *symbol)
{
	return dlsym(RTLD_DEFAULT, symbol);
}

static bool opened(int flags, const char *name)
{
	driver = dlopen(name, flags);
	if (!driver)
		prog_say("{\"shape\":\"%s\",\"error\":\"%s\"}", order.name, dlerror());
	return driver;
}

static bool now_local(void)
{
	return opened(RTLD_NOW | RTLD_LOCAL, "libcuda.so.1") &&
	       shape_use(by_dlsym, &order);
}

static bool lazy_local(void)
{
	return opened(RTLD_LAZY | RTLD_LOCAL, "libcuda.so.1") &&
	       shape_use(by_dlsym, &order);
}

static bool lazy_global(void)
{
	return opened(RTLD_LAZY | RTLD_GLOBAL, "libcuda.so.1") &&
	       shape_use(by_dlsym, &order);
}

static bool by_path(void)
{
	struct link_map *map = NULL;
	void *named = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	char path[4096];

	if (!named || dlinfo(named, RTLD_DI_LINKMAP, &map) != 0)
		return false;
	snprintf(path, sizeof(path), "%s", map->l_name);
	dlclose(named);
	return path[0] == '/' && opened(RTLD_NOW | RTLD_LOCAL, path) &&
	       shape_use(by_dlsym, &order);
}

static bool by_version(void)
{
	return opened(RTLD_NOW | RTLD_LOCAL, "libcuda.so.1") && !by_dlvsym("cuInit") &&
	       dlerror();
}

static bool by_scope(void)
{
	return opened(RTLD_NOW | RTLD_GLOBAL, "libcuda.so.1") &&
	       shape_use(by_default, &order);
}

/* RTLD_NEXT from a library in front of the driver's. */
static bool by_next(void)
{
	return opened(RTLD_NOW | RTLD_GLOBAL, "libcuda.so.1") &&
	       shape_use(next_find, &order);
}

static bool in_plugin(const char *file, int flags, bool own_namespace)
{
	void *library;
	char path[4096];
	shape_plugin use;

	snprintf(path, sizeof(path), "%s/%s", plugins, file);
	library = own_namespace ? dlmopen(LM_ID_NEWLM, path, flags) : dlopen(path, flags);
	*(void **)&use = library ? dlsym(library, "plugin_use") : NULL;
	if (!use)
		prog_say("{\"shape\":\"%s\",\"error\":\"%s\"}", order.name, dlerror());
	return use && use(&order);
}

static bool plugin_linked(void)
{
	return in_plugin("plugin-linked.so", RTLD_NOW | RTLD_LOCAL, false);
}

static bool plugin_asks(void)
{
	return in_plugin("plugin-asks.so", RTLD_LAZY | RTLD_LOCAL, false);
}

static bool opened_by_plugin(const char *inner, int flags)
{
	__typeof__(int(const char *, int, const struct shape_order *)) *opens;
	char outer[4096];
	void *library;

	snprintf(outer, sizeof(outer), "%s/plugin-asks.so", plugins);
	library = dlopen(outer, RTLD_NOW | RTLD_LOCAL);
	*(void **)&opens = library ? dlsym(library, "plugin_opens") : NULL;
	return opens && opens(inner, flags, &order);
}

static bool plugin_of_plugin(void)
{
	char inner[4096];

	snprintf(inner, sizeof(inner), "%s/plugin-linked.so", plugins);
	return opened_by_plugin(inner, RTLD_NOW | RTLD_LOCAL);
}

/* By its bare name, which only the RUNPATH of the plugin that opens it leads to. */
static bool plugin_deep_runpath(void)
{
	return opened_by_plugin(
		"plugin-linked.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

static bool plugin_deep_linked(void)
{
	return in_plugin(
		"plugin-linked.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, false);
}

static bool plugin_deep_asks(void)
{
	return in_plugin("plugin-asks.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, false);
}

/* The driver alone in a namespace of its own, asked with the program's dlsym. */
static bool namespace_driver(void)
{
	driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!driver)
		prog_say("{\"shape\":\"%s\",\"error\":\"%s\"}", order.name, dlerror());
	return driver && shape_use(by_dlsym, &order);
}

static bool namespace_linked(void)
{
	return in_plugin("plugin-linked.so", RTLD_NOW | RTLD_LOCAL, true);
}

static bool namespace_asks(void)
{
	return in_plugin("plugin-asks.so", RTLD_NOW | RTLD_LOCAL, true);
}

static const struct road {
	const char *name;
	bool (*take)(void);
} roads[] = {
	{"dlopen-now-local", now_local},
	{"dlopen-lazy-local", lazy_local},
	{"dlopen-lazy-global", lazy_global},
	{"dlopen-path", by_path},
	{"dlvsym", by_version},
	{"default", by_scope},
	{"next", by_next},
	{"plugin-linked", plugin_linked},
	{"plugin-asks", plugin_asks},
	{"plugin-of-plugin", plugin_of_plugin},
	{"deep-linked", plugin_deep_linked},
	{"deep-asks", plugin_deep_asks},
	{"deep-runpath", plugin_deep_runpath},
	{"namespace-driver", namespace_driver},
	{"namespace-linked", namespace_linked},
	{"namespace-asks", namespace_asks},
};

static bool take(const char *name)
{
	for (size_t i = 0; i < sizeof(roads) / sizeof(roads[0]); i++) {
		if (!strcmp(roads[i].name, name)) {
			order.name = name;
			return roads[i].take();
		}
	}
	fprintf(stderr, "roads: no road is called %s\n", name);
	exit(PROG_USAGE);
}

int main(int argc, char **argv)
{
	const struct prog_option options[] = {
		{"total", PROG_SIZE, &order.total_bytes, "what the figures must say"},
		{"hold-bytes", PROG_SIZE, &order.hold_bytes, "memory to hold"},
		{"hold-ms", PROG_NUMBER, &order.hold_ms, "for so long"},
		{"plugins", PROG_TEXT, &plugins, "where the plugins lie"},
	};
	int at = prog_options(argc, argv, "Takes roads to the driver.", options,
		sizeof(options) / sizeof(options[0]));
	bool good = at < argc;

	for (; at < argc; at++)
		good &= take(argv[at]);
	return good ? PROG_OK : PROG_WRONG;
}
