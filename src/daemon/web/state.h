/*
 * state - all that the page shows of the daemon's present, as one JSON text
 *
 * Made from the rows of the lists, over a line of the calling thread. Bytes are numbers, times
 * milliseconds since 1970.
 */
#ifndef SL_DAEMON_WEB_STATE_H
#define SL_DAEMON_WEB_STATE_H

#include "base/clock.h"
#include "daemon/link/inside.h"

/* Cached names of users, because a name service may be slow. One thread's; zeroed is empty. */
struct sl_page_users {
	struct {
		sl_ns until;
		uint32_t uid;
		char name[64];
	} all[256];
};
/* The user's name, or its number if it has none. Returns buf. */
const char *sl_page_user(
	struct sl_page_users *users, uint32_t uid, char *buf, size_t size);

/* *text is a JSON object without its opening brace, so that a member can be put first:
 * '"now_ms":...}'. The caller frees it. *digest is equal for states that differ only in what time
 * alone changes. Outcomes of enum sl_inside_outcome. */
SL_MUST_CHECK int sl_page_state_make(struct sl_inside *line, struct sl_page_users *users,
	char **text, uint64_t *digest, struct sl_error *err);

#endif
