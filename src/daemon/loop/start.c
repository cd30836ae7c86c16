/*
 * start - start, loop, end
 *
 * The order of a start matters: first the lock (two daemons must not read one journal), then the
 * GPUs, then the journal, which refers to them. The socket comes last, so that peers find a daemon
 * that knows what the earlier one knew.
 */
#include "daemon/loop/start.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/step.h"
#include "daemon/clients/client.h"
#include "daemon/clients/gpu_loss.h"
#include "daemon/clients/ipc.h"
#include "daemon/clients/reconcile.h"
#include "daemon/clients/session.h"
#include "daemon/clients/views.h"
#include "daemon/control/entry.h"
#include "daemon/control/recount.h"
#include "daemon/gpu/inventory.h"
#include "daemon/gpu/measure.h"
#include "daemon/history/history.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/resources.h"
#include "daemon/link/inside.h"
#include "daemon/link/listener.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"
#include "daemon/loop/actions.h"
#include "daemon/loop/dispatch.h"
#include "daemon/loop/recover.h"
#include "daemon/loop/saving.h"
#include "daemon/loop/settle.h"
#include "daemon/projects/registry.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"
#include "daemon/store/store.h"
#include "daemon/swap/hostpool.h"
#include "daemon/swap/hostpool_ahead.h"
#include "daemon/swap/place.h"
#include "daemon/swap/swap.h"
#include "daemon/web/serving.h"
#include "daemon/workloads/meters.h"
#include "daemon/workloads/probing.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/strangers.h"
#include "daemon/workloads/workload.h"

/* NVML takes seconds just after the driver was loaded. */
#define INVENTORY_WAIT_MS 10000
/* NVML's, the loop's, the socket's, and a few clients'. */
#define DESCRIPTORS_MIN 64

static int on_wake(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	struct sl_event event = {.type = SL_EVENT_TIME};

	sl_drive(daemon, &event);
	sl_settle(daemon);
	return 0;
}

/* --- configuration ------------------------------------------------------------------------ */

void sl_daemon_configure(struct sl_daemon *daemon)
{
	struct sl_event event = {.type = SL_EVENT_CONFIG};

	event.config.wait_max = daemon->config.longest_wait;
	event.config.head_pass = daemon->config.head_pass;
	event.config.idle_wait = daemon->config.idle_wait;
	event.config.recover_wait = daemon->config.recover_wait;
	event.config.chain = daemon->config.resolvers;
	event.config.stop_idle = daemon->config.stop_idle;
	event.config.stop_grace = daemon->config.stop_grace;
	event.config.untakeable_after = daemon->config.untakeable_after;
	event.config.last_resort = (uint8_t)daemon->config.last_resort;
	event.config.placement = (uint8_t)daemon->config.placement;
	event.config.unmanaged = (uint8_t)daemon->config.unmanaged;
	event.config.pool_bytes = sl_hostpool_configure(daemon);
	sl_hostpool_ahead_set(daemon, sl_hostpool_swap_is_on(daemon));
	event.config.pool_member_bytes = sl_hostpool_bound(daemon);
	event.config.slack_bytes = daemon->config.host_slack;
	event.config.turn_max = daemon->config.turn_max;
	event.config.min_share_pm = daemon->config.min_share;
	event.config.evict_drain = daemon->config.evict_drain;
	event.config.detach = daemon->config.detach_contexts;
	sl_drive(daemon, &event);
	if (!sl_log_set_level_name(daemon->log_override ? daemon->log_override
							: daemon->config.log_level.text))
		sl_log_set_level(SL_LOG_INFO);
}

static int on_hangup(
	sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct sl_daemon *daemon = context;
	struct sl_config fresh;
	struct sl_error err = {0};

	if (sl_config_load(daemon->config_path, &fresh, &err) != SL_CONFIG_OK) {
		sl_error_log("%s; the old configuration stays", err.text);
		return 0;
	}
	if ((fresh.socket.text[0] &&
		    strcmp(fresh.socket.text, daemon->socket_path) != 0) ||
		(fresh.state_dir.text[0] &&
			strcmp(fresh.state_dir.text, daemon->state_dir) != 0) ||
		memcmp(&fresh.gpus, &daemon->config.gpus, sizeof(fresh.gpus)) != 0 ||
		memcmp(&fresh.gpu_groups, &daemon->config.gpu_groups,
			sizeof(fresh.gpu_groups)) != 0 ||
		strcmp(fresh.metrics.text, daemon->config.metrics.text) != 0 ||
		strcmp(fresh.page.text, daemon->config.page.text) != 0)
		sl_warning("socket, state_dir, gpus, gpu_groups, metrics and page change "
			   "with the next start only");
	fresh.gpus = daemon->config.gpus;
	fresh.gpu_groups = daemon->config.gpu_groups;
	fresh.metrics = daemon->config.metrics;
	fresh.page = daemon->config.page;
	sl_meters_changed(daemon);
	daemon->config = fresh;
	sl_daemon_configure(daemon);
	sl_events_resize(daemon);
	sl_history_configure(daemon);
	sl_registry_look_up(daemon);
	sl_jobs_gpus_changed(daemon);
	if (sl_listener_permit(daemon, &err) < 0 || sl_serving_permit(daemon, &err) < 0)
		sl_error_log("%s; the rest of the configuration is in force", err.text);
	sl_info("read %s anew", daemon->config_path);
	sl_settle(daemon);
	return 0;
}

