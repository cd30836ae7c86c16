/*
 * image - what a module's image is by its first bytes, and how C text becomes one
 *
 * This much of an image the program's own process looks at. No locks; any thread may call.
 */
#ifndef SL_SOFTGPU_PTX_IMAGE_H
#define SL_SOFTGPU_PTX_IMAGE_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define SL_IMAGE_LOG_MAX 1024
/* Behind each refusal: what is taken instead. */
#define SL_IMAGE_REMEDY "; the software GPU takes PTX of open compilers, and host modules"

/* What a program finds in its error log: one line, which names the place and the thing. */
struct sl_image_log {
	char text[SL_IMAGE_LOG_MAX];
};

/* Sets the text; control characters become '?'. */
void sl_image_log_set(struct sl_image_log *log, const char *format, ...) SL_PRINTF(2, 3);
/* Does PTX begin here, behind white space? Stops at the first byte that says no. */
bool sl_image_is_ptx(const char *image);
/* Refuses cubins and fatbins by name; CUDA_SUCCESS for everything else. Reads 20 bytes. */
SL_MUST_CHECK CUresult sl_image_refuse(const void *image, struct sl_image_log *log);
/* hostcc.c: a descriptor of the shared object made from C text, by the system's compiler or from
 * the user's cache, the caller's; -1 on failure. Called by the companion, never by the program
 * itself, which has no children that it did not start. */
SL_MUST_CHECK CUresult sl_hostcc(const char *c, int *fd, struct sl_image_log *log);

#endif
