/*
 * text - answers about the past, while they are made and until they are read, within a
 * bounded room
 *
 * An answer may have many megabytes, and who asked for it need not read it. So all that are under
 * way have room together, and those of one key (who asks) a part of it; what does not fit is not
 * made. Any thread; a text is one thread's at a time.
 */
#ifndef SL_DAEMON_HISTORY_TEXT_H
#define SL_DAEMON_HISTORY_TEXT_H

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"

/* Bytes, of everybody and of one key. One answer of SL_HISTORY_ROWS_MAX rows fits. */
#define SL_HISTORY_ROOM_ALL  (128ull << 20)
#define SL_HISTORY_ROOM_KEY  (64ull << 20)
#define SL_HISTORY_ROOM_KEYS 256

struct sl_history_budget {
	pthread_mutex_t mutex;
	uint64_t taken;
	struct {
		uint64_t key, bytes; /* bytes 0: not in use */
	} of[SL_HISTORY_ROOM_KEYS];
};
void sl_history_budget_init(struct sl_history_budget *room);
/* Every text is gone by then. */
void sl_history_budget_fini(struct sl_history_budget *room);

struct sl_history_text {
	struct sl_history_budget *room;
	uint64_t key;
	size_t size, taken; /* taken: of the room */
	char *bytes;        /* NULL: it is in fd */
	int fd;             /* a file in memory; -1: it is in bytes */
	int error; /* why it does not take any more: an errno; EDQUOT: there is no room */
};

/* A text that *out writes; to be a file in memory, which others may be given. NULL: no memory. */
SL_MUST_CHECK struct sl_history_text *sl_history_text_new(
	struct sl_history_budget *room, uint64_t key, bool as_file, FILE **out);
/* Closes *out. True: all of it is there, and will not change; else err says why not. */
SL_MUST_CHECK bool sl_history_text_end(
	struct sl_history_text *text, FILE **out, struct sl_error *err);
/* Gives the room back; of a file, also if others hold it: it is empty then. NULL is fine; returns
 * NULL. */
struct sl_history_text *sl_history_text_free(struct sl_history_text *text);

#endif
