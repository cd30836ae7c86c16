/*
 * through - see through.h
 *
 * The trampolines are alike and lie side by side in the order of the rows, so their table needs no
 * declarations: names and numbers are enough.
 */
#include "runtime/hooks/through.h"
#include "runtime/gate/door.h"
#include "runtime/process/libc.h"
#include "runtime/real/real.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define SL_HOW(class, text)
#define SL_WHY(word, text)
#define SL_DIRECT(symbol, word)

enum {
#define SL_THROUGH(symbol, word) NUMBER_##symbol,
#include "runtime/real/entry-points.def"
#undef SL_THROUGH
	COUNT
};

static const char *const names[COUNT] = {
#define SL_THROUGH(symbol, word) #symbol,
#include "runtime/real/entry-points.def"
#undef SL_THROUGH
};

/* --- shared with through_x86_64.S ---------------------------------------------------------- */

enum { TRAMPOLINE_BYTES = 16 };
extern SL_HIDDEN const char sl_through_trampolines[];
/* The driver's functions; NULL until found. */
SL_HIDDEN void *sl_through_slots[COUNT];

_Static_assert(offsetof(struct sl_gate_thread, calls) == 4, "through_x86_64.S: CALLS");
_Static_assert((SL_GATE_FENCED | SL_GATE_DOOR) == 5, "through_x86_64.S: CLOSED");

/* Returned in two registers. */
struct entered {
	struct sl_gate_thread *self; /* has entered the door; NULL in bypass */
	void *function;              /* to call */
};
/* The slow path of the trampoline of that number. */
SL_HIDDEN struct entered sl_through_enter(uint32_t number);

/* --- */

static CUresult not_supported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void *find(uint32_t number)
{
	void *function = __atomic_load_n(&sl_through_slots[number], __ATOMIC_RELAXED);

	if (!function) {
		function = sl_real_address(names[number]);
		__atomic_store_n(&sl_through_slots[number], function, __ATOMIC_RELAXED);
	}
	return function;
}

struct entered sl_through_enter(uint32_t number)
{
	int saved_errno = errno;
	void *function = find(number);
	struct entered entered = {
		sl_door_enter_slowly(), function ? function : (void *)not_supported};

	errno = saved_errno;
	return entered;
}

static void *trampoline(uint32_t number)
{
	return (void *)(sl_through_trampolines + (size_t)number * TRAMPOLINE_BYTES);
}

/* Programs look up hundreds of names when they start. */
void *sl_through_named(const char *symbol)
{
	uint32_t low = 0, high = COUNT;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = strcmp(symbol, names[middle]);

		if (order == 0)
			return trampoline(middle);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static SL_COLD void find_all(void)
{
	for (uint32_t i = 0; i < COUNT; i++)
		(void)find(i);
	/* A driver older than a row lacks its function: the program must not see the error. */
	sl_libc_clear_dlerror();
}

void *sl_through_of(const void *function)
{
	static int all_found;

	if (!__atomic_exchange_n(&all_found, 1, __ATOMIC_RELAXED))
		find_all();
	for (uint32_t i = 0; i < COUNT; i++) {
		if (__atomic_load_n(&sl_through_slots[i], __ATOMIC_RELAXED) == function)
			return trampoline(i);
	}
	return NULL;
}
