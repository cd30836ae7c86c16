/*
 * share - a row for each asker that has taken something
 *
 * Such an asker has a connection, so there are no more rows than connections.
 */
#include "daemon/web/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* More than connections: an answer may still be on its way out when the next connection is
 * accepted. */
#define ROWS (SL_PAGE_CONNECTIONS + 2)

static const struct {
	uint64_t all, unknown, each;
} bounds[SL_PAGE_GOODS] = {
	[SL_PAGE_STREAMS] = {SL_PAGE_WATCHERS, SL_PAGE_WATCHERS * 5 / 8,
		SL_PAGE_WATCHERS * 3 / 8},
	[SL_PAGE_QUESTIONS] = {32, 12, 6},
	[SL_PAGE_ANSWERS] = {64 * SL_MIB, 32 * SL_MIB, 24 * SL_MIB},
};

struct row {
	uint64_t key;
	uint64_t has[SL_PAGE_GOODS];
};

struct sl_page_share {
	pthread_mutex_t mutex;
	struct row rows[ROWS];
	uint64_t all[SL_PAGE_GOODS], unknown[SL_PAGE_GOODS];
};

struct sl_page_share *sl_page_share_new(void)
{
	struct sl_page_share *share = calloc(1, sizeof(*share));

	if (share)
		(void)pthread_mutex_init(&share->mutex, NULL);
	return share;
}

struct sl_page_share *sl_page_share_free(struct sl_page_share *share)
{
	if (!share)
		return NULL;
	(void)pthread_mutex_destroy(&share->mutex);
	free(share);
	return NULL;
}

uint64_t sl_page_share_each(enum sl_page_good good)
{
	return bounds[good].each;
}

static bool has_nothing(const struct row *row)
{
	for (size_t i = 0; i < SL_PAGE_GOODS; i++)
		if (row->has[i])
			return false;
	return true;
}

/* The asker's row, or a free one; NULL: none is free. */
static struct row *row_of(struct sl_page_share *share, uint64_t key)
{
	struct row *unused = NULL;

	for (size_t i = 0; i < ROWS; i++) {
		struct row *row = &share->rows[i];

		if (has_nothing(row))
			unused = row;
		else if (row->key == key)
			return row;
	}
	return unused;
}

static int judge(const struct sl_page_share *share, const struct row *row,
	struct sl_page_asker asker, enum sl_page_good good, uint64_t amount)
{
	/* A free row counts nothing, whichever key it has. */
	uint64_t own = row ? row->has[good] : 0;

	if (own + amount > bounds[good].each)
		return SL_PAGE_OWN_FULL;
	if (!asker.known && share->unknown[good] + amount > bounds[good].unknown)
		return SL_PAGE_UNKNOWN_FULL;
	return row && share->all[good] + amount <= bounds[good].all ? SL_PAGE_TAKEN
								    : SL_PAGE_ALL_FULL;
}

int sl_page_share_take(struct sl_page_share *share, struct sl_page_asker asker,
	enum sl_page_good good, uint64_t amount)
{
	struct row *row;
	int r;

	(void)pthread_mutex_lock(&share->mutex);
	row = row_of(share, asker.key);
	r = judge(share, row, asker, good, amount);
	if (r == SL_PAGE_TAKEN && amount) {
		row->key = asker.key;
		row->has[good] += amount;
		share->all[good] += amount;
		share->unknown[good] += asker.known ? 0 : amount;
	}
	(void)pthread_mutex_unlock(&share->mutex);
	return r;
}

void sl_page_share_give(struct sl_page_share *share, struct sl_page_asker asker,
	enum sl_page_good good, uint64_t amount)
{
	struct row *row;

	if (!amount)
		return;
	(void)pthread_mutex_lock(&share->mutex);
	row = row_of(share, asker.key);
	if (row) {
		row->has[good] -= amount;
		share->all[good] -= amount;
		share->unknown[good] -= asker.known ? 0 : amount;
	}
	(void)pthread_mutex_unlock(&share->mutex);
}
