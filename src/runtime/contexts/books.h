/*
 * books - the lock of all tables about memory
 *
 * It guards spaces, regions, slabs, tracts, marks of streams and the page map. It is held for table
 * work only, never during a driver call or a wait.
 */
#ifndef SL_RUNTIME_CONTEXTS_BOOKS_H
#define SL_RUNTIME_CONTEXTS_BOOKS_H

void sl_books_lock(void);
void sl_books_unlock(void);
/* In the child of a fork. */
void sl_books_forget(void);

#endif
