/*
 * api - what the files with entry points share
 */
#ifndef SL_SOFTGPU_DRIVER_API_H
#define SL_SOFTGPU_DRIVER_API_H

#include "softgpu/driver/driver.h"

#define CHECK_OUT(ptr)                                   \
	do {                                             \
		if (!(ptr))                              \
			return CUDA_ERROR_INVALID_VALUE; \
	} while (0)
#define CHECK_DEVICE(dev)                                 \
	do {                                              \
		if (!sl_drv_device_ok(dev))               \
			return CUDA_ERROR_INVALID_DEVICE; \
	} while (0)

/* The two default streams: the meaning of NULL in a plain call and in its _ptsz or _ptds twin. */
#define SL_PLAIN(stream)      ((stream) ? (stream) : CU_STREAM_LEGACY)
#define SL_PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/*
 * Defines `name` and its twin from do_name(args). `stream` is the parameter that names the stream.
 * A synchronous call has none: SL_TWIN_SYNC passes the default one as the last argument.
 */
#define SL_TWIN(name, params, args_plain, args_twin) \
	CUresult name params                         \
	{                                            \
		SL_ENTER(name);                      \
		return do_##name args_plain;         \
	}                                            \
	CUresult name##_ptsz params                  \
	{                                            \
		SL_ENTER(name##_ptsz);               \
		return do_##name args_twin;          \
	}
#define SL_TWIN_SYNC(name, params, args_plain, args_twin) \
	CUresult name params                              \
	{                                                 \
		SL_ENTER(name);                           \
		return do_##name args_plain;              \
	}                                                 \
	CUresult name##_ptds params                       \
	{                                                 \
		SL_ENTER(name##_ptds);                    \
		return do_##name args_twin;               \
	}

/* Submits to the stream behind a handle, or into its capture. Takes the op in every case. */
SL_MUST_CHECK CUresult sl_api_submit(CUstream handle, struct sl_op *op);
/* Submits and waits: a synchronous call. Spoils a capture. Takes the op in every case. */
SL_MUST_CHECK CUresult sl_api_run(CUstream handle, struct sl_op *op);

/* queue.c: makes an operation on words; fails for an invalid list. */
SL_MUST_CHECK CUresult sl_values_op(const CUstreamBatchMemOpParams *list, unsigned count,
	unsigned flags, struct sl_op **out);
/* queue.c: lets the stream wait for an event, if it is recorded and pending. */
SL_MUST_CHECK CUresult sl_stream_wait_event(CUstream stream, CUevent event);
/* event.c: records in a stream that does not capture. */
SL_MUST_CHECK CUresult sl_event_record(CUevent event, CUstream stream);

/* launch.c: the operation of a launch; params or extra as in the interface. */
struct sl_shape {
	unsigned grid[3], block[3], shared_bytes;
};
SL_MUST_CHECK CUresult sl_launch_op(CUfunction function, const struct sl_shape *shape,
	void **params, void **extra, struct sl_op **out);

#endif
