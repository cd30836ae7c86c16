/*
 * charge - see charge.h
 */
#include "runtime/driver/charge.h"
#include "runtime/real/real.h"
#include "runtime/session/measure.h"

#include "base/log.h"

#include <errno.h>

static void give_back(const struct sl_object *object)
{
	sl_passed_free(object->gpu, object->bytes, SL_PASSED_HELD);
}

void sl_charge_put(const struct sl_passed *passed, enum sl_object_kind kind, uint64_t key)
{
	int saved_errno = errno;
	struct sl_object old, object = {.kind = kind,
				      .key = key,
				      .gpu = passed->gpu,
				      .bytes = passed->bytes};

	if (!passed->gpu || !passed->bytes)
		return;
	/* An object with this key ended without a call that we saw. */
	if (sl_objects_take(kind, key, &old))
		give_back(&old);
	(void)sl_real.cuCtxGetCurrent(&object.ctx);
	if (!sl_objects_put(&object))
		sl_error_log(
			"no host memory: %llu bytes stay charged until this process ends",
			(unsigned long long)object.bytes);
	errno = saved_errno;
}

void sl_charge_ended(const struct sl_object *object, CUresult result)
{
	int saved_errno = errno;

	if (object && result == CUDA_SUCCESS)
		give_back(object);
	else if (object && !sl_objects_put(object))
		sl_error_log(
			"no host memory: %llu bytes stay charged until this process ends",
			(unsigned long long)object->bytes);
	else
		(void)sl_measure_after(result);
	errno = saved_errno;
}

struct sl_objects_taken *sl_charge_hold(CUcontext ctx)
{
	return ctx ? sl_objects_take_context(ctx) : NULL;
}

void sl_charge_unhold(struct sl_objects_taken *taken, bool gone)
{
	sl_objects_end_taken(taken, gone ? give_back : NULL);
}

void sl_charge_drop_context(CUcontext ctx)
{
	sl_objects_drop_context(ctx, give_back);
}
