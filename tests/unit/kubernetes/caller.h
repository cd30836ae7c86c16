/*
 * caller - a client of gRPC for tests, which turns the server's loop while it waits
 *
 * Any number of calls may be open on a connection. A wait of more than 20 s fails the test.
 */
#ifndef SL_TESTS_KUBERNETES_CALLER_H
#define SL_TESTS_KUBERNETES_CALLER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#define CALLER_CALLS 128

struct caller_call {
	int32_t stream;
	bool over;
	int status; /* of gRPC; -1: none came */
	char text[256];
	uint8_t *sent;
	size_t sent_size, sent_at;
	uint8_t *answer; /* without the prefix; with each, until the call is over */
	size_t size;
};

struct caller {
	sd_event *loop;
	int fd;
	nghttp2_session *session;
	struct caller_call calls[CALLER_CALLS];
	size_t count;
	bool closed; /* by the server */
};

void caller_open(struct caller *caller, sd_event *loop, const char *path);
void caller_close(struct caller *caller);
/* Begins a call with the message as one of gRPC, or, if raw, with just these bytes. */
struct caller_call *caller_begin(struct caller *caller, const char *method,
	const void *message, size_t size, bool raw);
/* Turns both for a moment. */
void caller_turn(struct caller *caller);
/* Until the call is over. */
void caller_wait(struct caller *caller, const struct caller_call *call);

/* Until the call, which stays open, has more bytes than that. */
void caller_wait_for(
	struct caller *caller, const struct caller_call *call, size_t more_than);

#endif
