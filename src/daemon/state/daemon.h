/*
 * daemon - state that the daemon's folders share, and their calls to folders above them
 *
 * One thread (the loop) owns everything here; the measuring thread talks through gpu/measure.h. The
 * policy takes all decisions about memory: sockets, pidfds, NVML and timers become events of
 * policy/node (drive.h), and its actions become messages, timers and log lines (loop/actions.h).
 *
 * Lifetimes: peers, clients, workloads and processes are unlinked at once, and freed by settling
 * (loop/settle.h). Settling follows each callback of the loop, so pointers stay valid within one.
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
#include "daemon/store/journal.h"
#include "policy/node.h"
#include "wire/wire.h"

/* Deaths come before messages: a demand must find a dead process's memory on its way. */
#define SL_PRIORITY_DEATH   (-20)
#define SL_PRIORITY_MEASURE (-10)
#define SL_PRIORITY_TIMER   (-5)
#define SL_PRIORITY_PEER    0 /* clients; link/peer.c puts other peers behind them */
#define SL_PRIORITY_CONTROL 2
#define SL_PRIORITY_FOLLOW  4
#define SL_PRIORITY_ACCEPT  5
#define SL_PRIORITY_GREEDY  6
#define SL_PRIORITY_COMMIT  10

struct sl_daemon;
struct sl_error;
struct sl_events;
struct sl_history;
struct sl_away;
struct sl_hostpool;
struct sl_inside_door;
struct sl_ipc;
struct sl_jobs;
struct sl_listener;
struct sl_measure;
struct sl_meters;
struct sl_page;
struct sl_peer;
struct sl_peers;
struct sl_store;
struct sl_strangers;
struct sl_views;
struct sl_wire_fds;
struct sl_workload;
struct sl_probing;
struct sl_process;
struct sl_recounts;
struct sl_registry;
struct sl_resources;
struct sl_scrape;
struct sl_shares;

/* What HTTP serves; each works without the other (serving.h). */
enum { SL_SERVED_METRICS = 0, SL_SERVED_PAGE, SL_SERVED };

/* The journal's writing: state/commit.h, loop/saving.c. */
struct sl_commit {
	/* The last one that is stored, and the next; whole: what is stored is not known. */
	struct sl_journal before, journal;
	bool whole;
	sd_event_source *source; /* NULL until the journal was read */
	int error;               /* errno of the last writing; 0: it succeeded */
	bool pending, writing;   /* to be written; being written */
	sl_ns since;
	uint64_t begun, done; /* writings so far; the last one that is over */
	/* Peers whose output waits: for the next writing, and for the one in progress. */
	struct sl_link held, held_writing;
};

/* What the policy answered to WORKLOAD_ADD or WORKLOAD_SET. */
struct sl_admission {
	uint64_t workload;
	bool admitted, refused;
	uint32_t gpu_mask, reason, gpu; /* gpu: the one that caused a refusal */
	uint64_t request_bytes, limit_bytes, wanted_bytes, available_bytes;
	uint64_t over_bytes; /* set for a change */
};

/*
 * Calls from a folder to the folders above it, which it does not include. Each call is made at
 * once; loop/start.c sets the functions.
 */
struct sl_upcalls {
	/* Carries out an action; context is the daemon. The policy must not be stepped
	 * meanwhile. */
	void (*act)(void *context, const struct sl_action *action);
	/* After every callback: frees dead objects, sends views, sets timers. Cheap when idle. */
	void (*settle)(struct sl_daemon *daemon);
	/* A peer's HELLO, from a process proven to be the one that connected. */
	void (*peer_greeting)(struct sl_peer *peer, const union sl_msg *msg);
	/* A message of a greeted peer. Descriptors left in fds are closed afterwards. */
	void (*peer_message)(
		struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
	/* All queued output of the peer is sent: there is room for more. */
	void (*peer_drained)(struct sl_peer *peer);
	/* The connection is closed, possibly inside an action. Settling frees the peer. */
	void (*peer_gone)(struct sl_peer *peer);
	void (*process_died)(struct sl_process *process);
	/* A process of the workload joins, which has none: its GPU may change before. */
	void (*workload_begins)(struct sl_daemon *daemon, struct sl_workload *workload);
	/* The workload is still in the lists, for the last time. */
	void (*workload_over)(struct sl_daemon *daemon, struct sl_workload *workload);
	void (*recovered)(struct sl_daemon *daemon);    /* no report is awaited now */
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
	struct sl_link placing;   /* clients: place.link */
	struct sl_link measuring; /* clients that wait for an answer to MEASURE */
	struct sl_link dead_clients, dead_workloads, dead_processes;
	uint64_t next_workload; /* of jobs, too: a number means one thing */
	uint64_t next_client;
	uint32_t workload_count, client_count, expected_count;

	/* The journal (commit.h). */
	struct sl_commit commit;
	bool recovered; /* the journal was read; none is written before */
	bool rebooted;  /* the journal is of an earlier boot, or there is none */

	struct sl_link inbox; /* of sl_letter; drive.h */

	/* Counters. */
	uint64_t messages, grants, denials;
	uint64_t reasons[SL_REASONS];  /* events so far */
	uint64_t refusals[SL_REASONS]; /* of workloads and changes */
	/* Orders by outcome: evictions, restores. */
	uint64_t swap_causes[2][SL_SWAP_CAUSES];
	uint32_t dump_count;
	struct {
		sl_ns second;
		uint32_t lines, dropped;
	} notes[SL_REASONS]; /* lines of the log */

	/* What outlives the daemon (store/store.h). */
	struct sl_store *store;
	sd_event_source *store_io;

	/* State of modules; NULL until opened. */
	struct sl_away *away;
	sd_event_source *place_timer;
	struct sl_events *events;
	struct sl_history *history; /* NULL: no history is written */
	struct sl_hostpool *hostpool;
	struct sl_inside_door *inside; /* the daemon's own threads connect through it */
	struct sl_ipc *ipc;            /* NULL until used */
	struct sl_jobs *jobs;
	struct sl_listener *listener;
	struct sl_meters *meters;
	struct sl_page *page; /* NULL: the page is not served */
	struct sl_peers *peers;
	struct sl_probing *probing;
	struct sl_recounts *recounts;
	struct sl_registry *projects;
	struct sl_resources *resources;
	struct sl_scrape *scrape; /* NULL: metrics are not served */
	struct sl_shares *shares; /* NULL until used */
	struct sl_strangers *strangers;
	struct sl_views *views;
	/* web/serving.h: why an enabled part is not open; "" if it is */
	struct sl_error not_served[SL_SERVED];
	sd_event_source *serving_timer;
};

#endif
