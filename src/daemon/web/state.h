/*
 * state - all that the page shows of the daemon now, as one JSON text
 *
 * Made of the rows of the lists, over a line of its own; a thread's. Bytes are numbers, times
 * milliseconds since 1970.
 */
#ifndef SL_DAEMON_WEB_STATE_H
#define SL_DAEMON_WEB_STATE_H

#include "base/clock.h"
#include "daemon/link/inside.h"

/* Names of users, remembered: a name service may take its time. A thread's own; zeroed is empty. */
struct sl_page_users {
	struct {
		sl_ns until;
		uint32_t uid;
		char name[64];
	} all[256];
};
/* The name, or the number of one without. Returns buf. */
const char *sl_page_user(
	struct sl_page_users *users, uint32_t uid, char *buf, size_t size);

/* *text is a JSON object without its opening brace, so that a member can be put before:
 * '"now_ms":...}'. The caller frees it. *digest is the same where nothing differs but what time
 * alone moves. Outcomes of enum sl_inside_outcome. */
SL_MUST_CHECK int sl_page_state_make(struct sl_inside *line, struct sl_page_users *users,
	char **text, uint64_t *digest, struct sl_error *err);

#endif
