/*
 * array - arrays and mipmapped arrays: asked for, charged, passed through
 *
 * The driver reports an array's size only before the array has memory (deferred mapping). So we
 * compute the size, in the tiles of 64 bytes by 8 rows that GPUs have long used. What the driver
 * takes beyond that is measured as hidden. Sparse and deferred arrays take no memory themselves;
 * the handles mapped into them are charged where they are made.
 */
#include "runtime/driver/charge.h"
#include "runtime/gate/door.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

#define TILE_BYTES 64u
#define TILE_ROWS  8u
#define UNBACKED   (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
#define LAYERS     (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)
/* No GPU allows longer sides or more layers: the driver rejects such an array as invalid. If a GPU
 * allows it after all, the array is not charged but measured as hidden. */
#define SIDE_MAX   131072u
#define VOLUME_MAX 16384u
#define LAYERS_MAX 2048u

/* As programs built before CUDA 3.2 describe an array. */
struct CUDA_ARRAY_DESCRIPTOR_v1_st {
	unsigned int width, height;
	CUarray_format format;
	unsigned int channels;
};
struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
	unsigned int width, height, depth;
	CUarray_format format;
	unsigned int channels, flags;
};

/* Bits per texel of the formats from first to last: of one channel, or of all (whole). */
static const struct {
	unsigned char first, last, bits;
	bool whole;
} formats[] = {
	{0x01, 0x01, 8, false}, /* integers, half, float */
	{0x02, 0x02, 16, false},
	{0x03, 0x03, 32, false},
	{0x08, 0x08, 8, false},
	{0x09, 0x09, 16, false},
	{0x0a, 0x0a, 32, false},
	{0x10, 0x10, 16, false},
	{0x20, 0x20, 32, false},
	{0x50, 0x50, 32, true}, /* 10:10:10:2 */
	{0x51, 0x51, 16, true}, /* packed, semi-planar and planar video */
	{0x52, 0x52, 32, true},
	{0x53, 0x53, 12, true},
	{0x54, 0x54, 24, true},
	{0x55, 0x55, 16, true},
	{0x56, 0x56, 32, true},
	{0x57, 0x57, 24, true},
	{0x58, 0x58, 48, true},
	{0x59, 0x59, 12, true},
	{0x5a, 0x5a, 24, true},
	{0x5b, 0x5b, 16, true},
	{0x5c, 0x5c, 32, true},
	{0x5d, 0x5d, 24, true},
	{0x5e, 0x5e, 48, true},
	{0x91, 0x92, 4, true}, /* block-compressed */
	{0x93, 0x96, 8, true},
	{0x97, 0x98, 4, true},
	{0x99, 0x9e, 8, true},
	{0x9f, 0xa1, 24, true}, /* 4:2:0 of 10 and 16 bits */
	{0xa2, 0xa2, 16, true},
	{0xa3, 0xa4, 32, true},
	{0xa5, 0xa5, 16, true},
	{0xa6, 0xa9, 32, true},
	{0xb0, 0xb0, 12, true}, /* NV12 */
	{0xb1, 0xb1, 64, true},
	{0xb2, 0xb2, 24, true},
	{0xb3, 0xb3, 48, true},
	{0xb4, 0xb4, 24, true},
	{0xb5, 0xb5, 48, true},
	{0xc0, 0xc0, 8, true}, /* normalised */
	{0xc1, 0xc1, 16, true},
	{0xc2, 0xc2, 32, true},
	{0xc3, 0xc3, 16, true},
	{0xc4, 0xc4, 32, true},
	{0xc5, 0xc5, 64, true},
	{0xc6, 0xc6, 8, true},
	{0xc7, 0xc7, 16, true},
	{0xc8, 0xc8, 32, true},
	{0xc9, 0xc9, 16, true},
	{0xca, 0xca, 32, true},
	{0xcb, 0xcb, 64, true},
};

/* 0: not a known format. */
static uint64_t texel_bits(CUarray_format format, unsigned int channels)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(formats); i++) {
		if ((unsigned int)format >= formats[i].first &&
			(unsigned int)format <= formats[i].last)
			return formats[i].whole ? formats[i].bits
						: (uint64_t)formats[i].bits * channels;
	}
	return 0;
}

static uint64_t level_bytes(
	uint64_t width, uint64_t height, uint64_t depth, uint64_t bits)
{
	uint64_t row = sl_round_up((width * bits + 7) / 8, TILE_BYTES);

	return row * (height > 1 ? sl_round_up(height, TILE_ROWS) : 1) * depth;
}

