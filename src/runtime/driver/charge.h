/*
 * charge - what is charged for memory that the driver keeps
 *
 * A call that makes an array, managed memory or external memory records its charge by kind and key
 * (objects.h). The call that ends the object or its context removes the record. All charged bytes
 * are held, since only the driver can move them. Thread-safe; no lock may be held. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_CHARGE_H
#define SL_RUNTIME_DRIVER_CHARGE_H

#include "runtime/driver/objects.h"
#include "runtime/driver/passed.h"

/* Records what was settled for the object with that key, in the current context. */
void sl_charge_put(
	const struct sl_passed *passed, enum sl_object_kind kind, uint64_t key);

/* `call` is a driver call that ends the object with that key; the macro's value is its result. The
 * record is removed before the call, since another thread may get the same key right after it. If
 * the call fails, the record is put back. */
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