static int on_end(
	sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct sl_daemon *daemon = context;

	sl_info("%s from process %u: ending; programs keep what they hold and run on",
		info->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM", info->ssi_pid);
	daemon->ended = true;
	(void)sd_event_exit(daemon->loop, 0);
	return 0;
}

static void take_sample(struct sl_daemon *daemon, const struct sl_measure_answer *answer)
{
	sl_reconcile_sample(daemon, answer);
	sl_jobs_measured(daemon);
	sl_dispatch_recounted(daemon);
}

static int on_measured(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_daemon *daemon = context;
	struct sl_share_turn turn = sl_share_begin();
	struct sl_measure_answer *answer;

	while ((answer = sl_measure_take(daemon->measure))) {
		if (answer->is_xid)
			sl_gpu_loss_xid(daemon, answer);
		else if (answer->is_inventory)
			sl_inventory_take(daemon, answer);
		else
			take_sample(daemon, answer);
		(void)sl_measure_answer_free(answer);
	}
	sl_settle(daemon);
	sl_share_note(daemon, SL_SHARE_MEASURE, &turn);
	return 0;
}

/* --- start -------------------------------------------------------------------------------- */

/* Raises the limit of descriptors to the most allowed: each client needs two, shared memory needs
 * more, and the default of 1,024 is soon used up. Refuses fewer than DESCRIPTORS_MIN, with which
 * parts of the start would fail, each with an error of its own. */
static int raise_descriptors(struct sl_error *err)
{
	struct rlimit limit = {0};

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			sl_debug("the limit of descriptors stays: %s", strerror(errno));
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= DESCRIPTORS_MIN)
		return 0;
	sl_error_set(err,
		"sluiced may have %llu descriptors only, and needs %d; raise the limit "
		"(ulimit -n, or LimitNOFILE= in its unit)",
		(unsigned long long)limit.rlim_cur, DESCRIPTORS_MIN);
	return sl_err_origin(-EMFILE);
}

/* Grows the table of descriptors now, before there are threads; it never shrinks. Later the loop
 * would stop for tens of milliseconds, because in a process with threads the kernel waits for
 * readers of the table. Three per client: connection, process, and what is examined. */
static void grow_descriptors(const struct sl_daemon *daemon)
{
	struct rlimit limit = {.rlim_cur = DESCRIPTORS_MIN};
	uint64_t wanted = DESCRIPTORS_MIN + 3 * daemon->config.max_clients;
	int fd;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC,
		(int)sl_min_u64(wanted, limit.rlim_cur) - 1);
	sl_closep(&fd);
}

/* For a configuration that names no folder. */
static void choose_data_dir(struct sl_daemon *daemon)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	const char *chosen = getenv("SLUICE_STATE");
	char *to = daemon->data_dir;
	size_t size = sizeof(daemon->data_dir);

	if (daemon->config.data_dir.text[0])
		(void)snprintf(to, size, "%s", daemon->config.data_dir.text);
	else if (daemon->config.state_dir.text[0] || (chosen && chosen[0]))
		(void)snprintf(to, size, "%s", daemon->state_dir);
	else if (geteuid() == 0)
		(void)snprintf(to, size, "/var/lib/sluice");
	else if (state && state[0] == '/')
		(void)snprintf(to, size, "%s/sluice", state);
	else if (home && home[0] == '/')
		(void)snprintf(to, size, "%s/.local/state/sluice", home);
	else
		(void)snprintf(to, size, "%s", daemon->state_dir);
}

