/*
 * kept - passed-through memory that goes by a handle or an address
 *
 * From the call that makes it until the one that ends it or its context, what is charged for it is
 * remembered by its kind and key (objects.h). All of it is held: only the driver can move it.
 * Thread-safe; no lock may be held. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_KEPT_H
#define SL_RUNTIME_DRIVER_KEPT_H

#include "runtime/driver/objects.h"
#include "runtime/driver/passed.h"

/* What was settled is for the thing with that key, in the current context. */
void sl_kept_put(const struct sl_passed *passed, enum sl_object_kind kind, uint64_t key);

/* call ends the thing with that key, if the driver agrees; its result. The record is taken away
 * before, since another thread may get the same key at once. */
#define SL_KEPT_END(kind, key, call)                                            \
	({                                                                      \
		struct sl_object object_;                                       \
		bool known_ = sl_objects_take(kind, (uint64_t)(key), &object_); \
		CUresult result_ = (call);                                      \
                                                                                \
		sl_kept_ended(known_ ? &object_ : NULL, result_);               \
		result_;                                                        \
	})
void sl_kept_ended(const struct sl_object *object, CUresult result);

/* Around a call that may end ctx. */
struct sl_objects_taken *sl_kept_hold(CUcontext ctx);
void sl_kept_unhold(struct sl_objects_taken *taken, bool gone);
/* The context is gone and everything in it. */
void sl_kept_drop_context(CUcontext ctx);

#endif