static uint64_t half(uint64_t side)
{
	return side > 1 ? side / 2 : side;
}

static bool is_possible(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	bool has_layers = desc->Flags & LAYERS;
	size_t side_max = desc->Depth && !has_layers ? VOLUME_MAX : SIDE_MAX;

	if (desc->NumChannels == 0 || desc->NumChannels > 4 || desc->Width == 0)
		return false;
	return desc->Width <= side_max && desc->Height <= side_max &&
	       desc->Depth <= (has_layers ? LAYERS_MAX : VOLUME_MAX) &&
	       (desc->Height || !desc->Depth || has_layers);
}

/* The GPU bytes of an array; 0 if it takes none, or if the driver must report an invalid
 * description. */
static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	uint64_t width = desc->Width, height = desc->Height,
		 depth = desc->Depth ? desc->Depth : 1;
	uint64_t bits = texel_bits(desc->Format, desc->NumChannels), bytes = 0;

	if ((desc->Flags & UNBACKED) || !bits || !is_possible(desc))
		return 0;
	for (unsigned int i = 0; i < levels; i++) {
		bytes += level_bytes(width, height, depth, bits);
		/* The driver makes no levels beyond one texel. */
		if (width <= 1 && height <= 1 && (depth <= 1 || (desc->Flags & LAYERS)))
			break;
		width = half(width);
		height = half(height);
		if (!(desc->Flags & LAYERS))
			depth = half(depth);
	}
	return bytes;
}

/* `call` makes an array described by desc and puts its handle into *array. */
#define MAKE(desc, levels, call)                                                     \
	do {                                                                         \
		uint64_t bytes_ = array ? bytes_of(desc, levels) : 0;                \
		struct sl_passed passed_;                                            \
		CUresult result_ = CUDA_SUCCESS;                                     \
                                                                                     \
		SL_PASSED_CALL(&passed_, result_, SL_PASSED_CURRENT, bytes_,         \
			SL_PASSED_HELD, call);                                       \
		if (result_ == CUDA_SUCCESS)                                         \
			sl_charge_put(&passed_, SL_OBJECT_ARRAY, (uintptr_t)*array); \
		return sl_measure_after(result_);                                    \
	} while (0)

static const CUDA_ARRAY3D_DESCRIPTOR nothing;

static CUDA_ARRAY3D_DESCRIPTOR flat(const CUDA_ARRAY_DESCRIPTOR *desc)
{
	return desc ? (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->Width,
			      .Height = desc->Height,
			      .Format = desc->Format,
			      .NumChannels = desc->NumChannels}
		    : nothing;
}

SL_EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	SL_DOOR;
	CUDA_ARRAY3D_DESCRIPTOR full = flat(desc);

	MAKE(&full, 1, sl_real.cuArrayCreate_v2(array, desc));
}

SL_EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	SL_DOOR;
	MAKE(desc ? desc : &nothing, 1, sl_real.cuArray3DCreate_v2(array, desc));
}

SL_EXPORT CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	SL_DOOR;
	MAKE(desc ? desc : &nothing, levels,
		sl_real.cuMipmappedArrayCreate(array, desc, levels));
}

SL_EXPORT CUresult cuArrayCreate(
	CUarray *array, const struct CUDA_ARRAY_DESCRIPTOR_v1_st *desc)
{
	SL_DOOR;
	CUDA_ARRAY3D_DESCRIPTOR full = nothing;

	if (desc)
		full = (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->width,
			.Height = desc->height,
			.Format = desc->format,
			.NumChannels = desc->channels};
	MAKE(&full, 1, sl_real.cuArrayCreate(array, desc));
}

SL_EXPORT CUresult cuArray3DCreate(
	CUarray *array, const struct CUDA_ARRAY3D_DESCRIPTOR_v1_st *desc)
{
	SL_DOOR;
	CUDA_ARRAY3D_DESCRIPTOR full = nothing;

	if (desc)
		full = (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->width,
			.Height = desc->height,
			.Depth = desc->depth,
			.Format = desc->format,
			.NumChannels = desc->channels,
			.Flags = desc->flags};
	MAKE(&full, 1, sl_real.cuArray3DCreate(array, desc));
}

SL_EXPORT CUresult cuArrayDestroy(CUarray array)
{
	SL_DOOR;
	return SL_CHARGE_END(
		SL_OBJECT_ARRAY, (uintptr_t)array, sl_real.cuArrayDestroy(array));
}

SL_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	SL_DOOR;
	return SL_CHARGE_END(SL_OBJECT_ARRAY, (uintptr_t)array,
		sl_real.cuMipmappedArrayDestroy(array));
}
