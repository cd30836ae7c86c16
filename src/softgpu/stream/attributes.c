/*
 * attributes - attributes of streams: stored and returned
 */
#include "softgpu/driver/api.h"

#include <string.h>

/* The index of an attribute of streams; -1: not one. */
static int place_of(CUstreamAttrID attr)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return 0;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: return 1;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return 2;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return 3;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: return 4;
	default: return -1;
	}
}

static CUresult do_cuStreamGetAttribute(
	CUstream handle, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	CUstream s = sl_stream_of(handle, false);
	int place = place_of(attr);

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value || place < 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&s->lock);
	*value = s->attribute[place];
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = s->priority;
	pthread_mutex_unlock(&s->lock);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamSetAttribute(
	CUstream handle, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	CUstream s = sl_stream_of(handle, false);
	int place = place_of(attr);

	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value || place < 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&s->lock);
	s->attribute[place] = *value;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		s->priority = value->priority > 0    ? 0
			      : value->priority < -5 ? -5
						     : value->priority;
	pthread_mutex_unlock(&s->lock);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamCopyAttributes(CUstream to, CUstream from)
{
	CUstream d = sl_stream_of(to, false), s = sl_stream_of(from, false);
	CUstreamAttrValue copy[SL_STREAM_ATTRIBUTES];

	if (!d || !s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (d->ctx != s->ctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&s->lock);
	memcpy(copy, s->attribute, sizeof(copy));
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&d->lock);
	memcpy(d->attribute, copy, sizeof(copy));
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

static CUresult do_cuStreamGetDevice(CUstream handle, CUdevice *dev)
{
	CUstream s = sl_stream_of(handle, false);

	CHECK_OUT(dev);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	*dev = s->ctx->device;
	return CUDA_SUCCESS;
}

SL_TWIN(cuStreamGetAttribute,
	(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value),
	(SL_PLAIN(stream), attr, value), (SL_PER_THREAD(stream), attr, value))
SL_TWIN(cuStreamSetAttribute,
	(CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value),
	(SL_PLAIN(stream), attr, value), (SL_PER_THREAD(stream), attr, value))
SL_TWIN(cuStreamCopyAttributes, (CUstream dst, CUstream src),
	(SL_PLAIN(dst), SL_PLAIN(src)), (SL_PER_THREAD(dst), SL_PER_THREAD(src)))
SL_TWIN(cuStreamGetDevice, (CUstream stream, CUdevice *dev), (SL_PLAIN(stream), dev),
	(SL_PER_THREAD(stream), dev))
