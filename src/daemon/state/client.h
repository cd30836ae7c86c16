/*
 * client - one process of a workload, from its HELLO until the device has released its bytes
 *
 * The loop owns it. clients/client.h makes and buries it; the policy accounts for what it holds.
 */
#ifndef SL_DAEMON_STATE_CLIENT_H
#define SL_DAEMON_STATE_CLIENT_H

#include <sys/types.h>

#include "base/clock.h"
#include "base/list.h"
#include "daemon/state/drive.h"
#include "policy/compute/compute.h"
#include "policy/node.h"
#include "wire/wire.h"

struct sl_peer;
struct sl_process;
struct sl_workload;

enum sl_client_state {
	SL_CLIENT_EXPECTED, /* from the journal, not heard of yet */
	SL_CLIENT_JOINED,   /* connected, has not reported */
	SL_CLIENT_LIVE,
	SL_CLIENT_DYING, /* the process is dead, the device may still hold its bytes */
};

/* One demand, from ASK until COMMIT. */
struct sl_client_demand {
	uint64_t ask, epoch, bytes; /* epoch 0: waiting */
	uint32_t ordinal;
	bool former; /* granted on a lost connection; the next report counts it */
};

struct sl_client_gpu {
	uint64_t hidden_bytes;  /* as told to the policy */
	uint64_t sampled_bytes; /* hidden by the last good sample */
	uint64_t listed_bytes;  /* of its process, by the last sample of it */
	uint32_t busy_pct;      /* by the last look at all processes */
	bool sampled, was_listed;
	uint64_t dying_bytes; /* not released yet */
	uint64_t
		near_bytes; /* of its host memory, made or in the making: near this GPU */
	sl_ns unlisted_since; /* since when NVML does not list the process; 0: it does */
	sl_ns measure_by;     /* when the answer to MEASURE is due; 0: none is */
	sl_ns measure_from;
	struct sl_msg_gpu sent; /* last view; type 0: none */
	/* A REPORT waits to be booked until the report of its evicted bytes has come. */
	bool reported;
	uint64_t reported_bytes;
};

enum sl_order_state {
	SL_ORDER_NONE = 0,
	SL_ORDER_MAKING, /* its host memory is being made */
	SL_ORDER_SENT,
	SL_ORDER_OVER /* refused; settling tells the policy */
};

/* The open EVICT or RESTORE of a client; swap.c. */
struct sl_client_order {
	uint64_t id, bytes, tell_bytes;
	uint64_t host_bytes; /* enough on the host to send the order; more is better */
	uint32_t ordinal;
	enum sl_order_state state;
	enum sl_swap_cause cause; /* set when the order is over */
	bool restore;
	bool host_less; /* the host memory wanted was not available; less is tried */
	sl_ns drain, since;
	sl_ns sent; /* to the client */
};

/* The open DETACH or ATTACH of a client; place.c. */
struct sl_client_place {
	uint64_t order; /* 0: none */
	bool back;
	bool failed; /* the last one, and the log says why */
	bool checks; /* the helper is asked whether it is away */
	enum { SL_PLACE_SHUTS, SL_PLACE_SAVES, SL_PLACE_MOVES } state;
	sl_ns since, drain;
	struct sl_link link; /* sl_daemon.placing, until the journal is written */
	uint64_t commit;
	enum sl_swap_cause cause; /* set when it is over */
	struct sl_letter over;
};

struct sl_client {
	struct sl_link link;       /* workload->clients */
	struct sl_link state_link; /* sl_daemon.dying or .measuring */
	struct sl_daemon *daemon;
	uint64_t id;
	struct sl_workload
		*workload; /* NULL for a dying client of a workload that is over */
	struct sl_process *process; /* NULL once dead */
	struct sl_peer *peer;       /* NULL while not connected */
	pid_t pid;
	uid_t uid; /* of the process; before it connects, that of its workload */
	uint64_t start_ticks;
	enum sl_client_state state;
	/* probing.c */
	struct sl_link probe_link; /* sl_probing.clients */
	enum sl_probe probe;
	enum sl_client_condition condition; /* as told to the policy */
	bool probe_asked;                   /* a PROBE was sent to it */
	sl_ns pulse_due;                    /* 0: no sign of life is due */
	struct sl_compute_client compute;   /* meters.c */
	bool expected;                      /* the policy waits for its report */
	/* The journal of an earlier daemon names it, so it may have host memory. */
	bool outlived;
	bool known;      /* it has reported to this daemon, so the accounts are right */
	bool doubted;    /* one of its reports was cut, and the log says so */
	bool superseded; /* its process now runs another program */
	sl_ns measure_second;   /* second in which it last asked to be measured */
	uint32_t measure_asked; /* number of requests in that second */
	bool view_owed;         /* views are held back until it reads */
	sl_ns changed_at;       /* its accounts last changed, for judging samples */
	sl_ns died_at, lost_at;
	struct sl_client_demand *demands;
	uint32_t demand_count, demand_room;
	/* swap.c, hostpool.c */
	bool swaps;       /* as the policy knows */
	bool host_failed; /* making one of its files has failed */
	struct sl_client_order order;
	struct sl_letter order_over;  /* swap.c */
	struct sl_letter stop_failed; /* stopper.c */
	sl_ns moved_at;               /* when its last order ended; 0: never */
	struct sl_link host_files;
	uint64_t host_bytes, host_making_bytes, host_short_bytes;
	uint64_t chunk_bytes;            /* largest chunk; 0: not told */
	sl_ns host_not_before;           /* until then no file is made ahead of need */
	sl_ns host_given_at;             /* when it got its last file; 0: never */
	uint32_t host_making, host_next; /* files in the making; number of the last one */
	/* place.c */
	struct sl_client_place place;
	/* It is away, or may be: the most of its contexts on one GPU. 0: it is there. */
	uint64_t away_bytes;
	/* ipc.c */
	struct sl_link offers;
	uid_t ipc_uid;               /* user of the passed descriptors */
	uint32_t ipc_fds, ipc_waits; /* charged; opens that wait */
	bool ipc_unsettled;          /* it is back; it may still repeat earlier offers */
	struct sl_link grave;
	uint32_t gpu_count;
	uint8_t gpu_numbers[SL_NODE_GPUS_MAX];
	/* place.c: the GPU numbers where its contexts are, or were when it left */
	uint8_t home[SL_NODE_GPUS_MAX];
	struct sl_client_gpu gpus[]; /* by ordinal */
};

#endif
