/*
 * charge - what is charged for memory that the driver keeps
 *
 * For an array, managed memory or external memory the charge is recorded by kind and key
 * (objects.h), from the call that makes it. The call that ends it, or ends its context, takes the
 * record away. All of it is held: only the driver can move it. Thread-safe; no lock may be held.
 * Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_CHARGE_H
#define SL_RUNTIME_DRIVER_CHARGE_H

#include "runtime/driver/objects.h"
#include "runtime/driver/passed.h"

/* Records what was settled for the object with that key, in the current context. */
void sl_charge_put(
	const struct sl_passed *passed, enum sl_object_kind kind, uint64_t key);

/* `call` ends the object with that key if the driver agrees; the value is its result. The record is
 * removed before the call, since another thread may get the same key at once. */
#define SL_CHARGE_END(kind, key, call)                                          \
	({                                                                      \
		struct sl_object object_;                                       \
		bool known_ = sl_objects_take(kind, (uint64_t)(key), &object_); \
		CUresult result_ = (call);                                      \
                                                                                \
		sl_charge_ended(known_ ? &object_ : NULL, result_);             \
		result_;                                                        \
	})
void sl_charge_ended(const struct sl_object *object, CUresult result);

/* Around a call that may end ctx. */
struct sl_objects_taken *sl_charge_hold(CUcontext ctx);
void sl_charge_unhold(struct sl_objects_taken *taken, bool gone);
/* The context is gone with everything in it. */
void sl_charge_drop_context(CUcontext ctx);

#endif
