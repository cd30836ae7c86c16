/*
 * daemon - what sluiced knows, and how its parts are wired
 *
 * One thread (the loop) owns everything here; the measuring thread talks through measure.h.
 * The daemon decides nothing about memory: sockets, pidfds, NVML and timers become events of
 * policy/node, and its actions become messages, timers and log lines (drive.h).
 *
 * Lifetimes: peers, clients, workloads and processes are unlinked at once but freed only by
 * sl_daemon_settle(), which runs after each callback of the loop, so that nothing in the
 * middle of a callback points at freed memory.
 */
#ifndef SL_DAEMON_STATE_DAEMON_H
#define SL_DAEMON_STATE_DAEMON_H

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/list.h"
#include "daemon/config/config.h"
#include "daemon/store/journal.h"
#include "daemon/core/lock.h"
#include "daemon/core/map.h"
#include "daemon/gpu/measure.h"
#include "policy/node.h"
#include "wire/wire.h"

/* Deaths before messages: who asks for what a dead process held must find it on its way. */
#define SL_PRIORITY_DEATH   (-20)
#define SL_PRIORITY_MEASURE (-10)
#define SL_PRIORITY_TIMER   (-5)
#define SL_PRIORITY_PEER    0 /* clients; share.c gives others a place behind */
#define SL_PRIORITY_CONTROL 2
#define SL_PRIORITY_FOLLOW  4
#define SL_PRIORITY_ACCEPT  5
#define SL_PRIORITY_GREEDY  6
#define SL_PRIORITY_COMMIT  10

struct sl_client;
struct sl_entry;
struct sl_history;
struct sl_hostpool;
struct sl_http;
struct sl_inside_door;
struct sl_ipc;
struct sl_job_task;
struct sl_jobs;
struct sl_journal_writer;
struct sl_page;
struct sl_peer;
struct sl_registry;
struct sl_resources;
struct sl_shares;

/* What crossed the link for a workload on one GPU, and what need not, since we know it. */
struct sl_moved {
	uint64_t out_bytes, in_bytes, clean_bytes;
};

/* One GPU, by UUID. Its place in sl_daemon.gpus is its number in the policy, for good. */
struct sl_gpu {
	bool known;   /* this place is taken */
	bool present; /* in NVML's latest list */
	bool managed; /* the policy has it */
	bool taken;   /* another daemon has its lock */
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char name[64], pci[32];
	int node; /* its NUMA node; -1: it has none, or nobody says */
	uint64_t pci_key;
	uint32_t rank; /* CUDA's number with CUDA_DEVICE_ORDER=PCI_BUS_ID */
	uint64_t capacity_bytes, reserve_bytes;
	bool reserve_is_ours;  /* context_reserve is more than it has */
	uint64_t driver_bytes; /* of the reserve, as NVML last said: the driver's own */
	char why_not[160];     /* why it is not managed, or lost */
	bool lost;             /* as the policy knows; clients/gpu_loss.c */
	bool unreachable;      /* since it is lost, NVML could not be asked about it */
	sl_ns reopen_at;       /* while it is lost: when to try with a new NVML session */
	int lock_fds[SL_LOCK_DIRS_MAX];
	/* measuring (reconcile.c) */
	bool asked;
	sl_ns asked_at, due, pause; /* next question; distance between urgent ones */
	sl_ns hurried_at;
	sl_ns measured_at, full_at; /* 0: never */
	sl_ns counted_at;           /* the look began then that found unmanaged_bytes */
	sl_ns look_from; /* somebody waits for one that begins no earlier; 0: nobody */
	uint64_t used_bytes, unmanaged_bytes, overhead_bytes, overhead_before;
	bool unsure;
	uint32_t utilisation_pct;
	bool by_process;       /* NVML says what each process did, as of full_at */
	uint32_t busy_sum_pct; /* of all processes */
	bool complained;
	/* Bytes per second of orders so far, smoothed, and as the policy knows them; 0: unknown
	 * (swap.c) */
	struct sl_link_rate {
		uint64_t measured, told;
	} link_out, link_in;
	struct sl_moved moved; /* of all workloads so far */
};

