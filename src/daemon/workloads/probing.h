/*
 * probing - watches the GPU work of the clients that the policy asks about
 *
 * Client side: PROBE out, PULSE in, and both become events. System side: once a second the state of
 * the process is read (/proc/PID/stat, and the freezer of its cgroup if that can be seen). A
 * process that runs is SILENT if its answer is SL_PROBING_SILENT_NS overdue. Clients that are not
 * probed cost nothing. A client that was not asked yet, because it is not connected, is never idle
 * and never silent, but stopped or traced like any other. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_PROBING_H
#define SL_DAEMON_WORKLOADS_PROBING_H

#include "daemon/state/daemon.h"

struct sl_client;

/* How often a client with work sends a PULSE. */
#define SL_PROBING_SPAN_NS   (1 * SL_S)
#define SL_PROBING_SILENT_NS (5 * SL_S)
/* Interval of looks at each probed process. At most SLICE processes are looked at in one go: a look
 * costs up to 50 us, and messages must not wait for a thousand looks. */
#define SL_PROBING_LOOK_NS (1 * SL_S)
#define SL_PROBING_SLICE   8

struct sl_probing {
	struct sl_link clients; /* probe_link */
	uint32_t count;
	sd_event_source *timer;
	sl_ns timer_at;
};

/* Carries out an action PROBE. Called within a step of the policy, so it must not step it. */
void sl_probing_set(struct sl_daemon *daemon, uint64_t client, enum sl_probe mode);
/* A PULSE arrived. */
void sl_probing_pulse(struct sl_client *client, const struct sl_msg_pulse *pulse);
/* The client has reported, for the first time or after a lost connection: asks it (again). */
void sl_probing_connected(struct sl_client *client);
/* It is no longer a client. */
void sl_probing_end(struct sl_client *client);
/* Is the client's process stopped, frozen or halted by a debugger, as the system sees it? Costs a
 * look, and works for clients that are not probed, too. */
bool sl_probing_is_stopped(const struct sl_client *client);
/* Looks at it now, and tells the policy of changes. The client may be gone afterwards. */
void sl_probing_look(struct sl_client *client);
/* Handler of its timer. */
int sl_probing_timer(sd_event_source *source, uint64_t usec, void *context);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_probing_open(struct sl_daemon *daemon);
/* Call after the clients are gone. */
void sl_probing_close(struct sl_daemon *daemon);

/* The wire's values for the policy's. */
enum sl_wire_probe sl_probing_wire_mode(enum sl_probe mode);
enum sl_wire_condition sl_probing_wire_condition(enum sl_client_condition condition);

#endif
