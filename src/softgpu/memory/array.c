/*
 * array - entry points of arrays and mipmapped arrays
 *
 * The memory of an array comes from the space, like cuMemAlloc's: large arrays have grains of the
 * GPU of their own, small ones share slabs. Its size is padded to tiles of 64 bytes by 8 rows, as
 * on a real GPU; the texels themselves have no gaps (array.h). An array with deferred mapping has
 * no memory until a handle is mapped into it (array_map.c). Sparse arrays are not supported, as the
 * device's attributes say.
 */
#include "softgpu/memory/array.h"
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/memory/external.h"

#include <stdlib.h>

#define TILE_BYTES  64u /* width of a tile */
#define TILE_ROWS   8u
#define SIDE_MAX    131072u
#define SIDE_3D_MAX 16384u
#define LAYERS_MAX  2048u
#define KNOWN_FLAGS 0x1ffu

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link arrays = SL_LIST_INIT(arrays);   /* not of a mipmap */
static struct sl_link mipmaps = SL_LIST_INIT(mipmaps); /* both under the lock */

/* Descriptions -------------------------------------------------------------------------------- */

unsigned int sl_array_format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4;
	default: return 0;
	}
}

static bool layers_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return d->Width == d->Height && d->Depth &&
		       (layered ? d->Depth % 6 == 0 : d->Depth == 6);
	if (layered)
		return d->Depth && d->Depth <= LAYERS_MAX;
	/* A depth needs a height. */
	return !d->Depth || d->Height;
}

static bool desc_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool is_volume =
		d->Depth && !(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
	size_t side = is_volume ? SIDE_3D_MAX : SIDE_MAX;

	if (!sl_array_format_bytes(d->Format) ||
		(d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
		return false;
	if (!d->Width || d->Width > side || d->Height > side || d->Depth > SIDE_3D_MAX ||
		d->Flags & ~KNOWN_FLAGS)
		return false;
	if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (!d->Height || is_volume))
		return false;
	return layers_ok(d);
}

struct sl_array_shape sl_array_shape(const struct CUarray_st *a)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &a->desc;

	return (struct sl_array_shape){d->Width * a->element_bytes,
		d->Height ? d->Height : 1, d->Depth ? d->Depth : 1};
}

uint64_t sl_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	uint64_t row = d->Width * sl_array_format_bytes(d->Format) * d->NumChannels;
	uint64_t rows = d->Height ? sl_round_up(d->Height, TILE_ROWS) : 1;

	return sl_round_up(row, TILE_BYTES) * rows * (d->Depth ? d->Depth : 1);
}

/* Life ---------------------------------------------------------------------------------------- */

CUarray sl_array_of(CUarray handle)
{
	return sl_object_is(handle, SL_MAGIC_ARRAY) ? handle : NULL;
}

static CUarray array_new(CUcontext ctx, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	CUarray a = sl_object_new(SL_MAGIC_ARRAY, sizeof(*a));

	if (a) {
		a->ctx = ctx;
		a->desc = *d;
		a->element_bytes = sl_array_format_bytes(d->Format) * d->NumChannels;
	}
	return a;
}

static void object_drop(void *object)
{
	if (object && sl_object_kill(object))
		sl_object_unref(object);
}

static void list_add(struct sl_link *list, struct sl_object *o)
{
	pthread_mutex_lock(&lock);
	sl_list_push_tail(list, &o->link);
	pthread_mutex_unlock(&lock);
}

/* Removes the handle from the list: true for the one caller that did. */
static bool list_take(struct sl_object *o)
{
	bool mine;

	pthread_mutex_lock(&lock);
	mine = sl_object_kill(o);
	if (mine)
		sl_list_unlink(&o->link);
	pthread_mutex_unlock(&lock);
	return mine;
}

