/*
 * proto - the messages between the software GPU's processes
 *
 * Three kinds of process: a *client* (any program with the software GPU's libcuda or NVML loaded),
 * the *server* (stands for the kernel's driver; one per box), and a client's *companions* (one per
 * device on which it loaded a module; they run kernels). All talk over SOCK_SEQPACKET in fixed
 * structures, one request in flight per socket; all are built together, so a version word is
 * enough.
 *
 * Device memory is one sparse memfd per GPU, cut in pages of SL_SG_PAGE. A handle is a list of
 * extents of pages; every process maps the extents it needs. Sizes are bytes unless named.
 */
#ifndef SL_SOFTGPU_LINK_PROTO_H
#define SL_SOFTGPU_LINK_PROTO_H

#include "softgpu/link/settings.h"
#include "base/hostmodule.h"

#include <sys/types.h>

#define SL_SG_VERSION     7u
#define SL_SG_PAGE        (2 * SL_MIB) /* the granularity of cuMemCreate */
#define SL_SG_EXTENTS_MAX 4096u        /* pieces of one handle; more is out-of-memory */
#define SL_SG_PROCS_MAX   1024u
#define SL_SG_FDS_MAX     SL_SOFTGPU_GPUS_MAX
#define SL_SG_EVENTS_MAX  256u /* kept on the board */
#define SL_SG_BOARD_BYTES 4096u
#define SL_SG_WORDS_MAX   16384u /* events that several processes know, at a time */

struct sl_sg_extent {
	uint32_t first, count; /* pages of the device's memfd */
};

/*
 * State of the box, behind the last page of the first GPU's memfd, where every process may read it
 * without a request. Only the server writes it, except link_free_ns[GPU][way] (way 0: from the GPU,
 * 1: to it). In link_free_ns each process records until when its copy occupies the link. A GPU's
 * generation is even while it works and odd while it is lost; a process that has seen one
 * generation cannot use the next. Event n is at event[n % SL_SG_EVENTS_MAX], written before
 * event_count includes it.
 */
struct sl_sg_event {
	uint32_t device, xid;
};
struct sl_sg_board {
	uint32_t generation[SL_SOFTGPU_GPUS_MAX];
	uint32_t event_count; /* futex, shared between processes */
	uint32_t spare;
	struct sl_sg_event event[SL_SG_EVENTS_MAX];
	uint64_t link_free_ns[SL_SOFTGPU_GPUS_MAX][2];
};

/*
 * An interprocess event. The process that records writes `recorder` and counts `recorded` up;
 * `reached` follows when its stream gets there. Another event may use the slot later, with another
 * generation.
 */
struct sl_sg_words {
	uint64_t generation, recorded, reached, recorder;
};

/* client to server ------------------------------------------------------------------------ */

enum sl_sg_op {
	SL_SG_HELLO =
		1,    /* value: SL_SG_VERSION; reply: struct sl_sg_hello and the memfds */
	SL_SG_CREATE, /* device, value: bytes; reply: id, extents */
	SL_SG_RELEASE,   /* id */
	SL_SG_EXPORT,    /* id; reply: a descriptor for the handle */
	SL_SG_IMPORT,    /* one descriptor; reply: id, device, value, extents */
	SL_SG_HIDE,      /* device, value: bytes more on the GPU; all or nothing */
	SL_SG_UNHIDE,    /* device, value: bytes fewer */
	SL_SG_CONTEXT,   /* device, value: +1 or -1 contexts, for the process list */
	SL_SG_BUSY,      /* device, value: nanoseconds of work done since the last one */
	SL_SG_INFO,      /* device; reply: live figures */
	SL_SG_FIGURES,   /* device; reply: struct sl_sg_figures, as old as the lag */
	SL_SG_COMPANION, /* device; one descriptor: the socket of a companion to start */
	SL_SG_OPEN,      /* id of any client's handle; reply as for an import */
	SL_SG_LOSE,      /* device: falls off the bus, with an Xid of value */
	SL_SG_REVIVE,    /* device: works again, for processes that start later */
	SL_SG_XID,       /* device, value: only reports that Xid */
	SL_SG_EVENT_WORDS, /* reply: the descriptor of all events' words */
	SL_SG_EVENT_NEW,   /* reply: id, value: the client's signature */
	SL_SG_EVENT_OPEN,  /* id; reply as before */
	SL_SG_EVENT_CLOSE, /* id: the client's signature */
	/* One descriptor: a socket on which the server sends the requests SL_SG_LOCK to
	   SL_SG_UNLOCK, one at a time, and the client answers each with a struct sl_sg_reply.
	   value: the thread that does so. */
	SL_SG_CONTROL,
	SL_SG_STATE, /* value: a pid; reply: value: CUprocessState, id: that thread */
	SL_SG_LOCK, /* value: a pid, id: milliseconds, 0: no limit. Answered once it is done */
	SL_SG_CHECKPOINT, /* value: a pid */
	SL_SG_RESTORE, /* value: a pid, id: the number of GPU i's new one in the four bits from
			  4 i */
	SL_SG_UNLOCK, /* value: a pid */
	SL_SG_AWAY, /* the client gives up all that it has on GPUs, but keeps its handles */
	SL_SG_BACK,    /* id: as for SL_SG_RESTORE. All or nothing */
	SL_SG_EXTENTS, /* id; reply: as for SL_SG_CREATE */
};

