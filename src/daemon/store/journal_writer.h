/*
 * journal_writer - the thread that writes the journal
 *
 * The loop fills a struct sl_journal and hands it over; turning a thousand workloads into text and
 * into a file takes milliseconds, on a slow disk any time, and nobody's grant is to wait for that.
 * One write at a time: whoever wants one meanwhile shares the next. All calls are the loop's.
 */
#ifndef SL_DAEMON_STORE_JOURNAL_WRITER_H
#define SL_DAEMON_STORE_JOURNAL_WRITER_H

#include "daemon/store/journal.h"

struct sl_journal_writer;

/* Makes the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_journal_writer_new(const char *path, struct sl_journal_writer **out);
/* Waits for what is being written. Returns NULL. */
struct sl_journal_writer *sl_journal_writer_free(struct sl_journal_writer *writer);
/* Readable when a write is over. */
int sl_journal_writer_fd(const struct sl_journal_writer *writer);
/* What is to be written, to be filled; it holds what was written last. NULL while the thread
 * has it. */
struct sl_journal *sl_journal_writer_begin(struct sl_journal_writer *writer);
/* Hands it over. */
void sl_journal_writer_start(struct sl_journal_writer *writer);
/* True once for each write that is over; *result is 0 or a negative errno, and the old file
 * is there as it was. */
SL_MUST_CHECK bool sl_journal_writer_take(struct sl_journal_writer *writer, int *result);
/* Blocks until sl_journal_writer_take() has something to say. */
void sl_journal_writer_wait(struct sl_journal_writer *writer);

#endif
