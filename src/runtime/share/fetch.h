/*
 * fetch - asks the daemon for the descriptors of another process's memory
 *
 * A fetch, like a demand, is a record on the asking thread's stack; the agent fills it in and wakes
 * the thread. After a lost connection the fetch is sent again. The agent's thread receives the
 * descriptors; they belong to the record until its owner takes them. Thread-safe; nothing waits
 * under a lock.
 */
#ifndef SL_RUNTIME_SHARE_FETCH_H
#define SL_RUNTIME_SHARE_FETCH_H

#include "base/list.h"
#include "runtime/share/offer.h"
#include "wire/wire.h"

struct sl_fetch {
	struct sl_link link;
	uint8_t key[SL_OFFER_KEY_BYTES];
	uint64_t number;
	uint32_t state;  /* futex: 1 when answered */
	CUresult result; /* CUDA_SUCCESS: the fields below are set */
	uint64_t bytes, chunk_bytes;
	uint32_t ordinal, count;
	uint32_t got; /* descriptors received so far */
	int *fds;
};

/* Asks and waits, also while there is no daemon. End with sl_fetch_close in every case. */
SL_MUST_CHECK CUresult sl_fetch_ask(
	struct sl_fetch *fetch, const uint8_t key[SL_OFFER_KEY_BYTES]);
/* Closes the remaining descriptors (-1: none), and frees. */
void sl_fetch_close(struct sl_fetch *fetch);
/* In the child of a fork. */
void sl_fetch_forget(void);

/* --- for the session, under its lock --------------------------------------------------------- */

void sl_fetch_on_opened(const struct sl_msg_ipc_opened *msg);
void sl_fetch_on_take(const struct sl_msg_ipc_take *msg, struct sl_wire_fds *fds);
/* On a new line: asks again for every waiting fetch. */
void sl_fetch_ask_again(void);
/* The daemon no longer wants us. */
void sl_fetch_refuse_all(void);

#endif
