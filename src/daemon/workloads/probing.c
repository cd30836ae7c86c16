/*
 * probing - two clocks per client: its last look, and when its next PULSE is due
 *
 * A client with work sends a PULSE every span; a client without work sends one PULSE and then none.
 * So pulse_due is set by a PROBE and by each PULSE that reports work, and a client is silent if its
 * PULSE is overdue. Time in which the process or the daemon could not run does not count.
 */
#include "daemon/workloads/probing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/link/peer.h"
#include "daemon/state/client.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"

/* After such a gap the daemon itself was stopped or starved: no client is judged by it. */
#define AWAY_NS (2 * SL_S)

/* Mount point of the unified hierarchy. */
#define CGROUPS "/sys/fs/cgroup"

enum sl_wire_probe sl_probing_wire_mode(enum sl_probe mode)
{
	switch (mode) {
	case SL_PROBE_WATCH: return SL_WIRE_PROBE_WATCH;
	case SL_PROBE_PROVE: return SL_WIRE_PROBE_PROVE;
	case SL_PROBE_OFF:
	case SL_PROBES: break;
	}
	return SL_WIRE_PROBE_OFF;
}

enum sl_wire_condition sl_probing_wire_condition(enum sl_client_condition condition)
{
	switch (condition) {
	case SL_CONDITION_STOPPED: return SL_WIRE_STOPPED;
	case SL_CONDITION_TRACED: return SL_WIRE_TRACED;
	case SL_CONDITION_SILENT: return SL_WIRE_SILENT;
	case SL_CONDITION_RUNNING:
	case SL_CONDITIONS: break;
	}
	return SL_WIRE_RUNNING;
}

/* --- asking ------------------------------------------------------------------------------- */

/* Can it answer, now or once it is connected? */
static bool is_asked(const struct sl_client *client)
{
	return client->probe_asked && client->probe != SL_PROBE_OFF;
}

static void ask(struct sl_client *client)
{
	union sl_msg msg;

	/* Before REPORTED it is not welcomed yet; sl_probing_connected asks then. */
	if (!client->peer || client->state != SL_CLIENT_LIVE)
		return;
	sl_wire_init(&msg, SL_MSG_PROBE);
	msg.probe.mode = sl_probing_wire_mode(client->probe);
	msg.probe.span_ms = SL_PROBING_SPAN_NS / SL_MS;
	client->probe_asked = true;
	client->pulse_due = sl_clock_now();
	sl_peer_send(client->peer, &msg);
}

/* Often enough to look at every client once per LOOK_NS. */
static void arm(struct sl_daemon *daemon, sl_ns now)
{
	uint32_t slices =
		(daemon->probing->count + SL_PROBING_SLICE - 1) / SL_PROBING_SLICE;

	if (slices == 0)
		daemon->probing->timer_at = SL_NS_NEVER;
	else
		daemon->probing->timer_at = now + SL_PROBING_LOOK_NS / slices;
	sl_timer_set(daemon->probing->timer, daemon->probing->timer_at);
}

void sl_probing_set(struct sl_daemon *daemon, uint64_t id, enum sl_probe mode)
{
	struct sl_client *client = sl_map_get(&daemon->clients, id);

	if (!client || client->state == SL_CLIENT_DYING || client->probe == mode)
		return;
	client->probe = mode;
	ask(client);
	if (mode == SL_PROBE_OFF) {
		sl_probing_end(client);
		return;
	}
	if (sl_list_is_linked(&client->probe_link))
		return;
	sl_list_push_head(&daemon->probing->clients, &client->probe_link);
	daemon->probing->count++;
	if (daemon->probing->timer_at == SL_NS_NEVER)
		arm(daemon, sl_clock_now());
}

void sl_probing_connected(struct sl_client *client)
{
	if (client->probe != SL_PROBE_OFF)
		ask(client);
}

void sl_probing_end(struct sl_client *client)
{
	client->probe = SL_PROBE_OFF;
	client->pulse_due = 0;
	/* The policy takes it as running while it is not probed; or it is gone. */
	client->condition = SL_CONDITION_RUNNING;
	if (!sl_list_is_linked(&client->probe_link))
		return;
	sl_list_unlink(&client->probe_link);
	client->daemon->probing->count--;
}

/* --- answers ------------------------------------------------------------------------------ */

static void set_condition(struct sl_client *client, enum sl_client_condition condition)
{
	struct sl_event event = {.type = SL_EVENT_CONDITION};

	if (client->condition == condition)
		return;
	sl_debug("process %d: condition %d", (int)client->pid, (int)condition);
	client->condition = condition;
	event.condition.client = client->id;
	event.condition.condition = condition;
	sl_drive(client->daemon, &event);
}

/* Longer than the machine has been up cannot be true, whatever a client says. */
static sl_ns span_of(uint64_t ms)
{
	sl_ns now = sl_clock_now();

	return ms > now / SL_MS ? now : ms * SL_MS;
}

