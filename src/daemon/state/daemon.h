/*
 * daemon - what the folders of the daemon share, and what they tell each other upwards
 *
 * One thread (the loop) owns everything here; the measuring thread talks through gpu/measure.h.
 * The daemon decides nothing about memory: sockets, pidfds, NVML and timers become events of
 * policy/node (drive.h), and its actions become messages, timers and log lines (loop/actions.h).
 *
 * Lifetimes: peers, clients, workloads and processes are unlinked at once, and freed by settling
 * (loop/settle.h). That runs after each callback of the loop, so nothing in the middle of a
 * callback points at freed memory.
 */
#ifndef SL_DAEMON_STATE_DAEMON_H
#define SL_DAEMON_STATE_DAEMON_H

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/list.h"
#include "daemon/config/config.h"
#include "daemon/core/map.h"
#include "daemon/state/gpu.h"
#include "policy/node.h"
#include "wire/wire.h"

/* Deaths before messages: a demand for what a dead process held must find it on its way. */
#define SL_PRIORITY_DEATH   (-20)
#define SL_PRIORITY_MEASURE (-10)
#define SL_PRIORITY_TIMER   (-5)
#define SL_PRIORITY_PEER    0 /* clients; link/peer.c gives others a place behind */
#define SL_PRIORITY_CONTROL 2
#define SL_PRIORITY_FOLLOW  4
#define SL_PRIORITY_ACCEPT  5
#define SL_PRIORITY_GREEDY  6
#define SL_PRIORITY_COMMIT  10

struct sl_daemon;
struct sl_error;
struct sl_events;
struct sl_history;
struct sl_hostpool;
struct sl_http;
struct sl_inside_door;
struct sl_ipc;
struct sl_jobs;
struct sl_journal_writer;
struct sl_listener;
struct sl_measure;
struct sl_page;
struct sl_peer;
struct sl_peers;
struct sl_strangers;
struct sl_views;
struct sl_wire_fds;
struct sl_workload;
struct sl_probing;
struct sl_process;
struct sl_recounts;
struct sl_registry;
struct sl_resources;
struct sl_shares;

/* What HTTP serves, each without the other if need be (serving.h). */
enum { SL_SERVED_METRICS = 0, SL_SERVED_PAGE, SL_SERVED };

/* The journal's writing: state/commit.h, loop/saving.c. */
struct sl_commit {
	struct sl_journal_writer *writer;
	sd_event_source *io, *source; /* source: NULL until the thread is there */
	int error;                    /* errno of the last writing, 0: it is well */
	bool pending, writing;        /* to be written; being written */
	sl_ns since;
	uint64_t begun, done; /* writings so far; the last that is over */
	/* Peers whose output waits for the journal to be written, and being written. */
	struct sl_link held, held_writing;
};

/* What the policy answered to WORKLOAD_ADD or WORKLOAD_SET. */
struct sl_admission {
	uint64_t workload;
	bool admitted, refused;
	uint32_t gpu_mask, reason, gpu; /* gpu: the one that decided a refusal */
	uint64_t request_bytes, limit_bytes, wanted_bytes, available_bytes;
	uint64_t over_bytes; /* of a change */
};

/*
 * What a folder tells those above it, which it does not include. Each is called where it happened;
 * loop/start.c names the functions.
 */
struct sl_upcalls {
	/* The policy wants that done; context is the daemon. It must not be stepped meanwhile. */
	void (*act)(void *context, const struct sl_action *action);
	/* After every callback of the loop: frees the dead, sends ready views, sets timers. Cheap
	 * when idle. */
	void (*settle)(struct sl_daemon *daemon);
	/* A peer's HELLO, of a process that is proven to be the one that connected. */
	void (*peer_greeting)(struct sl_peer *peer, const union sl_msg *msg);
	/* A message of a greeted peer. What is left in fds is closed afterwards. */
	void (*peer_message)(
		struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
	/* All that waited for the peer is out: there is room for more. */
	void (*peer_drained)(struct sl_peer *peer);
	/* Its connection is closed, legally inside an action; it is freed when settling. */
	void (*peer_gone)(struct sl_peer *peer);
	void (*process_died)(struct sl_process *process);
	/* It is still in the lists, for the last time. */
	void (*workload_over)(struct sl_daemon *daemon, struct sl_workload *workload);
	void (*recovered)(struct sl_daemon *daemon); /* no report is awaited any more */
	void (*gpus_changed)(struct sl_daemon *daemon); /* found, lost, back, resized */
	void (*projects_changed)(struct sl_daemon *daemon);
	/* A job of this project has not ended: err says which, and the remedy. */
	bool (*project_is_needed)(const struct sl_daemon *daemon, const char *project,
		struct sl_error *err);
};

struct sl_daemon {
	const struct sl_upcalls *up;
	sd_event *loop;
	sl_ns started;
	bool ended;          /* a signal came before it was ready */
	uint64_t epoch;      /* this instance */
	uint64_t grant_salt; /* added to the policy's epochs on the wire */
	uint64_t share_salt;

