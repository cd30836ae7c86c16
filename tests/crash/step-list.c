/*
 * step-list - "NAME SIDE PHASE text" of every step, for the script that kills at each
 */
#include <stdio.h>

int main(void)
{
#define SL_STEP(NAME, SIDE, PHASE, text) puts(#NAME " " #SIDE " " #PHASE " " text);
#include "base/steps.def"
#undef SL_STEP
	return 0;
}