/* One living process that matters: a client's, or the root of a workload. */
struct sl_process {
	struct sl_daemon *daemon;
	pid_t pid;
	uint64_t start_ticks;
	int pidfd;
	sd_event_source *source;
	unsigned int users;
	bool dead;
	struct sl_client *client;     /* the living one, or NULL */
	struct sl_link roots;         /* workloads */
	struct sl_process_look *look; /* at what it maps; process.c */
	struct sl_link grave;
};

struct sl_workload {
	struct sl_link link; /* sl_daemon.workload_list, by id */
	uint64_t id;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
	uid_t uid;
	pid_t root_pid;
	uint64_t root_start;
	struct sl_process *root; /* NULL once dead */
	struct sl_link root_link;
	struct sl_entry
		*entry; /* entry.c; NULL: it has no socket of its own, or no more */
	/* Its processes come by that socket, and which users they are says nothing. */
	bool is_contained;
	char name[64], project[64], command[128];
	struct sl_amount request, limit;
	uint64_t request_bytes, limit_bytes;
	uint64_t
		former_limit_bytes; /* a larger one that what it has may be of; 0: none */
	int32_t priority;
	uint32_t flags;   /* SL_WORKLOAD_* */
	sl_ns wait_max;   /* its own longest wait, 0: the configuration's */
	sl_ns warm_after; /* 0: never */
	sl_ns idle_grace; /* 0: within its request, too, it takes turns with bursts */
	enum sl_park_state park;
	struct sl_moved moved[SL_NODE_GPUS_MAX]; /* by ordinal */
	/* Who asked for its end: user number + 1, as {user} travels; 0: the daemon before knew. */
	uint64_t stop_asker;
	sl_ns kill_at;       /* `sluice stop`: when SIGKILL follows; 0: nobody asked */
	sl_ns events_second; /* events.c: when events of it were counted, and how many */
	uint32_t events_count;
	uint64_t denials; /* of its demands */
	uint32_t gpu_count;
	uint8_t gpus
		[SL_NODE_GPUS_MAX]; /* numbers, by rank: CUDA ordinals of its processes */
	sl_ns born;
	struct sl_link clients; /* living ones */
	bool over;
	struct sl_job_task *task; /* jobs/queue.c; NULL: a `sluice run` without a request */
	bool has_shim;            /* its root is a shim of ours, not the program */
	bool by_queue; /* as the journal had it: parked for others, not by a person */
	bool leaving;  /* the same, and on its way there */
	/* views.c */
	uint32_t view_mask; /* bit per ordinal */
	sl_ns view_sent;
	struct sl_link view_link;
	struct sl_link grave;
};

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
	bool former; /* granted on a connection that is lost; the next report counts it */
};

struct sl_client_gpu {
	uint64_t hidden_bytes;  /* as told to the policy */
	uint64_t sampled_bytes; /* hidden by the last good sample */
	uint64_t listed_bytes;  /* of its process, by the last sample that looked at it */
	uint32_t busy_pct;      /* what it did, by the last look at all */
	bool sampled, was_listed;
	uint64_t dying_bytes; /* what is still to be released */
	uint64_t
		near_bytes; /* of the host memory it has and that is being made: near this GPU */
	sl_ns unlisted_since; /* NVML stopped to list the process, 0: it does list it */
	sl_ns measure_by;     /* an answer to MEASURE is due then, 0: none */
	sl_ns measure_from;
	struct sl_msg_gpu sent; /* last view; type 0: none */
	/* A REPORT that is not booked yet: what of it is evicted comes after it. */
	bool reported;
	uint64_t reported_bytes;
};

/* What HTTP serves, each without the other if need be (serving.h). */
enum { SL_SERVED_METRICS = 0, SL_SERVED_PAGE, SL_SERVED };

enum sl_order_state {
	SL_ORDER_NONE = 0,
	SL_ORDER_MAKING, /* host memory for it is being made */
	SL_ORDER_SENT,
	SL_ORDER_OVER /* refused; the policy is told when the daemon settles */
};