static CUresult back(CUcontext ctx, const CUDA_ARRAY3D_DESCRIPTOR *d, uint64_t bytes,
	uint64_t *address)
{
	CUdeviceptr at = 0;
	CUresult r = CUDA_SUCCESS;

	if (!(d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		r = sl_space_alloc(ctx, bytes, SL_BLOCK_ARRAY, &at);
	*address = at;
	return r;
}

/* Also for memory mapped into it, which stays the program's. */
static void unback(const CUDA_ARRAY3D_DESCRIPTOR *d, uint64_t address)
{
	if (!address)
		return;
	if (d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
		sl_space_array_unmap(address);
	else
		(void)!sl_space_free_array(address);
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	CUcontext ctx = sl_ctx_current();
	CUarray a;
	CUresult r;

	if (!out || !d || !desc_ok(d))
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & CUDA_ARRAY3D_SPARSE)
		return CUDA_ERROR_NOT_SUPPORTED;
	a = array_new(ctx, d);
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = back(ctx, d, sl_array_bytes(d), &a->address);
	if (r != CUDA_SUCCESS) {
		object_drop(a);
		return r;
	}
	list_add(&arrays, &a->o);
	*out = a;
	return r;
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	SL_ENTER(cuArrayCreate_v2);
	CHECK_OUT(desc);
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels};
	return create(array, &d);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	SL_ENTER(cuArray3DCreate_v2);
	return create(array, desc);
}

/* Waits for the context's work, as cuMemFree does. */
CUresult cuArrayDestroy(CUarray array)
{
	CUresult r;

	SL_ENTER(cuArrayDestroy);
	if (!sl_array_of(array) || array->of)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sl_ctx_sync(array->ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!list_take(&array->o))
		return CUDA_ERROR_INVALID_HANDLE;
	unback(&array->desc, array->address);
	sl_object_unref(array);
	return r;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	SL_ENTER(cuArrayGetDescriptor_v2);
	CHECK_OUT(desc);
	if (!sl_array_of(array))
		return CUDA_ERROR_INVALID_HANDLE;
	*desc = (CUDA_ARRAY_DESCRIPTOR){array->desc.Width, array->desc.Height,
		array->desc.Format, array->desc.NumChannels};
	return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	SL_ENTER(cuArray3DGetDescriptor_v2);
	CHECK_OUT(desc);
	if (!sl_array_of(array))
		return CUDA_ERROR_INVALID_HANDLE;
	*desc = array->desc;
	return CUDA_SUCCESS;
}

/* Mipmapped arrays ---------------------------------------------------------------------------- */

static size_t halved(size_t side, unsigned int level)
{
	return side ? sl_max_u64(side >> level, 1) : 0;
}

static CUDA_ARRAY3D_DESCRIPTOR level_desc(
	const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR l = *d;

	l.Width = halved(d->Width, level);
	l.Height = halved(d->Height, level);
	/* Layers and faces keep their number. */
	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		l.Depth = halved(d->Depth, level);
	return l;
}

/* Down to a level of one texel: 1 + floor(log2(longest side)). */
static unsigned int levels_of(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int wanted)
{
	size_t side = sl_max_u64(d->Width, d->Height);
	unsigned int most = 1;

	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		side = sl_max_u64(side, d->Depth);
	while (side >>= 1)
		most++;
	return wanted < 1 ? 1 : wanted > most ? most : wanted;
}

static void mipmap_free(CUmipmappedArray m)
{
	for (unsigned int i = 0; i < m->count; i++)
		object_drop(m->level[i]);
	sl_object_unref(m);
}

void sl_mipmap_place(CUmipmappedArray m, uint64_t address)
{
	m->address = address;
	for (unsigned int i = 0; i < m->count; i++) {
		m->level[i]->address = address;
		if (address)
			address += sl_round_up(sl_array_bytes(&m->level[i]->desc), 512);
	}
}

/* The levels' descriptions; false: no memory. */
static bool levels_new(CUmipmappedArray m)
{
	for (unsigned int i = 0; i < m->count; i++) {
		CUDA_ARRAY3D_DESCRIPTOR d = level_desc(&m->desc, i);

		m->level[i] = array_new(m->ctx, &d);
		if (!m->level[i])
			return false;
		m->level[i]->of = m;
	}
	sl_mipmap_place(m, m->address);
	return true;
}

uint64_t sl_mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int count)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		CUDA_ARRAY3D_DESCRIPTOR l = level_desc(d, i);

		bytes += sl_round_up(sl_array_bytes(&l), 512);
	}
	return bytes;
}

CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	CUmipmappedArray m;
	CUresult r;

	SL_ENTER(cuMipmappedArrayCreate);
	if (!array || !desc || !desc_ok(desc))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & CUDA_ARRAY3D_SPARSE)
		return CUDA_ERROR_NOT_SUPPORTED;
	m = sl_object_new(SL_MAGIC_MIPMAP, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->ctx = sl_ctx_current();
	m->desc = *desc;
	m->count = levels_of(desc, levels);
	r = back(m->ctx, desc, sl_mipmap_bytes(desc, m->count), &m->address);
	if (r == CUDA_SUCCESS && !levels_new(m)) {
		unback(desc, m->address);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		sl_object_kill(m);
		mipmap_free(m);
		return r;
	}
	list_add(&mipmaps, &m->o);
	*array = m;
	return r;
}

