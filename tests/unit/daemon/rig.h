/*
 * rig - a daemon, processes that connect to it, and their messages
 *
 * A client's identity is its process. The rig forks one, lets it connect, and takes the connected
 * socket over. So a test speaks for any number of processes in one thread, and can kill each at any
 * moment. Everything fails the test on a timeout of 20 s, which only a hang exceeds.
 */
#ifndef SL_TESTS_DAEMON_RIG_H
#define SL_TESTS_DAEMON_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/types.h>

#include "base/clock.h"
#include "fake_nvml.h"
#include "wire/wire.h"

#define RIG_GIB (1ull << 30)

struct rig {
	char dir[64], socket[160], log[96], config[96];
	struct fake_nvml *nvml;
	pid_t daemon;
};

struct rig_peer {
	pid_t pid; /* a child of the test that does nothing but live */
	int fd;
	int order; /* to the child, which connects once more for each byte, or is dead if -1 */
	uint64_t client, workload, epoch;
	uint8_t token[SL_WIRE_TOKEN_BYTES];
};

/* Called while something is waited for; NULL where the daemon is a process of its own. */
extern void (*rig_idle)(void);

/* A folder, a fake NVML of gpu_count GPUs of gpu_bytes. No daemon yet. */
void rig_init(struct rig *rig, unsigned int gpu_count, uint64_t gpu_bytes);
/* Starts sluiced with the configuration (or NULL) and waits until it is ready. */
void rig_start(struct rig *rig, const char *config);
/* Starts it and waits for nothing. */
void rig_spawn(struct rig *rig, const char *config);
/* Descriptors that the next daemons may have; 0: as many as the test. */
extern unsigned int rig_descriptors;
/* Starts it and expects an exit status; its output is in rig_log_has(). */
int rig_start_fails(struct rig *rig, const char *config);
/* Replaces the configuration it was started with, SIGHUP, and waits until it was read. */
void rig_configure(struct rig *rig, const char *config);
/* Ends it by SIGTERM, expects status 0. */
void rig_stop(struct rig *rig);
/* kill -9. */
void rig_kill_daemon(struct rig *rig);
/* Stops what runs, removes the folder. */
void rig_fini(struct rig *rig);
/* Where the test's user has the lock file of a GPU; place: 0 and 1. */
void rig_lock_path(
	const struct rig *rig, unsigned int gpu, int place, char *buf, size_t size);
/* The log holds text now, or within 20 s. */
bool rig_log_has(const struct rig *rig, const char *text);
bool rig_log_gets(const struct rig *rig, const char *text);

/* A process with a connection; nothing is said yet. */
struct rig_peer rig_peer(const struct rig *rig);
/* The same as another user whose only group, besides a primary one of its own number, is gid; for
 * tests that run as root. */
struct rig_peer rig_peer_as(const struct rig *rig, uid_t uid, gid_t gid);
/* The same as this user, after the process has done that. */
struct rig_peer rig_peer_after(const struct rig *rig, void (*prepare)(void));
/* The same, with this pid, whose former process is dead; .pid is 0 if the kernel does not let
 * us. */
struct rig_peer rig_peer_with_pid(const struct rig *rig, pid_t pid);
/* As fork(2), into this pid, whose former process is dead and reaped; negative if the kernel does
 * not let us. */
pid_t rig_fork_with_pid(pid_t pid);
/* The same process connects anew; the old socket is closed. */
void rig_reconnect(const struct rig *rig, struct rig_peer *peer);
/* Kills the process and closes the socket. */
void rig_peer_end(struct rig_peer *peer);
/* Kills the process and keeps the socket, as a forked child would. */
void rig_peer_kill(struct rig_peer *peer);

void rig_send(const struct rig_peer *peer, const union sl_msg *msg);
/* The next message within ms, as sl_wire_recv says. The process that connected answers the question
 * for its identity. */
int rig_receive(const struct rig_peer *peer, int ms, union sl_msg *out);
/* The next message, which must be of this type (GPU messages may be skipped). */
void rig_expect(const struct rig_peer *peer, enum sl_msg_type type, union sl_msg *out);
/* Nothing but GPU messages arrives within ms. */
void rig_expect_silence(const struct rig_peer *peer, int ms);
/* The other end is closed, whatever it says before. */
void rig_expect_closed(const struct rig_peer *peer);

/* HELLO as CONTROL, then RUN in bytes on GPU 0 (limit 0: unset); expects ok. */
struct rig_peer rig_run(const struct rig *rig, uint64_t request, uint64_t limit);
/* Sends RUN from a greeted control peer. */
void rig_send_run(const struct rig_peer *peer, uint64_t request, uint64_t limit,
	unsigned int gpus, const char *name, const char *visible);
void rig_hello(const struct rig_peer *peer, enum sl_role role, uint64_t epoch);
/* HELLO as CLIENT of run's workload, WELCOME, GPUs, REPORTED. */
struct rig_peer rig_join(const struct rig *rig, const struct rig_peer *run);
void rig_join_as(struct rig_peer *peer, const struct rig_peer *run, uint64_t epoch);
/* A client of a workload of another user's, which *run becomes. */
struct rig_peer rig_join_as_other(
	const struct rig *rig, uid_t user, struct rig_peer *run);

void rig_ask(const struct rig_peer *peer, uint64_t ask, uint64_t bytes);
/* Asks, gets, and commits; NVML lists the bytes. */
void rig_hold(
	const struct rig *rig, const struct rig_peer *peer, uint64_t ask, uint64_t bytes);
void rig_commit(const struct rig_peer *peer, uint64_t epoch, uint64_t bytes);
/* Sets what NVML lists for a process on GPU 0; 0 takes the row away. */
void rig_nvml(const struct rig *rig, pid_t pid, uint64_t bytes);
/* GPU 0, or the daemon itself, as LIST tells. */
struct sl_msg_gpu_row rig_gpu(const struct rig *rig);
/* Measured bytes on it beside requested ones, whether the reserve or the client pays. */
uint64_t rig_measured(const struct rig *rig);
struct sl_msg_status_row rig_status(const struct rig *rig);
/* Rows of LIST USES; out may be NULL. */
unsigned int rig_uses(
	const struct rig *rig, struct sl_msg_use_row *out, unsigned int room);

/* Held bytes of all clients, as LIST tells. */
uint64_t rig_held(const struct rig *rig);

/* Tries until the condition holds, for 20 s; fails the test otherwise. */
#define rig_until(condition)                                                 \
	do {                                                                 \
		sl_ns rig_end_ = sl_clock_now() + 20 * SL_S;                 \
		while (!(condition)) {                                       \
			if (sl_clock_now() > rig_end_)                       \
				fail_msg("not within 20 s: %s", #condition); \
			sl_clock_sleep(2 * SL_MS);                           \
		}                                                            \
	} while (0)

#endif
