/*
 * absent - the functions of the driver that the software GPU does not model
 *
 * Any real definition in the library replaces a weak one here, so the linker decides which names
 * are modelled, without a list. None reads its arguments, of any type, which the calling
 * conventions of x86-64 and aarch64 allow. See absent.h.
 */
#include "softgpu/driver/absent.h"

#include "base/cuda_types.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum name_id {
#define SL_CUDA_NAME(name, since) N_##name,
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
	N_COUNT
};

static _Atomic bool told[N_COUNT];

/*
 * Calls with the 32-bit sizes of CUDA before 3.2 need contexts of that version's cuCtxCreate, which
 * no program has any more.
 */
static bool is_of_32_bits(enum name_id id)
{
	const char *name = sl_absent_rows[id].name;
	size_t n = strlen(name);

	for (size_t i = id + 1; i < N_COUNT; i++) {
		const struct sl_absent_row *row = &sl_absent_rows[i];

		if (strncmp(row->name, name, n) != 0)
			return false;
		if (!strcmp(row->name + n, "_v2"))
			return row->since == 3020 && !strstr(name, "CtxCreate");
	}
	return false;
}

static int answer(enum name_id id)
{
	int r = sl_absent_state();

	if (r != CUDA_SUCCESS)
		return r;
	if (is_of_32_bits(id))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!atomic_exchange(&told[id], true))
		fprintf(stderr,
			"sluice software GPU: %s is not modelled: "
			"CUDA_ERROR_NOT_SUPPORTED\n",
			sl_absent_rows[id].name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define SL_CUDA_NAME(name, since)                                    \
	__attribute__((weak, visibility("default"))) int name(void); \
	int name(void)                                               \
	{                                                            \
		return answer(N_##name);                             \
	}
#include "base/cuda_names.def"
#undef SL_CUDA_NAME

const struct sl_absent_row sl_absent_rows[] = {
#define SL_CUDA_NAME(name, since) {#name, since, (void *)name},
#include "base/cuda_names.def"
#undef SL_CUDA_NAME
};
const size_t sl_absent_count = N_COUNT;
