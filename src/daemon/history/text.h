/*
 * text - answers about the past, from writing to reading, within bounded memory
 *
 * An answer may have many megabytes, and its asker may never read it. So all unread answers
 * together have a bound, and those of one key (an asker) have another; a text that exceeds either
 * fails. Any thread; one thread at a time uses a text.
 */
#ifndef SL_DAEMON_HISTORY_TEXT_H
#define SL_DAEMON_HISTORY_TEXT_H

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"

/* Bytes of all keys, and of one key. One answer of SL_HISTORY_ROWS_MAX rows fits. */
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
/* All texts must be freed before. */
void sl_history_budget_fini(struct sl_history_budget *room);

struct sl_history_text {
	struct sl_history_budget *room;
	uint64_t key;
	size_t size, taken; /* taken: bytes reserved in room */
	int fd;             /* a file in memory */
	int error;          /* why it takes no more: an errno; EDQUOT: no room */
};

/* A new text that *out writes to. NULL: no memory. */
SL_MUST_CHECK struct sl_history_text *sl_history_text_new(
	struct sl_history_budget *room, uint64_t key, FILE **out);
/* Closes *out. True: the text is complete and constant; else err says why not. */
SL_MUST_CHECK bool sl_history_text_end(
	struct sl_history_text *text, FILE **out, struct sl_error *err);
/* Gives the memory back: the file is emptied, even if others hold its descriptor. NULL is fine;
 * returns NULL. */
struct sl_history_text *sl_history_text_free(struct sl_history_text *text);

#endif