/* The open EVICT or RESTORE of a client; swap.c. */
struct sl_client_order {
	struct sl_link link; /* sl_daemon.swap_over */
	uint64_t id, bytes, tell_bytes;
	uint64_t host_bytes; /* it can be sent with so much on the host; more is better */
	uint32_t ordinal;
	enum sl_order_state state;
	enum sl_swap_cause cause; /* when it is over */
	bool restore;
	bool host_less; /* what was wanted for it could not be had, and less is tried */
	sl_ns drain, since;
	sl_ns sent; /* to the client */
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
	uint64_t start_ticks;
	enum sl_client_state state;
	/* probing.c */
	struct sl_link probe_link; /* sl_daemon.probed */
	enum sl_probe probe;
	enum sl_client_condition condition; /* as told to the policy */
	bool probe_asked;                   /* its protocol knows PROBE */
	sl_ns pulse_due;                    /* 0: it need not say anything */
	bool expected;                      /* the policy waits for its report */
	/* The journal of an earlier daemon names it: it may have memory on the host */
	bool outlived;
	bool known;      /* has reported to this daemon: the books are right about it */
	bool doubted;    /* a report of it was cut, and the log says so */
	bool superseded; /* its process lives on with another program */
	sl_ns measure_second;   /* when the second began in which it asked */
	uint32_t measure_asked; /* so often to be measured */
	bool view_owed;         /* views were held back because it does not read */
	sl_ns changed_at;       /* its accounts last changed, for judging samples */
	sl_ns died_at, lost_at;
	struct sl_client_demand *demands;
	uint32_t demand_count, demand_room;
	/* swap.c, hostpool.c */
	bool swaps;       /* as the policy knows */
	bool host_failed; /* one of the files that are being made could not be */
	struct sl_client_order order;
	sl_ns moved_at; /* when its last order ended, 0: there was none */
	struct sl_link host_files;
	uint64_t host_bytes, host_making_bytes, host_short_bytes;
	uint64_t chunk_bytes;  /* the largest that it moves as a whole; 0: not told */
	sl_ns host_not_before; /* nothing is made ahead of need until then */
	sl_ns host_given_at;   /* when its last file was, 0: never */
	uint32_t host_making, host_next; /* files that are being made; the last number */
	/* ipc.c */
	struct sl_link offers;
	uid_t ipc_uid;               /* whose descriptors they are */
	uint32_t ipc_fds, ipc_waits; /* charged; opens that wait */
	bool ipc_unsettled;          /* it is back and may offer more of what it had */
	struct sl_link grave;
	uint32_t gpu_count;
	uint8_t gpu_numbers[SL_NODE_GPUS_MAX];
	struct sl_client_gpu gpus[]; /* by ordinal */
};

/* What the policy answered to WORKLOAD_ADD or WORKLOAD_SET. */
struct sl_admission {
	uint64_t workload;
	bool admitted, refused;
	uint32_t gpu_mask, reason, gpu; /* gpu: the one that decided a refusal */
	uint64_t request_bytes, limit_bytes, wanted_bytes, available_bytes;
	uint64_t over_bytes; /* of a change */
};

struct sl_daemon {
	sd_event *loop;
	struct sl_config config;
	const char *config_path;  /* never NULL; the usual one may be absent */
	const char *log_override; /* or NULL */
	char socket_path[SL_CONFIG_TEXT_MAX], state_dir[SL_CONFIG_TEXT_MAX];
	char data_dir[SL_CONFIG_TEXT_MAX];
	uint64_t epoch;      /* this instance */
	uint64_t grant_salt; /* added to the policy's epochs on the wire */
	sl_ns started;

	struct sl_arena *arena;
	struct sl_node *node;
	struct sl_admission admission;
	sl_ns wake_at;
	bool wake_changed;
	sd_event_source *wake_timer;

	struct sl_gpu gpus[SL_NODE_GPUS_MAX];
	uint32_t gpu_count; /* places taken */
	struct sl_measure *measure;
	sd_event_source *measure_io, *measure_timer, *inventory_timer;
	sl_ns measure_timer_at;
	bool nvml_ok, inventory_seen;
	char nvml_text[256], driver[32];

	struct sl_map processes, workloads, clients;
	struct sl_link workload_list;
	struct sl_link dying;     /* clients: state_link */
	struct sl_link measuring; /* clients that wait for an answer to MEASURE */
	struct sl_link looks;     /* control/recount.c */
	sd_event_source *look_timer;
	uint64_t next_workload; /* and job: one space, so that a number means one thing */
	uint64_t next_client;
	uint32_t workload_count, client_count, expected_count;