static int choose_paths(struct sl_daemon *daemon, struct sl_error *err)
{
	const struct sl_config *config = &daemon->config;
	int r;

	sl_wire_str(
		daemon->socket_path, sizeof(daemon->socket_path), config->socket.text);
	if (!config->socket.text[0] &&
		sl_paths_socket(daemon->socket_path, sizeof(daemon->socket_path), err) !=
			SL_PATHS_OK)
		return sl_err_origin(-EINVAL);
	/* Clients go to that socket, and root's daemon holds the GPUs. */
	if (geteuid() != 0 && !config->socket.text[0] &&
		strcmp(daemon->socket_path, SL_PATHS_SYSTEM_SOCKET) == 0) {
		sl_error_set(err,
			"the sluiced of this machine is there already, at %s, and "
			"serves you: sluice ps shows what it has; for one of your own "
			"give a --socket",
			daemon->socket_path);
		return sl_err_origin(-EEXIST);
	}
	sl_wire_str(daemon->state_dir, sizeof(daemon->state_dir), config->state_dir.text);
	if (!config->state_dir.text[0] &&
		sl_paths_state_dir(daemon->state_dir, sizeof(daemon->state_dir), err) !=
			SL_PATHS_OK)
		return sl_err_origin(-EINVAL);
	choose_data_dir(daemon);
	r = sl_file_make_dirs(daemon->state_dir, 0755);
	if (r < 0)
		sl_error_set(err,
			"cannot make the state folder %.200s: %s; choose another with "
			"--state",
			daemon->state_dir, strerror(-r));
	return r < 0 ? r : sl_listener_check_folder(daemon->state_dir, "state", err);
}

static int add_signal(
	struct sl_daemon *daemon, int number, sd_event_signal_handler_t handler)
{
	int r = sd_event_add_signal(daemon->loop, NULL, number, handler, daemon);

	return r < 0 ? sl_err_origin(r) : 0;
}

static int on_stored(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_daemon *daemon = context;

	sl_store_take(daemon->store);
	sl_settle(daemon);
	return 0;
}

static int open_store(struct sl_daemon *daemon)
{
	int r = sl_store_new(daemon->state_dir, daemon->data_dir, &daemon->store);

	if (r == 0)
		r = sd_event_add_io(daemon->loop, &daemon->store_io,
			sl_store_fd(daemon->store), EPOLLIN, on_stored, daemon);
	if (r >= 0)
		r = sd_event_source_set_priority(daemon->store_io, SL_PRIORITY_TIMER);
	return r < 0 ? sl_err_origin(r) : 0;
}

static int add_sources(struct sl_daemon *daemon)
{
	int r = open_store(daemon);

	if (r >= 0)
		r = sl_saving_open(daemon);
	if (r >= 0)
		r = add_signal(daemon, SIGTERM, on_end);
	if (r >= 0)
		r = add_signal(daemon, SIGINT, on_end);
	if (r >= 0)
		r = add_signal(daemon, SIGHUP, on_hangup);
	if (r >= 0)
		r = sl_timer_new(daemon, SL_PRIORITY_TIMER, on_wake, &daemon->wake_timer);
	if (r >= 0)
		r = sl_timer_new(daemon, SL_PRIORITY_TIMER, sl_reconcile_timer,
			&daemon->measure_timer);
	if (r >= 0)
		r = sl_timer_new(daemon, SL_PRIORITY_TIMER, sl_inventory_timer,
			&daemon->inventory_timer);
	return r < 0 ? r : 0;
}

static int open_parts(struct sl_daemon *daemon)
{
	int r = sl_peer_open(daemon);

	if (r >= 0)
		r = sl_views_open(daemon);
	if (r >= 0)
		r = sl_strangers_open(daemon);
	if (r >= 0)
		r = sl_probing_open(daemon);
	if (r >= 0)
		r = sl_meters_open(daemon);
	if (r >= 0)
		r = sl_recount_open(daemon, sl_dispatch_late);
	if (r >= 0)
		r = sl_events_init(daemon);
	if (r >= 0)
		r = sl_place_open(daemon);
	if (r >= 0)
		r = sl_hostpool_open(daemon, "", sl_swap_host_ready);
	return r < 0 ? r : sl_hostpool_ahead_open(daemon);
}

/* What lower folders report to higher ones. */
static const struct sl_upcalls upcalls = {
	.act = sl_actions_carry_out,
	.settle = sl_settle,
	.peer_greeting = sl_session_greet,
	.peer_message = sl_dispatch_message,
	.peer_drained = sl_dispatch_drained,
	.peer_gone = sl_dispatch_gone,
	.process_died = sl_dispatch_process_died,
	.workload_begins = sl_jobs_begins,
	.workload_over = sl_dispatch_workload_over,
	.recovered = sl_jobs_recovered,
	.gpus_changed = sl_jobs_gpus_changed,
	.projects_changed = sl_jobs_projects_changed,
	.project_is_needed = sl_jobs_need_project,
};

