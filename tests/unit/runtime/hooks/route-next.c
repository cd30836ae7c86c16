/*
 * A library in front of another, as profilers are: its dlsym(RTLD_NEXT) must find the one behind
 * it, whether the name is the driver's or not.
 */
#include <dlfcn.h>

int route_answer(void);
int route_next_answer(void);
int cuLaunchGrid(void);
int route_next_grid(void);

int route_answer(void)
{
	return 1;
}

int cuLaunchGrid(void)
{
	return 3;
}

static int next(const char *name)
{
	int (*function)(void) = (int (*)(void))dlsym(RTLD_NEXT, name);

	return function ? function() : 0;
}

int route_next_answer(void)
{
	return next("route_answer");
}

int route_next_grid(void)
{
	return next("cuLaunchGrid");
}
