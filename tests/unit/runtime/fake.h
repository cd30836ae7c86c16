/*
 * fake - a daemon of one client for tests of the runtime
 *
 * A thread listens at a socket in a folder of its own and answers by simple rules: it grants
 * demands while they fit, and else denies them or lets them wait. It keeps its own books from the
 * messages alone, and tests compare these with the stub driver's. All fields are read and written
 * under fake_lock.
 */
#ifndef SL_TEST_RUNTIME_FAKE_H
#define SL_TEST_RUNTIME_FAKE_H

#include "wire/wire.h"

struct fake {
	char path[108];
	uint64_t limit_bytes, others_bytes;
	uint64_t request_bytes; /* 0: half of the limit */
	uint64_t held_bytes;    /* reported, granted, committed, freed */
	uint64_t uncommitted_bytes;
	unsigned int gpus;
	unsigned int moved_by; /* ordinal i is on GPU i plus this, and began on GPU i */
	unsigned int connections, hellos, asks, grants, commits, freeds, fails, measures,
		works;
	unsigned int reports, reporteds, gate_dones, pulses, settleds;
	struct sl_msg_pulse last_pulse;
	unsigned int meter_ends, meter_wants;
	struct sl_msg_metered last_end;
	uint64_t reported_bytes, last_ask, last_epoch_seen;
	uint32_t hello_flags;
	uint64_t last_gate_order;
	uint32_t last_gate_closed;
	int reject;                /* SL_REJECT_* to answer HELLO with, -1: welcome */
	unsigned int reject_count; /* so many times; then welcome */
	bool silent;               /* does not answer ASK */
	bool mute;                 /* does not answer HELLO */
	bool deny;
	uint32_t deny_flags;
	uint64_t asked_bytes; /* by the last ASK */
	uint32_t ask_flags;
	unsigned int helds;
	uint64_t unevictable_bytes; /* by the last HELD */
	unsigned int chunks;
	uint64_t chunk_bytes; /* by the last CHUNK */
	/* What PIDS is answered with. */
	unsigned int pids, pids_asked;
	uint32_t pids_flags;
	bool pids_silent;
	struct sl_wire_pid pid_rows[256];
	/* Shared memory: messages that came, and the answer. */
	unsigned int offers, given, withdrawn, opens;
	uint8_t offered_key[16]; /* the last */
	uint32_t offer_reason, open_reason;
	struct sl_msg_ipc_opened opened; /* figures of the opened memory */
	/* Memory on the host. */
	unsigned int swappeds, wants, evicteds, stores_held, stores_back, freed_evicteds;
	struct sl_msg_swapped last_swapped;
	uint64_t tell_bytes; /* of EVICTs; the sender sets it */
	unsigned int moveds;
	struct sl_msg_moved moved[8];
	uint32_t last_want;
	uint32_t wanted;             /* by WANT, less what is back */
	uint64_t told_evicted_bytes; /* by the last EVICTED */
	uint64_t evicted_bytes;      /* by SWAPPED and FREED */
	bool protocol_error;         /* the client said something wrong */
};

extern struct fake fake;

void fake_lock(void);
void fake_unlock(void);
/* A field, read under the lock. */
#define FAKE(field)                               \
	({                                        \
		__typeof__(fake.field) fake_now_; \
                                                  \
		fake_lock();                      \
		fake_now_ = fake.field;           \
		fake_unlock();                    \
		fake_now_;                        \
	})

/* Sets SLUICE_SOCKET and SLUICE_WORKLOAD; listens unless later is set. */
void fake_start(bool later);
void fake_listen(void);
/* Closes connection and socket: the daemon dies. */
void fake_die(void);
/* The same, and its folder goes; at the end of a test. */
void fake_stop(void);
/* Answers waiting questions, as if silent had not been set. */
void fake_answer_waiting(void);
/* Denies waiting demands; later ones are answered. */
void fake_deny_waiting(void);
void fake_send_gpu(void);
void fake_send_gate(uint64_t order, uint32_t closed);
void fake_send_meter(uint64_t order, enum sl_wire_meter mode, sl_ns span);
/* EVICT, RESTORE or ABORT; the last two arguments are EVICT's. */
void fake_send_order(
	enum sl_msg_type type, uint64_t order, uint64_t bytes, uint32_t deadline_ms);
void fake_send_probe(enum sl_wire_probe mode, uint32_t span_ms);
/* Waits up to two seconds until *what (under the lock) is at least value. */
bool fake_wait(const unsigned int *what, unsigned int value);
bool fake_wait_u64(const uint64_t *what, uint64_t value);

#endif
