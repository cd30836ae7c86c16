/*
 * probing - what clients' GPU work does, for those that the policy asks about
 *
 * Client side: PROBE out, PULSE in, both become events. System side: the state of the process
 * (/proc/PID/stat, and the freezer of its cgroup where that can be seen), looked at once a second
 * while it is probed; and whether its agent still answers: SILENT when an answer is
 * SL_PROBING_SILENT_NS overdue although the process runs. Costs nothing for who is not probed. A
 * client of protocol 1 cannot be asked: it is never idle, and never silent, but stopped or
 * traced like any other. Loop's thread.
 */
#ifndef SL_DAEMON_WORKLOADS_PROBING_H
#define SL_DAEMON_WORKLOADS_PROBING_H

#include "daemon/state/daemon.h"

struct sl_client;

/* The first protocol with PROBE and PULSE. */
#define SL_PROBING_VERSION 2
/* How often a client with work says so. */
#define SL_PROBING_SPAN_NS   (1 * SL_S)
#define SL_PROBING_SILENT_NS (5 * SL_S)
/* Every probed process is looked at this often, SLICE of them at a time: a look costs up to
 * 50 us, and nobody's message shall wait for a thousand of them. */
#define SL_PROBING_LOOK_NS (1 * SL_S)
#define SL_PROBING_SLICE   8

struct sl_probing {
	struct sl_link clients; /* probe_link */
	uint32_t count;
	sd_event_source *timer;
	sl_ns timer_at;
};

/* Carries out an action PROBE. Called from within a step of the policy: must not step it. */
void sl_probing_set(struct sl_daemon *daemon, uint64_t client, enum sl_probe mode);
/* A PULSE came in. */
void sl_probing_pulse(struct sl_client *client, const struct sl_msg_pulse *pulse);
/* It has reported, at first or after a lost connection: it is asked (again). */
void sl_probing_connected(struct sl_client *client);
/* It is no client any more. */
void sl_probing_end(struct sl_client *client);
/* The system says that its process does not go on: it is stopped, frozen or halted by a debugger.
 * Costs a look, also at who is not probed. */
bool sl_probing_is_stopped(const struct sl_client *client);
/* Looks at it now, and tells the policy what is new. The client may be gone after that. */
void sl_probing_look(struct sl_client *client);
/* Handler of its timer. */
int sl_probing_timer(sd_event_source *source, uint64_t usec, void *context);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_probing_open(struct sl_daemon *daemon);
/* After the clients. */
void sl_probing_close(struct sl_daemon *daemon);

/* The same choices as the policy names them and as the wire does. */
enum sl_wire_probe sl_probing_wire_mode(enum sl_probe mode);
enum sl_wire_condition sl_probing_wire_condition(enum sl_client_condition condition);

#endif