void sl_probing_pulse(struct sl_client *client, const struct sl_msg_pulse *pulse)
{
	struct sl_event event = {.type = SL_EVENT_PULSE};

	/* It crossed the end of the probing on the wire. */
	if (client->probe == SL_PROBE_OFF)
		return;
	client->pulse_due = pulse->idle_ms == 0 ? sl_clock_now() + SL_PROBING_SPAN_NS : 0;
	event.pulse.client = client->id;
	event.pulse.idle = span_of(pulse->idle_ms);
	event.pulse.busy = span_of(pulse->busy_ms);
	event.pulse.proven = pulse->proven != 0;
	sl_drive(client->daemon, &event);
	if (client->condition == SL_CONDITION_SILENT)
		set_condition(client, SL_CONDITION_RUNNING);
}

/* --- looking ------------------------------------------------------------------------------ */

/* The path of the process in the unified hierarchy; "" if it has none. */
static void read_cgroup(pid_t pid, char *buf, size_t size)
{
	sl_cleanup(sl_freep) char *text = NULL;
	const char *line;
	char path[32];

	buf[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (sl_file_read(path, 16384, &text, NULL) < 0)
		return;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return;
	line = strchr(line, '/');
	if (line && strcspn(line, "\n") < size)
		(void)snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* A process in a frozen cgroup looks asleep everywhere else. */
static bool is_frozen(pid_t pid)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char group[512], path[600];

	read_cgroup(pid, group, sizeof(group));
	if (!group[0])
		return false;
	(void)snprintf(path, sizeof(path), CGROUPS "%s/cgroup.events", group);
	return sl_file_read(path, 4096, &text, NULL) == 0 && strstr(text, "frozen 1");
}

/* The process's condition as the system sees it. False: it is dead, and its death is yet to be
 * handled. */
static bool read_condition(
	const struct sl_client *client, enum sl_client_condition *condition)
{
	struct sl_pid_stat stat = {0};

	*condition = SL_CONDITION_RUNNING;
	if (sl_file_pid_stat((int)client->pid, &stat) < 0 ||
		stat.start_ticks != client->start_ticks)
		return false;
	if (stat.state == 't')
		*condition = SL_CONDITION_TRACED;
	else if (stat.state == 'T' || is_frozen(client->pid))
		*condition = SL_CONDITION_STOPPED;
	return true;
}

bool sl_probing_is_stopped(const struct sl_client *client)
{
	enum sl_client_condition condition;

	return read_condition(client, &condition) && condition != SL_CONDITION_RUNNING;
}

static void look(struct sl_client *client, sl_ns now)
{
	enum sl_client_condition condition;

	if (!read_condition(client, &condition))
		return;
	if (condition == SL_CONDITION_RUNNING && is_asked(client) && client->pulse_due &&
		now >= client->pulse_due + SL_PROBING_SILENT_NS)
		condition = SL_CONDITION_SILENT;
	/* When it runs again it has the whole time to answer. */
	if (condition == SL_CONDITION_STOPPED || condition == SL_CONDITION_TRACED)
		client->pulse_due = client->pulse_due ? now : 0;
	set_condition(client, condition);
}

void sl_probing_look(struct sl_client *client)
{
	look(client, sl_clock_now());
}

static void forgive(struct sl_daemon *daemon, sl_ns now)
{
	sl_list_foreach (link, &daemon->probing->clients) {
		struct sl_client *client =
			SL_LIST_ENTRY(link, struct sl_client, probe_link);

		client->pulse_due = client->pulse_due ? now : 0;
	}
}

int sl_probing_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now();
	uint32_t most = (uint32_t)sl_min_u64(daemon->probing->count, SL_PROBING_SLICE);

	if (now > daemon->probing->timer_at + AWAY_NS)
		forgive(daemon, now);
	for (uint32_t i = 0; i < most && !sl_list_is_empty(&daemon->probing->clients);
		i++) {
		struct sl_client *client = SL_LIST_ENTRY(
			daemon->probing->clients.next, struct sl_client, probe_link);

		/* Round robin. Relinked first: the look may end the probing or the client. */
		sl_list_unlink(&client->probe_link);
		sl_list_push_tail(&daemon->probing->clients, &client->probe_link);
		look(client, now);
	}
	arm(daemon, now);
	daemon->up->settle(daemon);
	return 0;
}

int sl_probing_open(struct sl_daemon *daemon)
{
	struct sl_probing *probing = calloc(1, sizeof(*probing));

	if (!probing)
		return sl_err_origin(-ENOMEM);
	daemon->probing = probing;
	sl_list_init(&probing->clients);
	probing->timer_at = SL_NS_NEVER;
	return sl_timer_new(daemon, SL_PRIORITY_TIMER, sl_probing_timer, &probing->timer);
}

void sl_probing_close(struct sl_daemon *daemon)
{
	struct sl_probing *probing = sl_steal(&daemon->probing);

	if (!probing)
		return;
	probing->timer = sd_event_source_disable_unref(probing->timer);
	free(probing);
}
