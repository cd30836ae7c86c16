/*
 * books - see books.h
 */
#include "runtime/contexts/books.h"

#include <pthread.h>

static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

void sl_books_lock(void)
{
	(void)pthread_mutex_lock(&books);
}

void sl_books_unlock(void)
{
	(void)pthread_mutex_unlock(&books);
}

void sl_books_forget(void)
{
	(void)pthread_mutex_init(&books, NULL);
}
