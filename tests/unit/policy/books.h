/*
 * books - a small ledger for the tests of books and verdicts
 *
 * GPU 0 has 100 bytes to share (110 less 10 the driver keeps), GPU 1 has 200. Workload i is
 * account[i] with one client, holding[i].
 */
#ifndef SL_TESTS_BOOKS_H
#define SL_TESTS_BOOKS_H

#include "policy/books/ledger.h"

#define BOOKS_MOST 4

struct books {
	struct sl_ledger ledger;
	struct sl_ledger_account account[BOOKS_MOST];
	struct sl_ledger_holding holding[BOOKS_MOST];
};

static inline void books_open(struct books *b)
{
	*b = (struct books){0};
	sl_ledger_set_gpu(&b->ledger, 0, 110, 10, 0);
	sl_ledger_set_gpu(&b->ledger, 1, 200, 0, 0);
	for (uint32_t i = 0; i < BOOKS_MOST; i++)
		b->holding[i].account = &b->account[i];
}

static inline void books_bind(
	struct books *b, uint32_t i, uint32_t mask, uint64_t request, uint64_t limit)
{
	sl_ledger_bind(&b->ledger, &b->account[i], mask, request, limit);
}

/* Gives the client backing on the GPU, granted and committed. */
static inline void books_hold(struct books *b, uint32_t i, uint32_t gpu, uint64_t bytes)
{
	sl_ledger_grant(&b->ledger, &b->holding[i], gpu, bytes);
	sl_ledger_commit(&b->ledger, &b->holding[i], gpu, bytes, bytes);
}

static inline int books_audit(struct books *b, struct sl_error *err)
{
	struct sl_ledger_audit audit;

	sl_ledger_audit_begin(&audit, &b->ledger);
	for (uint32_t i = 0; i < BOOKS_MOST; i++) {
		sl_ledger_audit_open(&audit, &b->account[i]);
		sl_ledger_audit_holding(&audit, &b->holding[i]);
		if (sl_ledger_audit_close(&audit, err))
			return 1;
	}
	return sl_ledger_audit_end(&audit, err);
}

#endif
