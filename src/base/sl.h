/*
 * sl - the few macros that every folder uses
 *
 * Cleanup attributes, ownership transfer, compile-time helpers. No dependency, no state.
 */
#ifndef SL_BASE_SL_H
#define SL_BASE_SL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The caller must use the result. */
#define SL_MUST_CHECK __attribute__((warn_unused_result))
#define SL_PRINTF(fmt_index, first_index) \
	__attribute__((format(printf, fmt_index, first_index)))
/* Cold path: placed apart, and branches to it are assumed not taken. */
#define SL_COLD   __attribute__((cold, noinline))
#define SL_HIDDEN __attribute__((visibility("hidden")))
#define SL_EXPORT __attribute__((visibility("default")))

#define sl_likely(x)   __builtin_expect(!!(x), 1)
#define sl_unlikely(x) __builtin_expect(!!(x), 0)

/* Runs fn(&variable) when the variable leaves its scope; the variable must be initialised. */
#define sl_cleanup(fn) __attribute__((cleanup(fn)))

#define SL_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SL_CONTAINER_OF(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))
#define SL_STRINGIFY_(x) #x
#define SL_STRINGIFY(x)  SL_STRINGIFY_(x)

#define SL_KIB (1024ull)
#define SL_MIB (1024ull * 1024)
#define SL_GIB (1024ull * 1024 * 1024)

static inline uint64_t sl_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t sl_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0 if b is larger: accounts saturate instead of wrapping. */
static inline uint64_t sl_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* value rounded up to a multiple of grain, which must be a power of two. */
static inline uint64_t sl_round_up(uint64_t value, uint64_t grain)
{
	return (value + grain - 1) & ~(grain - 1);
}

/* Moves the pointer out of *ptr and leaves NULL there; for `return sl_steal(&p)`. */
#define sl_steal(ptr)                                   \
	({                                              \
		__typeof__(*(ptr)) sl_stolen_ = *(ptr); \
		*(ptr) = NULL;                          \
		sl_stolen_;                             \
	})

static inline int sl_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
