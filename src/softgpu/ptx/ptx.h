/*
 * ptx - turns text of open compilers into host modules
 *
 * PTX becomes C, and the system's compiler turns C into a shared object, kept in the user's cache.
 * The companion does both. The program itself reads only the first bytes of a text and gets no
 * children that it did not start. Text of NVIDIA's compilers, functions of libdevice, cubins and
 * fatbins are recognised and refused. No locks; any thread may call.
 */
#ifndef SL_SOFTGPU_PTX_H
#define SL_SOFTGPU_PTX_H

#include "softgpu/ptx/image.h"

#define SL_PTX_TEXT_MAX (16 * SL_MIB)
/* The C text (caller frees). driver_version as cuDriverGetVersion returns it: newer text is
 * refused. On failure *c is NULL, and the result is cuModuleLoadData's answer. */
SL_MUST_CHECK CUresult sl_ptx_translate(
	const char *text, int driver_version, char **c, struct sl_image_log *log);
#endif