static void set_up(struct sl_daemon *daemon, const struct sl_config *config,
	const char *config_path, const char *log_override)
{
	struct sl_link *lists[] = {&daemon->workload_list, &daemon->dying,
		&daemon->measuring, &daemon->placing, &daemon->commit.held,
		&daemon->commit.held_writing, &daemon->dead_clients,
		&daemon->dead_workloads, &daemon->dead_processes, &daemon->inbox};

	*daemon = (struct sl_daemon){.up = &upcalls};
	for (size_t i = 0; i < SL_ARRAY_LEN(lists); i++)
		sl_list_init(lists[i]);
	daemon->config = *config;
	daemon->config_path = config_path;
	daemon->log_override = log_override;
	daemon->started = sl_clock_now();
	daemon->measure_timer_at = SL_NS_NEVER;
	daemon->arena = sl_arena_new();
	daemon->node = sl_node_new(daemon->arena);
	if (getrandom(&daemon->epoch, sizeof(daemon->epoch), 0) < 0)
		daemon->epoch = sl_clock_now();
	daemon->epoch |= 1; /* 0 means none */
	if (getrandom(&daemon->share_salt, sizeof(daemon->share_salt), 0) < 0)
		daemon->share_salt = daemon->epoch;
	/* Grants of an earlier daemon must not look like ours; the low half is a counter. */
	daemon->grant_salt = daemon->epoch & 0xffffffff00000000ull;
}

/* A client that sees "ready" expects GPUs, so the start waits for the first list. The wait has an
 * end, and runs in the loop, so that a signal can end it. */
static int wait_for_gpus(struct sl_daemon *daemon)
{
	sl_ns end = sl_clock_now() + INVENTORY_WAIT_MS * SL_MS;
	int r = 1;

	while (r >= 0 && !daemon->inventory_seen && !daemon->ended) {
		sl_ns now = sl_clock_now();

		if (now >= end) {
			sl_warning("NVML has not answered for 10 s; starting without "
				   "it, on GPUs that the journal names");
			break;
		}
		r = sd_event_run(daemon->loop, (end - now) / SL_US + 1);
	}
	return r < 0 ? sl_err_origin(r) : 0;
}

static int start_measuring(struct sl_daemon *daemon)
{
	int r = sl_measure_new(&daemon->measure);

	if (r < 0)
		return r;
	r = sd_event_add_io(daemon->loop, &daemon->measure_io,
		sl_measure_fd(daemon->measure), EPOLLIN, on_measured, daemon);
	if (r < 0)
		return sl_err_origin(r);
	(void)sd_event_source_set_priority(daemon->measure_io, SL_PRIORITY_MEASURE);
	sl_measure_ask_inventory(daemon->measure);
	return wait_for_gpus(daemon);
}

static int init(struct sl_daemon *daemon, struct sl_error *err)
{
	sigset_t signals;
	int r;

	r = raise_descriptors(err);
	if (r < 0)
		return r;
	grow_descriptors(daemon);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	r = choose_paths(daemon, err);
	if (r == 0)
		r = sl_listener_lock(daemon, err);
	if (r == 0)
		r = sd_event_new(&daemon->loop);
	if (r >= 0)
		r = add_sources(daemon);
	if (r >= 0)
		r = open_parts(daemon);
	if (r < 0)
		return r;
	sl_daemon_configure(daemon);
	r = start_measuring(daemon);
	if (daemon->ended)
		return 0;
	/* A daemon that can share no GPU would only be in the way. */
	if (r == 0 && sl_inventory_is_taken(daemon, err))
		r = sl_err_origin(-EBUSY);
	if (r == 0)
		r = sl_recover_load(daemon, err);
	daemon->recovered = r == 0;
	if (r == 0)
		r = sl_registry_open(daemon, err);
	if (r == 0)
		r = sl_jobs_open(daemon, err);
	if (r == 0)
		r = sl_resources_open(daemon);
	if (r == 0)
		r = sl_inside_door_new(daemon, &daemon->inside);
	if (r == 0)
		r = sl_history_open(daemon);
	if (r == 0)
		r = sl_serving_open(daemon, err);
	if (r == 0)
		r = sl_listener_open(daemon, err);
	if (r == 0)
		sl_entry_open_all(daemon);
	sl_step(D_LISTENING);
	return r;
}