	/* The configuration, and the paths that follow from it. */
	struct sl_config config;
	const char *config_path;  /* never NULL; the usual one may be absent */
	const char *log_override; /* or NULL */
	char socket_path[SL_CONFIG_TEXT_MAX], state_dir[SL_CONFIG_TEXT_MAX];
	char data_dir[SL_CONFIG_TEXT_MAX];

	/* The policy (drive.h), its last admission, and when it wants to be stepped. */
	struct sl_arena *arena;
	struct sl_node *node;
	struct sl_admission admission;
	sl_ns wake_at;
	bool wake_changed;
	sd_event_source *wake_timer;

	/* GPUs, and the thread that asks NVML about them (gpu/). */
	struct sl_gpu gpus[SL_NODE_GPUS_MAX];
	uint32_t gpu_count; /* places taken */
	struct sl_measure *measure;
	sd_event_source *measure_io, *measure_timer, *inventory_timer;
	sl_ns measure_timer_at;
	bool nvml_ok, inventory_seen;
	char nvml_text[256], driver[32];

	/* Processes, workloads and clients (workloads/, clients/). */
	struct sl_map processes, workloads, clients;
	struct sl_link workload_list;
	struct sl_link dying;     /* clients: state_link */
	struct sl_link measuring; /* clients that wait for an answer to MEASURE */
	struct sl_link dead_clients, dead_workloads, dead_processes;
	uint64_t next_workload; /* and job: one space, so that a number means one thing */
	uint64_t next_client;
	uint32_t workload_count, client_count, expected_count;

	/* The journal (commit.h). */
	struct sl_commit commit;
	bool recovered; /* it was read; before that none is written */
	bool rebooted; /* what was written before is of another boot, or there is nothing */

	/* What arises inside an action, for when the policy's step is over. */
	struct sl_link stop_failures; /* workloads/stopper.c */
	struct sl_link swap_over;     /* swap/swap.c: clients, by order.link */

	/* What is counted. */
	uint64_t messages, grants, denials;
	uint64_t reasons[SL_REASONS];  /* events so far */
	uint64_t refusals[SL_REASONS]; /* of workloads and changes */
	/* Orders that ended so: evictions, restores. */
	uint64_t swap_causes[2][SL_SWAP_CAUSES];
	uint32_t dump_count;
	struct {
		sl_ns second;
		uint32_t lines, dropped;
	} notes[SL_REASONS]; /* lines of the log */

	/* What modules keep for themselves; NULL until opened. */
	struct sl_events *events;
	struct sl_history *history; /* NULL: none is written */
	struct sl_hostpool *hostpool;
	struct sl_http *http;          /* NULL: metrics are not served */
	struct sl_inside_door *inside; /* by which the daemon's own threads come in */
	struct sl_ipc *ipc;            /* NULL until used */
	struct sl_jobs *jobs;
	struct sl_listener *listener;
	struct sl_page *page; /* NULL: the page is not served */
	struct sl_peers *peers;
	struct sl_probing *probing;
	struct sl_recounts *recounts;
	struct sl_registry *projects;
	struct sl_resources *resources;
	struct sl_shares *shares; /* NULL until used */
	struct sl_strangers *strangers;
	struct sl_views *views;
	/* web/serving.h: why a part is not open though it should be; "" if it is well */
	struct sl_error not_served[SL_SERVED];
	sd_event_source *serving_timer;
};

#endif
