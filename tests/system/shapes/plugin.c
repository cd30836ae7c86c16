/*
 * plugin - a library that uses the GPU on its own, for programs that load it in various ways
 *
 * Built twice: linked with the driver (PLUGIN_LINKED), and looking the driver up by name, with the
 * dlsym that its own scope has. plugin_opens loads another plugin, as frameworks do.
 */
#include "shape.h"

#include <dlfcn.h>
#include <string.h>

int plugin_use(const struct shape_order *order);
int plugin_opens(const char *path, int flags, const struct shape_order *order);

#ifdef PLUGIN_LINKED
static void *find(const char *symbol)
{
#define F(name)                     \
	if (!strcmp(symbol, #name)) \
		return (void *)name;
	SHAPE_FUNCTIONS(F)
#undef F
	return NULL;
}
#else
static void *find(const char *symbol)
{
	static void *driver;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return driver ? dlsym(driver, symbol) : NULL;
}
#endif

int plugin_use(const struct shape_order *order)
{
	return shape_use(find, order);
}

int plugin_opens(const char *path, int flags, const struct shape_order *order)
{
	void *other = dlopen(path, flags);
	shape_plugin use;

	*(void **)&use = other ? dlsym(other, "plugin_use") : NULL;
	if (!use)
		dprintf(1, "{\"error\":\"%s\"}\n", dlerror());
	return use && use(order);
}