int sl_daemon_init(struct sl_daemon *daemon, const struct sl_config *config,
	const char *config_path, const char *log_override, struct sl_error *err)
{
	int r;

	set_up(daemon, config, config_path, log_override);
	r = init(daemon, err);
	if (r < 0 && !err->text[0])
		sl_error_set(err, "cannot start: %s", strerror(-r));
	return r;
}

int sl_daemon_run(struct sl_daemon *daemon)
{
	uint32_t gpus = sl_inventory_managed(daemon);
	int r;

	sl_events_add(
		daemon, &(struct sl_node_because){.reason = SL_REASON_DAEMON_STARTED});
	sl_commit_soon(daemon);
	sl_settle(daemon);
	sl_info("sluiced: ready on %s, %u GPU%s", daemon->socket_path, gpus,
		gpus == 1 ? "" : "s");
	/* If the service manager asks for it (WatchdogSec=), it kills a loop that hangs; the next
	 * daemon finds all that runs. */
	(void)sd_event_set_watchdog(daemon->loop, true);
	(void)sd_notifyf(0, "READY=1\nSTATUS=%u GPUs on %s", gpus, daemon->socket_path);
	r = sd_event_loop(daemon->loop);
	(void)sd_notify(0, "STOPPING=1");
	sl_saving_finish(daemon);
	return r < 0 ? sl_err_origin(r) : 0;
}

/* --- end ---------------------------------------------------------------------------------- */

static void drop_client(struct sl_daemon *daemon, struct sl_client *client)
{
	sl_list_unlink(&client->link);
	sl_list_unlink(&client->state_link);
	sl_probing_end(client);
	sl_meters_left(client);
	sl_ipc_client_gone(client);
	sl_hostpool_leave(client);
	client->process = sl_process_put(client->process);
	sl_list_push_tail(&daemon->dead_clients, &client->grave);
}

static void drop_objects(struct sl_daemon *daemon)
{
	while (!sl_list_is_empty(&daemon->dying))
		drop_client(daemon,
			SL_LIST_ENTRY(daemon->dying.next, struct sl_client, state_link));
	while (!sl_list_is_empty(&daemon->workload_list)) {
		struct sl_workload *workload = SL_LIST_ENTRY(
			daemon->workload_list.next, struct sl_workload, link);

		while (!sl_list_is_empty(&workload->clients))
			drop_client(daemon, SL_LIST_ENTRY(workload->clients.next,
						    struct sl_client, link));
		/* Containers live on: their folders stay for the next daemon. */
		sl_entry_close(workload);
		sl_workload_discard(daemon, workload);
	}
	sl_client_bury(daemon);
	sl_workload_bury(daemon);
	sl_process_bury(daemon);
}

void sl_daemon_fini(struct sl_daemon *daemon)
{
	sd_event_source **sources[] = {&daemon->wake_timer, &daemon->measure_io,
		&daemon->measure_timer, &daemon->inventory_timer};

	sl_inside_door_end(daemon->inside);
	/* This ends threads that enter through it. */
	sl_serving_close(daemon);
	sl_history_close(daemon);
	daemon->inside = sl_inside_door_free(daemon->inside);
	sl_listener_close(daemon);
	sl_jobs_close(daemon);
	sl_strangers_close(daemon);
	sl_peer_close(daemon);
	sl_recount_close(daemon);
	drop_objects(daemon);
	sl_probing_close(daemon);
	sl_meters_close(daemon);
	sl_views_close(daemon);
	sl_events_fini(daemon);
	sl_ipc_fini(daemon);
	sl_registry_close(daemon);
	sl_resources_close(daemon);
	sl_hostpool_close(daemon);
	sl_place_close(daemon);
	sl_share_fini(daemon);
	sl_saving_close(daemon);
	daemon->store_io = sd_event_source_disable_unref(daemon->store_io);
	daemon->store = sl_store_free(daemon->store);
	for (size_t i = 0; i < SL_ARRAY_LEN(sources); i++)
		*sources[i] = sd_event_source_disable_unref(*sources[i]);
	daemon->measure = sl_measure_free(daemon->measure);
	sl_inventory_fini(daemon);
	daemon->loop = sd_event_unref(daemon->loop);
	daemon->arena = sl_arena_free(daemon->arena);
	sl_map_fini(&daemon->processes);
	sl_map_fini(&daemon->workloads);
	sl_map_fini(&daemon->clients);
	sl_listener_unlock(daemon);
}
