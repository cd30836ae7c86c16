/*
 * lane - one thread of a storm while it runs: its tables, and the helpers of operations
 *
 * Each operation on a buffer is ordered after the work of other streams on it (storm_touch). So
 * contents never depend on which stream was faster. Memory that could not be ordered is *tainted*:
 * its contents are not compared any more.
 */
#ifndef SL_TESTS_STORM_LANE_H
#define SL_TESTS_STORM_LANE_H

#include "storm.h"

enum {
#define SL_STORM_CALL(name) STORM_ID_##name,
#include "calls.def"
#undef SL_STORM_CALL
	STORM_IDS
};
_Static_assert((int)STORM_IDS <= (int)STORM_IDS_MAX, "more functions than counters");

/* Looked up in libcuda, as many programs do. */
struct storm_driver {
#define SL_STORM_CALL(name) __typeof__(&name) name;
#include "calls.def"
#undef SL_STORM_CALL
};
extern struct storm_driver storm_cu;
extern const char *const storm_call_names[];

enum storm_from {
	FROM_ALLOC,
	FROM_PITCH,
	FROM_POOL,
	FROM_MANAGED,
	FROM_PINNED,
	FROM_REGISTERED,
	FROM_VMM,
	FROM_IPC,
	FROM_IMPORT,
};

enum { PENDING_NONE = -1, PENDING_GONE = -2, ON_HOST = -1 };

struct storm_buffer {
	bool live, tainted, shared;
	enum storm_from from;
	uint32_t gen, context;
	uint64_t id; /* of the allocation, as the driver says; 0: never asked */
	CUdeviceptr at;
	size_t bytes, pitch, reserved;
	int pending; /* stream slot whose work on it may not be done */
	int place;   /* place where it is offered or came from, or -1 */
};

struct storm_stream {
	bool live;
	CUstream handle;
	unsigned flags;
	int priority;
	uint32_t context;
};

struct storm_event {
	bool live, recorded;
	bool foreign; /* another process made it */
	CUevent handle;
	unsigned flags;
};

#define USES_MAX 64
/* Buffers that a graph's nodes name. */
struct storm_uses {
	unsigned count;
	struct {
		uint32_t buffer, gen;
	} use[USES_MAX];
};

struct storm_graph {
	bool live;
	CUgraph handle;
	bool is_chain;   /* made node by node, each after `last` */
	unsigned weight; /* child graphs below it */
	CUgraphNode last;
	struct storm_uses uses;
};

struct storm_exec {
	bool live;
	CUgraphExec handle;
	struct storm_uses uses;
};

struct storm_handle {
	bool live;
	CUmemGenericAllocationHandle handle;
	size_t bytes;
	unsigned refs;
};

#define RANGE_GRAINS 8
struct storm_range {
	bool live;
	CUdeviceptr at;
	size_t bytes;
	size_t mapped[RANGE_GRAINS]; /* bytes of the mapping that begins here; 0: none */
};

struct storm_pool {
	bool live;
	CUmemoryPool handle;
};

struct storm_array {
	bool live, tainted;
	CUarray handle;
	CUmipmappedArray mipmapped;
	size_t width, height, depth, element;
};

struct storm_context {
	bool live;
	CUcontext handle;
};

struct storm_module {
	bool live;
	CUmodule handle;
};

#define SCRATCH_BYTES (256u << 10)

struct storm_lane {
	unsigned worker, number;
	enum storm_shape shape;
	const struct storm_step *step;
	struct storm_result *result;
	char *text; /* of STORM_TEXT bytes */
	struct storm_answers *answers;
	uint64_t calls[STORM_IDS], refused[STORM_IDS];
	CUdevice device;
	int devices;
	CUcontext primary;
	uint32_t context; /* 0: the primary; else slot + 1 */
	bool twin;        /* this step uses the _ptsz and _ptds functions */
	bool broken;      /* its context has a sticky error */
	bool settle; /* a shared buffer was touched: finish before the turn goes on */
	unsigned captures;
	struct storm_uses capture_uses;
	CUevent order;
	CUfunction fill, step_kernel, poke, empty;
	unsigned char *scratch, *readback;
	struct storm_buffer buffer[STORM_BUFFER_SLOTS];
	struct storm_stream
		stream[STORM_STREAM_SLOTS]; /* 0: the legacy one, 1: the thread's own */
	struct storm_event event[STORM_EVENT_SLOTS];
	struct storm_graph graph[STORM_GRAPH_SLOTS];
	struct storm_exec exec[STORM_EXEC_SLOTS];
	struct storm_handle handle[STORM_HANDLE_SLOTS];
	struct storm_range range[STORM_RANGE_SLOTS];
	struct storm_pool pool[STORM_POOL_SLOTS]; /* 0: the default pool */
	struct storm_array array[STORM_ARRAY_SLOTS];
	struct storm_context ctx[STORM_CONTEXT_SLOTS];
	struct storm_module module[STORM_MODULE_SLOTS];
};

