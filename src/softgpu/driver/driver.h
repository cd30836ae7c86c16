/*
 * driver - private parts of the software GPU's libcuda.so.1
 *
 * Objects of the driver interface are plain structures; a handle is a pointer to one. The memory of
 * a destroyed object is never given back to malloc: its magic word is cleared, and it serves the
 * next object of its kind. So a stale handle is recognised instead of crashing the program.
 *
 * Locks, in this order; never in another, and none held while waiting for work:
 *  - ctx->lock: order of submission within a context
 *  - stream->lock: one stream's queue
 *  - sl_space.lock: all about memory, and messages about it to companions
 *  - sl_drv.lock: lists of objects, captures, the server's socket (leaf)
 * The data path takes no lock that another process could hold. All calls may come from any thread.
 */
#ifndef SL_SOFTGPU_DRIVER_DRIVER_H
#define SL_SOFTGPU_DRIVER_DRIVER_H

#include "base/list.h"
#include "softgpu/link/proto.h"

#include <pthread.h>
#include <stdatomic.h>

/* Everything declared here is exported: the whole library is built hidden. */
#pragma GCC visibility push(default)
#include "base/cuda_abi.h"
#pragma GCC visibility pop

/* What calls on a lost GPU return. Programs on real ones report this (not DEVICE_UNAVAILABLE). */
#define SL_DRV_LOST CUDA_ERROR_UNKNOWN

#define SL_DRV_SMS 16 /* multiprocessors */

/* Entry points: one list (entry.def) gives ids, names, what each needs, and cuGetProcAddress. */
enum sl_entry_need {
	NEED_NONE = 0,
	NEED_INIT = 1, /* cuInit was called, in this process */
	NEED_CTX = 3,  /* and a usable context is current */
	NEED_SAFE = 4, /* forbidden while a capture forbids unsafe calls */
	NEED_OPEN = 8, /* allowed while the process is locked */
};

enum sl_entry_id {
#define SL_ENTRY(name, since, need) SL_E_##name,
#include "softgpu/driver/entry.def"
#undef SL_ENTRY
	SL_ENTRY_COUNT
};

/*
 * First line of every entry point, up to its end: checks the state of the driver, the fault plan,
 * the context and the rules of captures, and waits while the process is locked. Returns anything
 * but CUDA_SUCCESS to the program.
 */