CUresult sl_mipmap_over(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels,
	uint64_t address, uint64_t room, CUmipmappedArray *out)
{
	CUmipmappedArray m;

	if (!desc_ok(desc) || !levels || levels != levels_of(desc, levels) ||
		sl_mipmap_bytes(desc, levels) > room)
		return CUDA_ERROR_INVALID_VALUE;
	m = sl_object_new(SL_MAGIC_MIPMAP, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->ctx = sl_ctx_current();
	m->desc = *desc;
	m->count = levels;
	m->address = address;
	m->is_external = true;
	if (!levels_new(m)) {
		sl_object_kill(m);
		mipmap_free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	list_add(&mipmaps, &m->o);
	*out = m;
	return CUDA_SUCCESS;
}

bool sl_mipmap_is(CUmipmappedArray m)
{
	return sl_object_is(m, SL_MAGIC_MIPMAP);
}

CUresult cuMipmappedArrayGetLevel(
	CUarray *level_array, CUmipmappedArray array, unsigned int level)
{
	SL_ENTER(cuMipmappedArrayGetLevel);
	CHECK_OUT(level_array);
	if (!sl_mipmap_is(array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (level >= array->count)
		return CUDA_ERROR_INVALID_VALUE;
	*level_array = array->level[level];
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	CUresult r;

	SL_ENTER(cuMipmappedArrayDestroy);
	if (!sl_mipmap_is(array))
		return CUDA_ERROR_INVALID_HANDLE;
	r = sl_ctx_sync(array->ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!list_take(&array->o))
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->is_external)
		(void)!sl_external_free(array->ctx, array->address);
	else
		unback(&array->desc, array->address);
	mipmap_free(array);
	return r;
}

/* The space frees a context's blocks itself. */
void sl_array_drop_context(CUcontext ctx)
{
	sl_texture_drop_context(ctx);
	pthread_mutex_lock(&lock);
	for (struct sl_link *link = arrays.next, *after; link != &arrays; link = after) {
		CUarray a = SL_LIST_ENTRY(link, struct CUarray_st, o.link);

		after = link->next;
		if (a->ctx == ctx && sl_object_kill(a)) {
			sl_list_unlink(link);
			if (a->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
				unback(&a->desc, a->address);
			sl_object_unref(a);
		}
	}
	for (struct sl_link *link = mipmaps.next, *after; link != &mipmaps;
		link = after) {
		CUmipmappedArray m =
			SL_LIST_ENTRY(link, struct CUmipmappedArray_st, o.link);

		after = link->next;
		if (m->ctx == ctx && sl_object_kill(m)) {
			sl_list_unlink(link);
			if (m->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
				unback(&m->desc, m->address);
			mipmap_free(m);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Properties ----------------------------------------------------------------------------------- */

/* Only arrays with deferred mapping have any. */
static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUdevice dev,
	const CUDA_ARRAY3D_DESCRIPTOR *d, uint64_t bytes)
{
	CHECK_OUT(out);
	CHECK_DEVICE(dev);
	if (!(d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = sl_round_up(bytes, SL_ARRAY_TILE), .alignment = SL_ARRAY_TILE};
	return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice dev)
{
	SL_ENTER(cuArrayGetMemoryRequirements);
	if (!sl_array_of(array))
		return CUDA_ERROR_INVALID_HANDLE;
	return requirements(out, dev, &array->desc, sl_array_bytes(&array->desc));
}

CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray array, CUdevice dev)
{
	SL_ENTER(cuMipmappedArrayGetMemoryRequirements);
	if (!sl_mipmap_is(array))
		return CUDA_ERROR_INVALID_HANDLE;
	return requirements(
		out, dev, &array->desc, sl_mipmap_bytes(&array->desc, array->count));
}

CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray array)
{
	SL_ENTER(cuArrayGetSparseProperties);
	CHECK_OUT(properties);
	return sl_array_of(array) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUmipmappedArray array)
{
	SL_ENTER(cuMipmappedArrayGetSparseProperties);
	CHECK_OUT(properties);
	return sl_mipmap_is(array) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

/* Arrays here have no planes. */
CUresult cuArrayGetPlane(CUarray *plane, CUarray array, unsigned int index)
{
	SL_ENTER(cuArrayGetPlane);
	(void)index;
	CHECK_OUT(plane);
	return sl_array_of(array) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}