/* The number of GPU `device` after a move. */
static inline uint32_t sl_sg_moved_to(uint64_t map, uint32_t device)
{
	return (uint32_t)(map >> (4 * device)) & 15;
}

struct sl_sg_request {
	uint32_t op;
	uint32_t device;
	uint64_t id;
	uint64_t value;
};

/* Result of a request: a CUresult's number; extents follow the structure. */
struct sl_sg_reply {
	int32_t result;
	uint32_t device;
	uint64_t id;
	uint64_t value;
	uint64_t free_bytes, total_bytes;
	uint32_t extent_count;
	uint32_t spare;
};

struct sl_sg_device {
	char name[64];
	unsigned char uuid[16];
	uint32_t bus; /* PCI bus; domain 0, device 0 */
	uint32_t spare;
};

struct sl_sg_hello {
	struct sl_sg_reply reply;
	uint64_t gpus, memory_bytes, reserve_bytes;
	uint64_t h2d_bytes_per_s, d2h_bytes_per_s, duplex_pct, pageable_pct;
	uint64_t context_bytes, module_bytes, launch_bytes;
	uint64_t create_us, map_us, release_us, pin_us, queue_ops;
	uint64_t process_use, drop_pins;
	struct sl_sg_device device[SL_SOFTGPU_GPUS_MAX];
	char faults[1024];
};

struct sl_sg_process {
	uint32_t pid;
	uint32_t busy_pct; /* its own work's share of the last second */
	uint64_t used_bytes;
};

struct sl_sg_figures {
	struct sl_sg_reply reply;
	uint64_t total_bytes, reserved_bytes, used_bytes; /* used without reserved */
	uint32_t busy_pct, process_count;
	struct sl_sg_process process[SL_SG_PROCS_MAX];
};

/* client to companion ----------------------------------------------------------------------- */

enum sl_cp_op {
	SL_CP_INIT = 1, /* the memfds of all devices */
	SL_CP_MAP, /* address, bytes, prot, device, extents; value 1: replaces another mapping */
	SL_CP_MAP_FD, /* address, bytes, prot; one descriptor, from its start */
	SL_CP_UNMAP,  /* address, bytes: makes the range unreachable */
	SL_CP_LOAD, /* one descriptor with the image, value: the driver's version; reply value:
		       module. On failure the log, if there is one, is in place of the image */
	SL_CP_UNLOAD,     /* value: module */
	SL_CP_KERNEL,     /* value: module, index; reply: struct sl_cp_symbol */
	SL_CP_GLOBAL,     /* value: module, index; reply: struct sl_cp_symbol */
	SL_CP_SET_GLOBAL, /* value: module, index, address */
	SL_CP_CONNECT,    /* one descriptor: a socket that takes struct sl_cp_launch */
};

struct sl_cp_request {
	uint32_t op;
	uint32_t prot;
	uint32_t device;
	uint32_t index;
	uint64_t value;
	uint64_t address, bytes;
	uint32_t extent_count, spare;
};

struct sl_cp_reply {
	int32_t result; /* a CUresult's number */
	uint32_t kernels, globals;
	uint32_t spare;
	uint64_t value;
};

struct sl_cp_symbol {
	struct sl_cp_reply reply;
	char name[256];
	uint64_t bytes; /* of a global */
	uint32_t shared_bytes, local_bytes, max_threads, registers,
		const_bytes; /* of a kernel */
	uint32_t param_count;
	uint32_t param_bytes[SL_HOSTMODULE_PARAMS];
	uint32_t param_at[SL_HOSTMODULE_PARAMS]; /* offsets, as in one packed buffer */
};

#define SL_CP_PARAM_BYTES 4096u

struct sl_cp_launch {
	uint64_t module;
	uint32_t kernel;
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	uint32_t param_bytes; /* used: no more of the message is sent */
	_Alignas(16) uint8_t params[SL_CP_PARAM_BYTES];
};
#define SL_CP_LAUNCH_BYTES(l) (offsetof(struct sl_cp_launch, params) + (l)->param_bytes)

/* Sends one message with up to SL_SG_FDS_MAX descriptors (kept by the caller). 0 or -errno. */
SL_MUST_CHECK int sl_sg_send(int socket, const void *head, size_t head_bytes,
	const void *tail, size_t tail_bytes, const int *fds, unsigned fd_count);

/* The CUDA version of the driver in this process: from its environment, or the default. */
int sl_softgpu_cuda_version(void);

/* The board behind the memfd of the box's first GPU, or NULL. Read-only unless to_write. */
struct sl_sg_board *sl_sg_board_map(int memfd, bool to_write);

/*
 * Receives one message of at most `size` bytes. Returns its length, 0 at the end of the connection,
 * or -errno. Descriptors go to fds (the caller's now, close-on-exec) and their number to *fd_count,
 * which has the capacity on entry; others are closed. fds may be NULL.
 */
SL_MUST_CHECK ssize_t sl_sg_receive(
	int socket, void *data, size_t size, int *fds, unsigned *fd_count);

#endif