struct sl_inside {
	CUresult result;
	bool counted; /* a lock waits for its end */
};
struct sl_inside sl_enter(enum sl_entry_id id);
void sl_leave(const struct sl_inside *inside);
#define SL_ENTER(name)                                                         \
	__attribute__((cleanup(sl_leave))) const struct sl_inside sl_inside_ = \
		sl_enter(SL_E_##name);                                         \
	if (sl_inside_.result != CUDA_SUCCESS)                                 \
	return sl_inside_.result

/* gate.c: calls of the program, which wait while the process is locked. */
bool sl_gate_enter(void); /* pass the result to sl_gate_leave */
void sl_gate_leave(bool counted);
/* Lets no call in, and waits until none is inside and no stream has work. until: 0, or the time of
 * sl_drv_now_ns() at which it gives up and opens again. */
SL_MUST_CHECK bool sl_gate_close(uint64_t until);
void sl_gate_open(void);
/* All calls fail from now on: the process's memory is lost. */
void sl_gate_fail(void);
bool sl_gate_has_failed(void);
/* space_away.c: bytes and contexts leave the GPUs, and come back, to those that the map names. A
 * failure to leave changes nothing; INVALID_VALUE of coming back neither, any other ends the
 * process's use of GPUs. */
SL_MUST_CHECK CUresult sl_space_leave(void);
SL_MUST_CHECK CUresult sl_space_return(uint64_t map);
/* control.c: starts the thread that carries out what movers ask for. A failure leaves the process
 * without one. */
void sl_control_start(void);
void sl_control_in_child(void);

/* Objects ------------------------------------------------------------------------------------- */

#define SL_MAGIC_CTX    0x43545830u
#define SL_MAGIC_STREAM 0x53545230u
#define SL_MAGIC_EVENT  0x45565430u
#define SL_MAGIC_MODULE 0x4d4f4430u
#define SL_MAGIC_FUNC   0x46554e30u
#define SL_MAGIC_LIB    0x4c494230u
#define SL_MAGIC_KERNEL 0x4b524e30u
#define SL_MAGIC_GRAPH  0x47525030u
#define SL_MAGIC_EXEC   0x47584530u
#define SL_MAGIC_NODE   0x474e4f30u
#define SL_MAGIC_POOL   0x504f4f30u
#define SL_MAGIC_USER   0x55534530u
#define SL_MAGIC_SEMA   0x53454d30u
#define SL_MAGIC_XMEM   0x584d4530u
#define SL_MAGIC_DESC   0x44534330u
#define SL_MAGIC_GREEN  0x47524e30u

/* First member of every object. */
struct sl_object {
	_Atomic uint32_t magic; /* 0: destroyed */
	uint32_t kind;          /* its magic while alive */
	_Atomic uint32_t refs;  /* one for the handle, others for queued work */
	struct sl_link link;    /* in a list of its owner, or of spare objects */
	struct sl_object *all_next;
};

/* A zeroed object of `bytes` with magic set and one reference, or NULL. */
void *sl_object_new(uint32_t magic, size_t bytes);
/* Is the handle alive and of this kind? Also correct for NULL. */
bool sl_object_is(const void *object, uint32_t magic);
void sl_object_ref(void *object);
/* Drops a reference; after the last one the memory may serve another object of its kind. */
void sl_object_unref(void *object);
/* Clears the magic; true for the one caller that did it. */
bool sl_object_kill(void *object);

struct sl_capture;

struct CUctx_st {
	struct sl_object o;
	pthread_mutex_t lock;
	CUdevice device;
	unsigned int flags;
	unsigned int api_version;
	bool is_primary;
	_Atomic bool usable;   /* false: destroyed, or a primary one that is not active */
	_Atomic int error;     /* a sticky CUresult */
	_Atomic bool launched; /* the first launch's hidden bytes are charged */
	uint64_t id;
	struct sl_link streams; /* o.link of the streams; under lock */
	struct CUstream_st *legacy;
	size_t limit[8];
	uint64_t launch_hidden_bytes;
	bool peer[SL_SOFTGPU_GPUS_MAX];
	CUfunc_cache cache;
	CUgreenCtx green;          /* not NULL: the context of that part of the GPU */
	_Atomic unsigned attached; /* cuCtxAttach, beyond the making */
};

enum sl_op_kind {
	SL_OP_COPY,
	SL_OP_SET,
	SL_OP_KERNEL,
	SL_OP_HOST,
	SL_OP_CALLBACK,
	SL_OP_EVENT,
	SL_OP_WAIT,
	SL_OP_VALUE,
	SL_OP_FREE,
	SL_OP_CALL,
	SL_OP_NOP
};

/* An operation of the driver itself in a stream's order: the head of a larger structure. */
struct sl_call {
	_Atomic unsigned refs;
	void (*run)(CUstream stream, struct sl_call *call);
	void (*drop)(struct sl_call *call); /* after the last reference */
};

struct sl_wait_for {
	struct CUstream_st *stream; /* a reference */
	uint64_t seq;
};

/* A rectangular copy; rows and slices of 1 for a plain one. Pitches in bytes. */
struct sl_copy {
	uint64_t dst, src;
	bool dst_host, src_host; /* addresses of the program, not of a GPU */
	bool pageable;           /* one of them is not pinned */
	size_t width, rows, slices;
	size_t dst_pitch, src_pitch, dst_slice, src_slice;
	void *staged; /* freed with the op; src points to it */
	/* Copies between contexts: the device that accesses each end, plus one; 0: the stream's. */
	uint8_t dst_by, src_by;
};

/* `width` elements of `size` bytes in each of `rows` rows. */
struct sl_set {
	uint64_t dst;
	uint32_t value, size;
	size_t width, rows, pitch;
	uint8_t by; /* in a graph: the number of its node's GPU, plus one; 0: the stream's */
};

/* A record of an interprocess event, by its number. */
struct sl_shared_point {
	struct sl_sg_words *words; /* NULL: the event is not interprocess */
	uint64_t generation, number;
};

struct sl_op {
	struct sl_link link;
	enum sl_op_kind kind;
	uint64_t seq;
	unsigned wait_count;
	struct sl_wait_for *wait; /* what must be complete before */
	union {
		struct sl_copy copy;
		struct sl_set set;
		struct {
			struct CUmod_st *module; /* a reference */
			CUfunction function;
			struct sl_cp_launch *launch;
		} kernel;
		struct {
			CUhostFn fn;
			CUstreamCallback callback;
			void *data;
			CUstream handle;
		} host;
		struct {
			CUevent event; /* a reference */
			uint64_t record;
			struct sl_shared_point shared;
		} event;
		struct {
			unsigned count;
			CUstreamBatchMemOpParams *list; /* executed one by one */
		} value;
		struct sl_call *call; /* a reference */
		uint64_t free_address;
	};
};

#define SL_STREAM_ATTRIBUTES 5

struct CUstream_st {
	struct sl_object o;
	struct CUctx_st *ctx;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sl_link queue;
	uint64_t submitted, completed; /* sequence numbers; under lock */
	unsigned int flags;
	int priority;
	uint64_t id;
	bool is_legacy, is_per_thread;
	bool has_worker, closing;
	CUstreamAttrValue attribute[SL_STREAM_ATTRIBUTES]; /* attributes.c */
	pthread_mutex_t launching; /* no other work between the nodes of a graph */
	_Atomic(struct sl_capture *) capture; /* not NULL: calls are recorded */
	unsigned capture_member;
	/* Only the worker's. */
	int companion_fd;
};

struct CUevent_st {
	struct sl_object o;
	struct CUctx_st *ctx;
	pthread_mutex_t lock;
	unsigned int flags;
	uint64_t record; /* counts cuEventRecord */
	struct sl_wait_for
		last;     /* position of the last record; stream NULL: never recorded */
	uint64_t time_ns; /* when the last record was reached; 0: not yet */
	uint64_t capture_id; /* not 0: recorded in that capture */
	CUgraphNode *covers; /* a wait for it in that capture depends on these nodes */
	size_t cover_count;
	struct {
		struct sl_sg_words *words; /* NULL: no interprocess event */
		uint64_t id, holder;
	} shared;
	bool is_imported;
};

struct sl_function_info {
	char name[256];
	uint32_t index, param_count;
	uint32_t param_bytes[SL_HOSTMODULE_PARAMS], param_at[SL_HOSTMODULE_PARAMS];
	uint32_t shared_bytes, local_bytes, max_threads, registers, const_bytes;
};

struct CUfunc_st {
	struct sl_object o;
	struct CUmod_st *module;
	struct sl_function_info info;
	int max_dynamic_shared_bytes;
	int carveout;
	struct {
		unsigned block[3], shared_bytes;
		size_t param_bytes;
		char params[SL_CP_PARAM_BYTES];
	} old; /* launch_old.c */
};

struct sl_global {
	char name[256];
	uint64_t bytes;
	CUdeviceptr address;
};

struct CUmod_st {
	struct sl_object o;
	struct CUctx_st *ctx;
	uint64_t remote; /* the companion's number */
	uint32_t kernel_count, global_count;
	struct CUfunc_st **functions;
	struct sl_global *globals;
	CUdeviceptr global_block; /* 0: no globals */
	CUlibrary library;        /* the library it belongs to, or NULL; may be gone */
};

/* The process's driver ------------------------------------------------------------------------ */

struct sl_companion {
	pthread_mutex_t lock;
	int socket; /* -1: not started */
};

struct sl_drv {
	pthread_mutex_t lock;
	_Atomic int state; /* enum sl_drv_state */
	struct sl_sg_hello hello;
	int memfd[SL_SOFTGPU_GPUS_MAX];
	struct sl_sg_board *board;                /* the server's, except the links */
	uint32_t generation[SL_SOFTGPU_GPUS_MAX]; /* by CUdevice, as first seen */
	struct CUctx_st
		*primary[SL_SOFTGPU_GPUS_MAX]; /* made at first use, never freed */
	unsigned primary_count[SL_SOFTGPU_GPUS_MAX];
	unsigned primary_flags[SL_SOFTGPU_GPUS_MAX];
	struct sl_link contexts; /* o.link */
	struct sl_companion companion[SL_SOFTGPU_GPUS_MAX];
	uint64_t next_id;
};
enum sl_drv_state { SL_DRV_NEW, SL_DRV_READY, SL_DRV_FORKED, SL_DRV_ENDED };
extern struct sl_drv sl_drv;
/* Set in the worker while it runs a program's host function, which may make no calls. */
extern __thread bool sl_in_callback;

uint64_t sl_drv_now_ns(void);
/* Simulates the cost of a call beside its own work. */
void sl_drv_cost(uint64_t us);
uint64_t sl_drv_next_id(void);
bool sl_drv_device_ok(CUdevice device);

/* link.c: the server. Results are CUresults. fd: sent along, or -1. */
SL_MUST_CHECK int sl_link_connect(
	const char *path, struct sl_sg_hello *hello, int *memfds);
/* Another connection of one's own: a socket or -errno. The caller closes the memfds. */
SL_MUST_CHECK int sl_link_open(struct sl_sg_hello *hello, int *memfds);
/* From now on, the process's devices are those that the map names (sl_sg_moved_to). 0 or -errno. */
SL_MUST_CHECK int sl_link_move(uint64_t map);
SL_MUST_CHECK CUresult sl_link_call(const struct sl_sg_request *q, int fd,
	struct sl_sg_reply *reply, struct sl_sg_extent *extents, unsigned room,
	int *got_fd);
SL_MUST_CHECK CUresult sl_link_hide(CUdevice device, uint64_t bytes);
void sl_link_unhide(CUdevice device, uint64_t bytes);
void sl_link_context(CUdevice device, int change);
/* Sets the server's number of each device. */
void sl_link_order(const int *list, int count);
void sl_link_busy(CUdevice device, uint64_t ns);
/* Has the GPU fallen off the bus since this process first saw it? That is final for this
 * process. */
bool sl_link_is_lost(CUdevice device);
/* The time at which the link to or from the GPU is free again. Atomic: all processes of the box
 * share it. */
uint64_t *sl_link_way(CUdevice device, bool to_gpu);

/* device.c: applies CUDA_VISIBLE_DEVICES; once, after the server has listed its GPUs. */
void sl_visible_init(void);

/* fault.c: the plan. */
void sl_fault_init(const char *of_box);
/* A CUresult, or does not return. */
CUresult sl_fault_check(enum sl_entry_id id);

/* context.c */
CUcontext sl_ctx_current(void); /* NULL: none; may be unusable */
/* Waits for all the context's work; returns its sticky error. */
CUresult sl_ctx_sync(CUcontext ctx);
void sl_ctx_fail(CUcontext ctx, CUresult error); /* the first one sticks */
/* Its sticky error; SL_DRV_LOST from the moment its GPU is lost. */
CUresult sl_ctx_error(CUcontext ctx);
CUresult sl_ctx_first_launch(CUcontext ctx);
/* Makes a context and makes it current. */
SL_MUST_CHECK CUresult sl_ctx_create(CUcontext *out, unsigned flags, CUdevice dev);
/* The context of a green context; retains the primary one. */
SL_MUST_CHECK CUresult sl_ctx_new_green(CUgreenCtx green, CUdevice dev, CUcontext *out);
void sl_ctx_free_green(CUcontext ctx);
/* context_calls.c: an event for all submitted work of a context; and making all later work wait for
 * one. */
SL_MUST_CHECK CUresult sl_ctx_record_event(CUcontext ctx, CUevent event);
SL_MUST_CHECK CUresult sl_ctx_wait_event(CUcontext ctx, CUevent event);

/* stream.c */
SL_MUST_CHECK CUresult sl_stream_new(
	CUcontext ctx, unsigned flags, int priority, CUstream *out);
/*
 * The stream behind a handle in the current context. The two special handles are resolved, and so
 * is NULL, as per_thread says. Returns NULL if the handle is no stream. Takes no reference.
 */
CUstream sl_stream_of(CUstream handle, bool per_thread);
void sl_stream_close(CUstream stream);
/* A zeroed op; fill and submit, or sl_op_free. */
struct sl_op *sl_op_new(enum sl_op_kind kind);
void sl_op_free(struct sl_op *op);
/* The op waits for all work submitted to a stream so far; false: out of memory. */
SL_MUST_CHECK bool sl_op_wait_add(struct sl_op *op, CUstream stream);
/* The same for all blocking streams of another context. */
SL_MUST_CHECK bool sl_op_wait_context(struct sl_op *op, CUcontext ctx);
/* Takes the op in every case. Blocks while the queue is full. *seq may be NULL. */
SL_MUST_CHECK CUresult sl_stream_submit(CUstream stream, struct sl_op *op, uint64_t *seq);
/* Waits until seq is complete; returns the context's sticky error. */
CUresult sl_stream_wait(CUstream stream, uint64_t seq);
bool sl_stream_done(CUstream stream, uint64_t seq);
/* Submits and waits: the synchronous calls. */
SL_MUST_CHECK CUresult sl_stream_run(CUstream stream, struct sl_op *op);
/* execute.c: does one op, on the stream's worker. */
void sl_op_execute(CUstream stream, struct sl_op *op);

/* event.c: the point that a waiting stream must reach; false: never recorded, or complete. */
bool sl_event_target(CUevent event, struct sl_wait_for *out);
void sl_event_reached(CUevent event, uint64_t record);

/* A new event in the current context, or NULL. */
CUevent sl_event_new(unsigned flags);

/* ipc_event.c: interprocess events. */
SL_MUST_CHECK CUresult sl_shared_new(CUevent event);
void sl_shared_close(CUevent event);
/* The point of a new record, and marking it as reached. */
struct sl_shared_point sl_shared_record(CUevent event);
void sl_shared_reached(const struct sl_shared_point *point);
bool sl_shared_is_reached(const struct sl_shared_point *point);
/* The last record of any process; false: it was reached, or the event is not interprocess. */
bool sl_shared_pending(CUevent event, struct sl_shared_point *out);
/* Waits for a point, or until the context fails. */
void sl_shared_wait(const struct sl_shared_point *point, CUcontext ctx);
/* Makes the stream wait for it. */
SL_MUST_CHECK CUresult sl_shared_submit(
	CUstream stream, const struct sl_shared_point *point);

/* capture.c */
/* CUDA_SUCCESS: calls of this kind are allowed now. Otherwise spoils the capture. */
CUresult sl_capture_check_unsafe(void);
/* A call on `stream` that cannot be captured; also catches the legacy stream's implicit order. */
CUresult sl_capture_check_stream(CUstream stream);
/* If it captures, the op goes into the graph (taken) and *result has the outcome. */
bool sl_capture_take(CUstream stream, struct sl_op *op, CUresult *result);
/*
 * True: the stream captures, and the event now stands for a point in that capture. If `external`, a
 * node of the graph will record the event instead.
 */
bool sl_capture_event(CUstream stream, CUevent event, bool external, CUresult *result);
/* A call about all work of a context; spoils the captures of its streams. */
CUresult sl_capture_check_context(CUcontext ctx);
/* Spoils every capture; returns its argument. */
CUresult sl_capture_spoil_all(CUresult answer);
/* The stream is about to be destroyed. */
void sl_capture_forget(CUstream stream);
/* True: stream or event belong to a capture, and *result is the answer. external: a node of the
 * graph waits. */
bool sl_capture_wait(CUstream stream, CUevent event, bool external, CUresult *result);
/*
 * Stream-ordered allocation: true if the stream captures, or the address is a graph's memory; then
 * *result is the answer. pool NULL: the one of the stream's device.
 */
bool sl_capture_alloc(CUstream stream, CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool,
	CUresult *result);
bool sl_capture_free(CUstream stream, CUdeviceptr ptr, CUresult *result);

/* memory.c: is this memory of a graph, backed or not? */
bool sl_graph_mem_covers(CUdeviceptr at, uint64_t bytes, CUdevice *device);
/* Frees as cuMemFree does. False: no graph's memory begins there. */
bool sl_graph_mem_free_now(CUdeviceptr at, CUresult *result);
/* A context is destroyed: frees the memory kept for future graphs. */
void sl_graph_mem_drop_device(CUdevice device);

/* module.c: unloads all of a context's modules. */
void sl_module_drop_context(CUcontext ctx);

/* space.c: addresses and the memory behind them. See space.h. */

/* companion_link.c: this device's companion. Results are CUresults. */
SL_MUST_CHECK CUresult sl_companion_start(CUdevice device);
SL_MUST_CHECK CUresult sl_companion_call(CUdevice device, const struct sl_cp_request *q,
	const struct sl_sg_extent *extents, int fd, struct sl_cp_symbol *reply);
bool sl_companion_runs(CUdevice device);
/* Tells a running companion the GPUs' memory, at its start or after a move. */
SL_MUST_CHECK CUresult sl_companion_init(CUdevice device);
/* A socket for one stream's launches, or a negative errno. */
SL_MUST_CHECK int sl_companion_connect(CUdevice device);

#endif
