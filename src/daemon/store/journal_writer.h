/*
 * journal_writer - the thread that writes the journal
 *
 * The loop fills a struct sl_journal and hands it over. Turning a thousand workloads into text and
 * into a file takes milliseconds, on a slow disk any time, and grants must not wait for that. One
 * write at a time: all requests made meanwhile share the next. All calls are the loop's.
 */
#ifndef SL_DAEMON_STORE_JOURNAL_WRITER_H
#define SL_DAEMON_STORE_JOURNAL_WRITER_H

#include "daemon/store/journal.h"

struct sl_journal_writer;

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_journal_writer_new(const char *path, struct sl_journal_writer **out);
/* Waits for the write in progress. Returns NULL. */
struct sl_journal_writer *sl_journal_writer_free(struct sl_journal_writer *writer);
/* Readable when a write is over. */
int sl_journal_writer_fd(const struct sl_journal_writer *writer);
/* The journal to fill; it still holds the last one. NULL while the thread has it. */
struct sl_journal *sl_journal_writer_begin(struct sl_journal_writer *writer);
/* Hands it to the thread. */
void sl_journal_writer_start(struct sl_journal_writer *writer);
/* True once for each write that is over; *result is 0, or negative errno with the old file
 * unchanged. */
SL_MUST_CHECK bool sl_journal_writer_take(struct sl_journal_writer *writer, int *result);
/* Blocks until sl_journal_writer_take() would return true. */
void sl_journal_writer_wait(struct sl_journal_writer *writer);

#endif
