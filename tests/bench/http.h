/*
 * http - requests to the daemon's sockets of metrics and of the page, and their cost for it
 */
#ifndef SL_TESTS_BENCH_HTTP_H
#define SL_TESTS_BENCH_HTTP_H

#include "bench.h"

#include <sys/types.h>

/* Room for an answer. */
#define BENCH_HTTP_MAX (16u << 20)

/* A connection to the socket at path that has asked for target. */
int bench_http_ask(const char *path, const char *target);
/* Reads until the end into text; bytes, or negative if it was cut off. */
ssize_t bench_http_read(int fd, char *text);
/* Time on a core of all threads of a process so far: /proc/PID/task/TID/schedstat, nanoseconds. */
sl_ns bench_cpu_of(uint32_t pid);

/* metrics.c: one scrape; bytes. */
size_t bench_scrape(const char *path, char *text);
/* asked.c: what the loop has of questions to the history; text: room for an answer. */
void bench_asked(int control, char *text);
/* Measures what the page costs beside that many workloads (page.c). metrics: the path of the
 * metrics socket; text: a buffer for an answer. */
void bench_page(uint32_t pid, uint32_t count, const char *metrics, char *text);

#endif
