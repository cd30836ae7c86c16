/*
 * texture - texture and surface objects
 *
 * Kernels here cannot read textures, so an object is only its description: checked, stored and
 * returned. Its resource need not outlive it, as with the real driver.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/memory/array.h"

#define SL_MAGIC_TEXTURE 0x54455830u
#define SL_MAGIC_SURFACE 0x53524630u
#define ALIGNMENT        512u /* of memory a texture is laid over, as the attributes say */
#define PITCH_ALIGNMENT  32u
#define KNOWN_FLAGS      0x73u

/* Both kinds; a surface has a resource only. */
struct object {
	struct sl_object o; /* o.link: in the list of all */
	CUcontext ctx;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link objects = SL_LIST_INIT(objects);

static struct object *object_of(unsigned long long handle, uint32_t magic)
{
	struct object *t = (struct object *)(uintptr_t)handle;

	return sl_object_is(t, magic) ? t : NULL;
}

/* Texels that lie in plain memory. */
static bool memory_ok(
	CUdeviceptr at, CUarray_format format, unsigned int channels, size_t bytes)
{
	return sl_array_format_bytes(format) && at % ALIGNMENT == 0 && bytes &&
	       (channels == 1 || channels == 2 || channels == 4) &&
	       sl_space_place(at, bytes, NULL) != SL_PLACE_NOWHERE &&
	       sl_space_place(at, bytes, NULL) != SL_PLACE_PAGEABLE;
}

static bool pitch_ok(const CUDA_RESOURCE_DESC *r)
{
	size_t row = r->res.pitch2D.width * r->res.pitch2D.numChannels *
		     sl_array_format_bytes(r->res.pitch2D.format);
	size_t bytes;

	return r->res.pitch2D.width && r->res.pitch2D.height &&
	       r->res.pitch2D.pitchInBytes >= row &&
	       r->res.pitch2D.pitchInBytes % PITCH_ALIGNMENT == 0 &&
	       !__builtin_mul_overflow(
		       r->res.pitch2D.height - 1, r->res.pitch2D.pitchInBytes, &bytes) &&
	       !__builtin_add_overflow(bytes, row, &bytes) &&
	       memory_ok(r->res.pitch2D.devPtr, r->res.pitch2D.format,
		       r->res.pitch2D.numChannels, bytes);
}

static bool resource_ok(const CUDA_RESOURCE_DESC *r)
{
	if (r->flags)
		return false;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY: return sl_array_of(r->res.array.hArray);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return sl_mipmap_is(r->res.mipmap.hMipmappedArray);
	case CU_RESOURCE_TYPE_LINEAR:
		return memory_ok(r->res.linear.devPtr, r->res.linear.format,
			r->res.linear.numChannels, r->res.linear.sizeInBytes);
	case CU_RESOURCE_TYPE_PITCH2D: return pitch_ok(r);
	default: return false;
	}
}

static bool texture_ok(const CUDA_TEXTURE_DESC *t)
{
	for (unsigned i = 0; i < 3; i++)
		if ((unsigned)t->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return false;
	return (unsigned)t->filterMode <= CU_TR_FILTER_MODE_LINEAR &&
	       (unsigned)t->mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR &&
	       !(t->flags & ~KNOWN_FLAGS);
}

/* Listed when it is complete: another thread may destroy its context at once. texture, view: or
 * NULL. */
static struct object *object_new(uint32_t magic, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct object *t = sl_object_new(magic, sizeof(*t));

	if (!t)
		return NULL;
	t->ctx = sl_ctx_current();
	t->resource = *resource;
	if (texture)
		t->texture = *texture;
	t->has_view = view;
	if (view)
		t->view = *view;
	pthread_mutex_lock(&lock);
	sl_list_push_tail(&objects, &t->o.link);
	pthread_mutex_unlock(&lock);
	return t;
}

static CUresult drop(struct object *t)
{
	bool mine;

	if (!t)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	mine = sl_object_kill(t);
	if (mine)
		sl_list_unlink(&t->o.link);
	pthread_mutex_unlock(&lock);
	if (mine)
		sl_object_unref(t);
	return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void sl_texture_drop_context(CUcontext ctx)
{
	pthread_mutex_lock(&lock);
	for (struct sl_link *link = objects.next, *after; link != &objects;
		link = after) {
		struct object *t = SL_LIST_ENTRY(link, struct object, o.link);

		after = link->next;
		if (t->ctx == ctx && sl_object_kill(t)) {
			sl_list_unlink(link);
			sl_object_unref(t);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* Textures ------------------------------------------------------------------------------------ */

CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *desc, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct object *t;

	SL_ENTER(cuTexObjectCreate);
	CHECK_OUT(texture && resource && desc);
	if (!resource_ok(resource) || !texture_ok(desc))
		return CUDA_ERROR_INVALID_VALUE;
	/* Only arrays can have a view. */
	if (view && resource->resType != CU_RESOURCE_TYPE_ARRAY &&
		resource->resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	t = object_new(SL_MAGIC_TEXTURE, resource, desc, view);
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*texture = (uintptr_t)t;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texture)
{
	SL_ENTER(cuTexObjectDestroy);
	return drop(object_of(texture, SL_MAGIC_TEXTURE));
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject texture)
{
	struct object *t = object_of(texture, SL_MAGIC_TEXTURE);

	SL_ENTER(cuTexObjectGetResourceDesc);
	CHECK_OUT(resource && t);
	*resource = t->resource;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *desc, CUtexObject texture)
{
	struct object *t = object_of(texture, SL_MAGIC_TEXTURE);

	SL_ENTER(cuTexObjectGetTextureDesc);
	CHECK_OUT(desc && t);
	*desc = t->texture;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *view, CUtexObject texture)
{
	struct object *t = object_of(texture, SL_MAGIC_TEXTURE);

	SL_ENTER(cuTexObjectGetResourceViewDesc);
	CHECK_OUT(view && t && t->has_view);
	*view = t->view;
	return CUDA_SUCCESS;
}

/* Surfaces ------------------------------------------------------------------------------------ */

CUresult cuSurfObjectCreate(CUsurfObject *surface, const CUDA_RESOURCE_DESC *resource)
{
	struct object *t;

	SL_ENTER(cuSurfObjectCreate);
	CHECK_OUT(surface && resource);
	if (!resource_ok(resource) || resource->resType != CU_RESOURCE_TYPE_ARRAY ||
		!(resource->res.array.hArray->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	t = object_new(SL_MAGIC_SURFACE, resource, NULL, NULL);
	if (!t)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*surface = (uintptr_t)t;
	return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surface)
{
	SL_ENTER(cuSurfObjectDestroy);
	return drop(object_of(surface, SL_MAGIC_SURFACE));
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject surface)
{
	struct object *t = object_of(surface, SL_MAGIC_SURFACE);

	SL_ENTER(cuSurfObjectGetResourceDesc);
	CHECK_OUT(resource && t);
	*resource = t->resource;
	return CUDA_SUCCESS;
}