/* Folds a result code, a number and contents into the step's answer. */
CUresult storm_note_call(struct storm_lane *l, unsigned id, CUresult r);
void storm_note(struct storm_lane *l, const char *what, uint64_t value);
void storm_note_bytes(struct storm_lane *l, const void *data, size_t bytes);

/* Calls the driver and notes the code. CALL_S, CALL_D: or the twin with per-thread default
 * stream. */
#define CALL(l, name, ...) \
	storm_note_call((l), STORM_ID_##name, storm_cu.name(__VA_ARGS__))
#define CALL_0(l, name) storm_note_call((l), STORM_ID_##name, storm_cu.name())
#define CALL_S(l, name, ...) \
	((l)->twin ? CALL(l, name##_ptsz, __VA_ARGS__) : CALL(l, name, __VA_ARGS__))
#define CALL_D(l, name, ...) \
	((l)->twin ? CALL(l, name##_ptds, __VA_ARGS__) : CALL(l, name, __VA_ARGS__))

/* The buffer in a slot, or NULL: the step then has nothing to do. */
struct storm_buffer *storm_buffer(struct storm_lane *l, uint32_t slot);
/* A handle for a stream slot; false: no such stream. Slot 0 and twin: the thread's own one. */
bool storm_stream(struct storm_lane *l, uint32_t slot, CUstream *out);
/* The stream slot that a call with this argument really uses. */
int storm_stream_slot(struct storm_lane *l, uint32_t slot);

/* Orders the next work of stream slot `on` (or ON_HOST) after all work on the buffer. False: that
 * was not possible. The buffer is then tainted, and must not be freed. */
bool storm_touch(struct storm_lane *l, struct storm_buffer *b, int on);
/* Waits for everything of this lane; then nothing is pending. */
void storm_quiesce(struct storm_lane *l);
bool storm_capturing(struct storm_lane *l, uint32_t stream_slot);
/* After cuStreamSynchronize: nothing is pending there any more. */
void storm_settled(struct storm_lane *l, int slot);
/* The memory is gone, or was taken over by a new allocation in this slot. */
void storm_forget(struct storm_lane *l, struct storm_buffer *b);
/* Registers a new buffer and gives it contents that follow from its slot and the step. */
void storm_obtained(struct storm_lane *l, struct storm_buffer *b, enum storm_from from,
	CUdeviceptr at, size_t bytes);
/* The same for memory of a pool, filled in the stream of that slot, where it was allocated. */
void storm_obtained_in(struct storm_lane *l, struct storm_buffer *b, CUdeviceptr at,
	size_t bytes, uint32_t slot);
bool storm_on_host(const struct storm_buffer *b);
/* A part of the buffer that two numbers name; at most `most` bytes, at least one. */
void storm_window(const struct storm_buffer *b, uint32_t n1, uint32_t n2, size_t most,
	size_t *offset, size_t *bytes);
/* Notes the contents, if they are determined. False: work on it may still be under way. */
bool storm_verify(
	struct storm_lane *l, struct storm_buffer *b, size_t offset, size_t bytes);
bool storm_uses_live(struct storm_lane *l, const struct storm_uses *u);
void storm_uses_add(struct storm_lane *l, struct storm_uses *u, struct storm_buffer *b);
void storm_uses_touch(struct storm_lane *l, const struct storm_uses *u, int on);

/* Context, kernels and tables of a lane; false with a sentence on stderr. */
bool storm_lane_start(struct storm_lane *l);
/* Runs one step of its. */
void storm_lane_step(struct storm_lane *l, const struct storm_step *s,
	struct storm_result *result, char *text);

#define SL_STORM_OP(name, weight, flags, spec) \
	void storm_op_##name(struct storm_lane *l, const uint32_t *a);
#include "ops.def"
#undef SL_STORM_OP

#endif
