/*
 * ptx - text of open compilers made into host modules
 *
 * PTX becomes C, and C a shared object by the system's compiler, kept in the user's cache. Both are
 * done by the companion, never by the program itself: it has no children that it did not start, and
 * looks at a text's first bytes only. Text that NVIDIA's compilers made, functions of libdevice,
 * cubins and fatbins are refused by name. No locks; any thread may call.
 */
#ifndef SL_SOFTGPU_PTX_H
#define SL_SOFTGPU_PTX_H

#include "softgpu/ptx/image.h"

#define SL_PTX_TEXT_MAX (16 * SL_MIB)
/* The C text (caller frees). driver_version as cuDriverGetVersion gives it: newer text is refused.
 * On failure *c is NULL, and the result is what cuModuleLoadData answers. */
SL_MUST_CHECK CUresult sl_ptx_translate(
	const char *text, int driver_version, char **c, struct sl_image_log *log);
#endif
