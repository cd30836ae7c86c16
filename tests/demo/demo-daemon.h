/*
 * demo-daemon - the daemon of the demo's acts
 */
#ifndef SL_DEMO_DAEMON_H
#define SL_DEMO_DAEMON_H

#include <sys/types.h>

/* With this configuration, BUILD/demo-sluiced.conf; "" for its defaults. Returns once it answers;
 * ends the program if it does not. Its log is BUILD/demo-sluiced.log. */
pid_t demo_daemon_start(const char *build, const char *config);
void demo_daemon_stop(pid_t pid);

#endif
