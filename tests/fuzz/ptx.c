/*
 * Any text either becomes C or is refused with a log of one line. Most inputs are put into a
 * kernel: chance alone would never write one.
 */
#include "fuzz.h"

#include "softgpu/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

static const char *const starts[] = {"",
	".version 7.0\n.target sm_80\n.address_size 64\n",
	".version 7.0\n.target sm_80\n.entry k(.param .u64 a)\n{\n.reg .pred "
	"%p<3>;\n.reg .b32 %r<9>;\n"
	".reg .b64 %d<9>;\n",
	".version 7.0\n.target sm_80\n.entry k()\n{\n.reg .b32 %r<9>;\nadd.u32 %r1, ",
	".version 7.0\n.target sm_80\n.global .u32 x[4] = {"};
static const char *const ends[] = {"", "", ";\nret;\n}\n", ";\nret;\n}\n", "};\n"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 600], *c = NULL;
	struct sl_image_log log;
	size_t n;
	CUresult r;

	if (size < 1)
		return 0;
	strcpy(text, starts[data[0] % 5]);
	n = strlen(text);
	size = sl_min_u64(size - 1, TEXT_MAX);
	memcpy(text + n, data + 1, size);
	strcpy(text + n + size, ends[data[0] % 5]);
	r = sl_ptx_translate(text, 12040, &c, &log);
	if ((r == CUDA_SUCCESS) != (c != NULL) || (r != CUDA_SUCCESS && !log.text[0]))
		abort();
	for (const char *at = log.text; *at; at++)
		if (*at < ' ')
			abort();
	free(c);
	return 0;
}
