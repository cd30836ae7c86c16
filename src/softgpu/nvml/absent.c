/*
 * absent - the names of NVML that are not modelled
 *
 * A program may look up and call any of them. A real GPU answers many with "not supported", and so
 * do these. None reads its arguments, so one function without parameters serves all prototypes
 * (callers clean up their own arguments on this platform).
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
