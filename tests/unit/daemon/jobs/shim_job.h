/*
 * shim_job - one task under its supervisor, started as by the daemon, for the supervisor's tests
 *
 * Single-threaded. What fails ends the test.
 */
#ifndef SL_TESTS_UNIT_DAEMON_SHIM_JOB_H
#define SL_TESTS_UNIT_DAEMON_SHIM_JOB_H

#include "../../base/test.h"

#include "daemon/jobs/shim.h"

/* How long anything may take before the test has failed. */
#define PATIENCE_MS 60000

/* Where logs and records of this run are made: the template of mkdtemp(). */
extern char folder[];

struct job {
	struct sl_shim shim;
	int log, record;
	char log_path[64], record_path[64];
};

int open_new(char *path, size_t size, const char *what, int flags);
void add(struct sl_jobspec *spec, const char *key, const char *value);
void add_user(struct sl_jobspec *spec, uid_t uid, gid_t gid);
/* Of this user, in /, with a PATH. */
struct sl_jobspec spec_of(const char *const *words);
struct sl_jobspec shell(const char *script);
struct job started(struct sl_jobspec *spec);
struct job going(struct sl_jobspec spec);
bool ends_within(int pidfd, int span_ms);
struct sl_shim_record record_of(const struct job *job);
struct sl_shim_record over(struct job *job);
/* Its output; static. */
const char *said(const struct job *job);
/* Waits until the log has a line. */
const char *hear(const struct job *job);
bool is_gone(pid_t pid);
void await_end_of(pid_t pid);

#endif
