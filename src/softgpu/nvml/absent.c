/*
 * absent - the names of NVML that nothing stands behind
 *
 * A program may look any of them up and call it; a real GPU answers many of them with "not
 * supported", and so do these. None touches its arguments, so one function with no parameters
 * stands for all shapes (the caller cleans up after its own arguments on this platform).
 */
#include "softgpu/nvml/nvml.h"

#define SL_NVML_ABSENT(name)                     \
	SL_NVML_EXPORT nvmlReturn_t name(void);  \
	nvmlReturn_t name(void)                  \
	{                                        \
		NEED_READY;                      \
		return NVML_ERROR_NOT_SUPPORTED; \
	}
#include "softgpu/nvml/absent.def"
#undef SL_NVML_ABSENT
