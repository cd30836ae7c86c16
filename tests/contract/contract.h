/*
 * contract - facts about the driver, written down as code
 *
 * A fact is a sentence and a function that fails if the sentence is wrong. Each runs under a time
 * limit in a process of its own, as a fresh program with nothing initialised, so that what it
 * breaks ends with it. The same executable runs on a real GPU, on the software GPU, and under
 * Sluice on either. Its output is one stable line per fact, so that two runs can be compared with
 * diff.
 *
 * A fact is *assumed* (with a word on why: the manual, or layers like this rely on it) until
 * observed.def has a row for it, which a run on a real GPU prints.
 *
 * Functions of the driver are looked up by name; a driver without one makes the fact skip.
 */
#ifndef SL_TESTS_CONTRACT_H
#define SL_TESTS_CONTRACT_H

#include "base/cuda_abi.h"
#include "base/nvml_abi.h"
#include "base/sl.h"

#include <string.h>

/* How a fact may differ under Sluice. */
enum contract_flags {
	SAME = 0,
	NATIVE_ONLY = 1, /* about the bare driver; not run under Sluice */
	SLOW = 2,        /* may take half a minute: the limit is 60 s instead of 20 */
};

struct contract_fact {
	const char *name;
	const char *source;
	unsigned int flags;
	const char *text;
	void (*run)(void);
};

/*
 * FACT(name, source, flags, text) { body }: defines a fact and enters it into the table, in the
 * order of the files and of the lines in them. The table is a section of pointers, so that no list
 * has to be kept beside the facts.
 */
#define FACT(id, where, how, sentence)                                        \
	static void fact_##id(void);                                          \
	static const struct contract_fact row_##id = {                        \
		#id, where, how, sentence, fact_##id};                        \
	static const struct contract_fact *const entry_##id                   \
		__attribute__((section("contract_facts"), used)) = &row_##id; \
	static void fact_##id(void)

/* The driver's function of this name, typed; ends the fact as skipped if it is missing. */
#define CU(name) ((__typeof__(&name))contract_find(#name))
#define ML(name) ((__typeof__(&name))contract_find_nvml(#name))

/* IS(INVALID_VALUE, ERROR..., call, args...): the call must return exactly this. */
#define IS(want, name, ...)                                                         \
	contract_is(CUDA_##want, CU(name)(__VA_ARGS__), #name "(" #__VA_ARGS__ ")", \
		__FILE__, __LINE__)
#define OK(name, ...) IS(SUCCESS, name, __VA_ARGS__)
/* Any error will do: drivers differ in which. */
#define FAILS(name, ...) \
	contract_fails(  \
		CU(name)(__VA_ARGS__), #name "(" #__VA_ARGS__ ")", __FILE__, __LINE__)
#define NVML_IS(want, name, ...)                                                         \
	contract_nvml_is(NVML_##want, ML(name)(__VA_ARGS__), #name "(" #__VA_ARGS__ ")", \
		__FILE__, __LINE__)
/* Two numbers and a relation; both are printed on failure. */
#define HOLDS(a, op, b)                                                                 \
	do {                                                                            \
		unsigned long long a_ = (unsigned long long)(a);                        \
		unsigned long long b_ = (unsigned long long)(b);                        \
		if (!(a_ op b_))                                                        \
			contract_differ(a_, b_, #a " " #op " " #b, __FILE__, __LINE__); \
	} while (0)

void *contract_find(const char *name);
void *contract_find_nvml(const char *name);
void contract_is(
	CUresult want, CUresult got, const char *call, const char *file, int line);
void contract_fails(CUresult got, const char *call, const char *file, int line);
void contract_nvml_is(nvmlReturn_t want, nvmlReturn_t got, const char *call,
	const char *file, int line);
void contract_differ(unsigned long long a, unsigned long long b, const char *text,
	const char *file, int line) __attribute__((noreturn));
void contract_skip(const char *why) __attribute__((noreturn));

/* True in a box of software GPUs. Only for choosing an image, never for an expectation. */
bool contract_software(void);
/* cuInit and the primary context of device 0, current. */
CUcontext contract_context(void);
/* The test programs' kernels, and one of them. */
CUmodule contract_module(void);
CUfunction contract_kernel(const char *name);
CUresult contract_launch(CUfunction function, CUstream stream, void **args);
/* A kernel that runs for about ms. */
void contract_spin(CUstream stream, unsigned int ms);
/* *word = *word * factor + add, by a kernel. */
void contract_step(CUstream stream, CUdeviceptr word, uint32_t factor, uint32_t add);
CUdeviceptr contract_alloc(size_t bytes);
uint32_t contract_read(CUdeviceptr word);
size_t contract_free_bytes(void);
uint64_t contract_now_ms(void);
void contract_sleep_ms(unsigned int ms);

/* A handle of grain bytes on device 0 with the given exportable types, and a reservation. */
CUmemAllocationProp contract_prop(void);
size_t contract_grain(void);
CUmemGenericAllocationHandle contract_handle(size_t bytes);
CUdeviceptr contract_reserve(size_t bytes);
void contract_allow(CUdeviceptr at, size_t bytes);

/*
 * Runs this executable again as a helper of the given name with up to two descriptors as its 3 and
 * 4; returns its exit status. Helpers stand in contract_helper().
 */
int contract_again(const char *helper, int fd3, const void *data, size_t bytes);
/* The helpers: fact files register here. Returns an exit status. */
int contract_helper(const char *name);
int contract_pool_import(void);
int contract_vmm_import(void);
int contract_swap_tenant(void);
int contract_work_healthy(void);
int contract_event_wait(void);
int contract_event_record(void);
int contract_event_die(void);

#endif
