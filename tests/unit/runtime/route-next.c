/* A library that stands in front of another: its dlsym(RTLD_NEXT) must find what lies behind it. */
#include <dlfcn.h>

int route_answer(void);
int route_next_answer(void);

int route_answer(void)
{
	return 1;
}

int route_next_answer(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "route_answer");

	return next ? next() : 0;
}
