/* The library behind route-next. */
int route_answer(void);
int route_behind(void);
int cuLaunchGrid(void);

int cuLaunchGrid(void)
{
	return 4;
}

int route_answer(void)
{
	return 2;
}

/* Called by the program, or the linker would leave this library out. */
int route_behind(void)
{
	return 2;
}
