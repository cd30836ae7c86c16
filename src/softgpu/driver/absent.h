/*
 * absent - the functions of the driver that the software GPU does not model
 *
 * Every name of base/cuda_names.def is exported. A name that no other file defines has a weak
 * definition here, which reports itself once on stderr and answers CUDA_ERROR_NOT_SUPPORTED.
 * cuGetProcAddress searches the table of all names, modelled or not (lookup.c).
 *
 * Included by absent.c, which must not see the prototypes of the driver: keep those out of here.
 */
#ifndef SL_SOFTGPU_DRIVER_ABSENT_H
#define SL_SOFTGPU_DRIVER_ABSENT_H

#include "base/sl.h"

struct sl_absent_row {
	const char *name;
	int since; /* first driver version that has it */
	void *fn;
};

/* Sorted by name; never changes. */
extern const struct sl_absent_row sl_absent_rows[];
extern const size_t sl_absent_count;

/* init.c: what a call must answer in the present state of the driver; CUDA_SUCCESS: go on. */
int sl_absent_state(void);

#endif
