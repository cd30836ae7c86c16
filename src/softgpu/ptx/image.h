/*
 * image - identifies a module's image by its first bytes, and compiles C text
 *
 * The program's own process reads no more of an image than this. No locks; any thread may call.
 */
#ifndef SL_SOFTGPU_PTX_IMAGE_H
#define SL_SOFTGPU_PTX_IMAGE_H

#include "base/cuda_types.h"
#include "base/sl.h"

#define SL_IMAGE_LOG_MAX 1024
/* Follows each refusal: what is accepted instead. */
#define SL_IMAGE_REMEDY "; the software GPU takes PTX of open compilers, and host modules"

/* Text for the program's error log: one line with the place and the fault. */
struct sl_image_log {
	char text[SL_IMAGE_LOG_MAX];
};

/* Sets the text; control characters become '?'. */
void sl_image_log_set(struct sl_image_log *log, const char *format, ...) SL_PRINTF(2, 3);
/* Does PTX begin here, after white space? Stops at the first byte that excludes it. */
bool sl_image_is_ptx(const char *image);
/* Refuses cubins and fatbins by name; CUDA_SUCCESS for everything else. Reads 20 bytes. */
SL_MUST_CHECK CUresult sl_image_refuse(const void *image, struct sl_image_log *log);
/* hostcc.c: a descriptor, the caller's, of the shared object made from C text by the system's
 * compiler, or from the user's cache; -1 on failure. Only the companion calls it: the program
 * itself must not get children that it did not start. */
SL_MUST_CHECK CUresult sl_hostcc(const char *c, int *fd, struct sl_image_log *log);

#endif
