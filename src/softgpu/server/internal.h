/*
 * internal - shared by server.c, gpu.c, event.c and checkpoint.c only
 *
 * One thread; no lock.
 */
#ifndef SL_SOFTGPU_SERVER_INTERNAL_H
#define SL_SOFTGPU_SERVER_INTERNAL_H

#include "softgpu/server/ledger.h"

#include <sys/types.h>

/* Tags in epoll's data: every watched object begins with its kind. */
enum kind {
	KIND_LISTEN,
	KIND_KEEP,
	KIND_CLIENT,
	KIND_CONTROL,
	KIND_EXPORT,
	KIND_COMPANION
};

struct watch {
	enum kind kind;
	int fd;
};

struct client {
	struct watch watch;
	struct sl_link link;       /* in clients or dying */
	struct sl_link companions; /* struct companion.link */
	struct sl_link events;     /* event.c */
	struct sl_ledger_holder holder;
	uint32_t pid, uid;
	bool is_owner; /* of the box, or root */
	/* checkpoint.c. control: the socket of its checkpointing thread; fd -1: none */
	struct watch control;
	uint32_t control_thread;
	uint32_t order;       /* enum sl_sg_op that the thread carries out; 0: none */
	int state;            /* a CUprocessState */
	struct client *mover; /* waits for the answer; NULL: it is gone */
	uint64_t gone_ns;     /* when a dying client's memory is freed */
	uint64_t busy_ns[SL_SOFTGPU_GPUS_MAX];
	uint32_t busy_pct[SL_SOFTGPU_GPUS_MAX];
};

/* A process that runs a client's kernels; fd is a pidfd, readable after its end. */
struct companion {
	struct watch watch;
	struct sl_link link;
	uint32_t device;
};

/* A handle sent to other processes: one end of a pipe, which lives until all copies are closed. */
struct export
{
	struct watch watch;
	struct sl_link link;
	struct sl_ledger_holder holder;
	uint64_t id;
	dev_t dev;
	ino_t ino;
};

struct sl_server {
	struct sl_ledger ledger;
	struct sl_sg_board *board;
	struct sl_sg_hello hello;
	struct watch listen, keep;
	struct sl_link clients, dying, exports;
	struct sl_sg_figures *figures; /* one per GPU, as of figures_ns */
	uint64_t figures_ns;
	uint64_t busy_ns[SL_SOFTGPU_GPUS_MAX];
	uint32_t busy_pct[SL_SOFTGPU_GPUS_MAX];
	uint64_t busy_since_ns;
	uint64_t door_opens_ns; /* not 0: no connections are accepted until then */
	int epoll;
	const char *path;
};
extern struct sl_server sl_server;

/* gpu.c: the present figures for NVML. */
void sl_server_figures_take(uint64_t now_ns);
/* Utilisation is the part of the last whole second in which work ran. */
void sl_server_busy_step(uint64_t now_ns);
/* Loses a GPU, revives it, or reports an Xid. A CUresult: an error if the GPU is in that state
 * already. */
SL_MUST_CHECK int sl_server_health(const struct sl_sg_request *q);
/* checkpoint.c. CUresults; *later: the answer comes later. */
SL_MUST_CHECK int sl_server_control_new(struct client *c, int fd, uint32_t thread);
SL_MUST_CHECK int sl_server_order(
	struct client *c, const struct sl_sg_request *q, bool *later);
void sl_server_state(const struct sl_sg_request *q, struct sl_sg_reply *reply);
SL_MUST_CHECK int sl_server_back(struct client *c, uint64_t map);
/* The thread has answered, or is gone. */
void sl_server_control_read(struct watch *w);
/* The client is gone: as a target, and as a mover. */
void sl_server_control_drop(struct client *c);
/* server.c */
int sl_server_watch(struct watch *w, uint32_t events);
void sl_server_unwatch(struct watch *w);
/* event.c. Results are CUresults' numbers. */
SL_MUST_CHECK int sl_server_event_new(struct client *c, struct sl_sg_reply *reply);
SL_MUST_CHECK int sl_server_event_open(
	struct client *c, uint64_t id, struct sl_sg_reply *reply);
SL_MUST_CHECK int sl_server_event_close(struct client *c, uint64_t holder);
/* The descriptor that every process of the box maps, or -1. The server's. */
int sl_server_event_memfd(void);
/* The client is gone: ends its records. */
void sl_server_event_drop(struct client *c);
void sl_server_companion_kill(const struct companion *o);

#endif