	int listen_fd, socket_lock_fd, spare_fd;
	sd_event_source *listen_io;
	struct sl_link peers, greeting; /* greeting: no HELLO yet, by age */
	sd_event_source *greeting_timer;
	uint32_t peer_count, dump_count;

	struct sl_link views_ready, views_later;
	sd_event_source *view_timer;
	bool view_timer_on;

	bool ended;     /* a signal came before it was ready */
	bool recovered; /* the journal was read; before that none is written */
	struct sl_journal_writer *journal;
	sd_event_source *journal_io, *commit_source;
	int journal_error; /* errno of the last writing, 0: it is well */
	bool commit_pending, commit_writing; /* to be written; being written */
	sl_ns commit_since;
	uint64_t commit_begun, commit_done; /* writings so far; the last that is over */
	bool rebooted; /* what was written before is of another boot, or nothing is there */
	/* Peers whose output waits for the journal to be written, and being written. */
	struct sl_link held, held_writing;

	struct sl_map strangers; /* by pid */
	struct sl_link stranger_list;
	uint64_t next_stranger;
	uint32_t stranger_count, stranger_round;
	struct sl_link probed; /* clients: probe_link */
	uint32_t probed_count;
	sd_event_source *probe_timer;
	sl_ns probe_timer_at;
	struct sl_link stop_failures; /* stopper.c: to be told when the policy is done */

	struct sl_link dead_peers, dead_clients, dead_workloads, dead_processes;
	struct sl_events *events; /* NULL until made */
	struct sl_shares *shares; /* NULL until used */
	struct sl_ipc *ipc;       /* NULL until used */
	struct sl_hostpool *hostpool;
	struct sl_link swap_over; /* clients: order.link */
	/* Orders that ended so: evictions, restores. */
	uint64_t swap_causes[2][SL_SWAP_CAUSES];
	uint64_t share_salt;
	uint64_t messages, grants, denials;
	uint64_t reasons[SL_REASONS];      /* events so far */
	uint64_t refusals[SL_REASONS];     /* of workloads and changes */
	struct sl_registry *projects; /* NULL until opened */
	struct sl_jobs *jobs;              /* NULL until opened */
	struct sl_resources *resources;    /* NULL until opened */
	struct sl_http *http;              /* NULL: metrics are not served */
	struct sl_history *history;        /* NULL: none is written */
	struct sl_inside_door *inside;     /* by which threads of ours come in */
	struct sl_page *page;              /* NULL: the page is not served */
	/* serving.h: why a part is not open though it should be; "" if it is well */
	struct sl_error not_served[SL_SERVED];
	sd_event_source *serving_timer;
	struct {
		sl_ns second;
		uint32_t lines, dropped;
	} notes[SL_REASONS], peer_lines;
};

/*
 * Makes a daemon of a configuration (copied): GPUs found, journal read, socket open. The loop
 * is not run. On error err says what and the remedy. 0 or negative errno.
 */
SL_MUST_CHECK int sl_daemon_init(struct sl_daemon *daemon, const struct sl_config *config,
	const char *config_path, const char *log_override, struct sl_error *err);
/* Runs until SIGTERM or SIGINT. 0 or negative errno. */
SL_MUST_CHECK int sl_daemon_run(struct sl_daemon *daemon);
/* Closes everything and unlinks the socket. Right after a failed init, too. */
void sl_daemon_fini(struct sl_daemon *daemon);

/* After every callback: frees the dead, sends ready views, sets timers. Cheap when idle. */
void sl_daemon_settle(struct sl_daemon *daemon);
/* Tells the policy the times of the configuration. */
void sl_daemon_configure(struct sl_daemon *daemon);
/* The journal must be written before what is held leaves; soon, together with others. */
void sl_daemon_commit_soon(struct sl_daemon *daemon);
/* A timer of the loop, off until sl_timer_set. 0 or negative errno. */
SL_MUST_CHECK int sl_timer_new(struct sl_daemon *daemon, int64_t priority,
	sd_event_time_handler_t handler, sd_event_source **out);
/* Fires at the given time; SL_NS_NEVER turns it off. */
void sl_timer_set(sd_event_source *timer, sl_ns at);

#endif
