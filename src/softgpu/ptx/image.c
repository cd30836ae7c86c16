/*
 * image - identifies an image by its first bytes; the program's own process reads no more of it
 */
#include "softgpu/ptx/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FATBIN_MAGIC  0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u
#define ELF_MAGIC     0x464c457fu
#define CUBIN_MACHINE 190

void sl_image_log_set(struct sl_image_log *log, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(log->text, sizeof(log->text), format, args);
	va_end(args);
	for (char *c = log->text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
			*c = '?';
}

bool sl_image_is_ptx(const char *image)
{
	while (*image == ' ' || (*image >= '\t' && *image <= '\r'))
		image++;
	return strncmp(image, ".version", 8) == 0 || strncmp(image, "//", 2) == 0 ||
	       strncmp(image, "/*", 2) == 0;
}

CUresult sl_image_refuse(const void *image, struct sl_image_log *log)
{
	uint32_t magic;
	uint16_t machine;

	memcpy(&magic, image, sizeof(magic));
	if (magic == FATBIN_MAGIC || magic == WRAPPER_MAGIC) {
		sl_image_log_set(log,
			"refused: a fatbin holds machine code of GPUs" SL_IMAGE_REMEDY);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (magic != ELF_MAGIC)
		return CUDA_SUCCESS;
	memcpy(&machine, (const char *)image + 18, sizeof(machine));
	if (machine != CUBIN_MACHINE)
		return CUDA_SUCCESS;
	sl_image_log_set(
		log, "refused: a cubin is machine code of a GPU" SL_IMAGE_REMEDY);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
