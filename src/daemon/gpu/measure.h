/*
 * measure - the thread that asks NVML, and (watcher.h) the one that waits for errors of GPUs
 *
 * NVML may take milliseconds or hang for good, so only these threads call it. The loop asks without
 * blocking; the thread answers in the order of the requests. The descriptor turns readable when an
 * answer is there. Requests for the same GPU that the thread has not begun are one request. All
 * functions but the thread's own are called by the loop's thread.
 */
#ifndef SL_DAEMON_GPU_MEASURE_H
#define SL_DAEMON_GPU_MEASURE_H

#include "daemon/gpu/nvml.h"

#define SL_MEASURE_GPUS_MAX 32

struct sl_measure;

struct sl_measure_answer {
	struct sl_measure_answer *next; /* used by the thread */
	bool is_inventory;
	bool is_xid; /* an unasked error; gpu SL_MEASURE_GPUS_MAX: of an unknown GPU */
	bool ok;
	char text[256]; /* why ok is false */
	bool lost;      /* ok is false: this GPU is lost */
	bool absent;    /* ok is false: NVML does not know this GPU */
	uint32_t gpu;   /* of a usage or an Xid */
	uint64_t xid;
	sl_ns begin, end;
	struct sl_nvml_usage usage;
	struct sl_nvml_inventory *inventory;
};

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_measure_new(struct sl_measure **out);
/* Ends the threads. A thread that hangs inside NVML is abandoned with its memory after 300 ms.
 * Accepts NULL; returns NULL. */
struct sl_measure *sl_measure_free(struct sl_measure *measure);

/* Readable while there are answers. */
int sl_measure_fd(const struct sl_measure *measure);
/* Gives the UUID of a GPU number; call it before the first request for that GPU. */
void sl_measure_name(struct sl_measure *measure, uint32_t gpu, const char *uuid_text);
/* Asks for the list of GPUs. Opens NVML if it is not open, or again if it failed. */
void sl_measure_ask_inventory(struct sl_measure *measure);
/* Makes the next list come from a newly opened NVML, which sees a GPU that was reset. */
void sl_measure_reopen(struct sl_measure *measure);
/* Asks for the usage of one GPU. */
void sl_measure_ask(struct sl_measure *measure, uint32_t gpu);
/* The oldest answer, or NULL. */
struct sl_measure_answer *sl_measure_take(struct sl_measure *measure);
/* Accepts NULL; returns NULL. */
struct sl_measure_answer *sl_measure_answer_free(struct sl_measure_answer *answer);

#endif
