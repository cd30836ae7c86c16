/*
 * measure - the thread that asks NVML, and (watcher.h) the one that waits for errors of GPUs
 *
 * NVML may take milliseconds or hang for good, so nothing else ever calls it. The loop asks
 * (never blocks), the thread answers in order of asking; the descriptor turns readable when an
 * answer is there. Requests for the same GPU that the thread has not begun are one request.
 * All functions but the thread's own belong to the loop's thread.
 */
#ifndef SL_DAEMON_GPU_MEASURE_H
#define SL_DAEMON_GPU_MEASURE_H

#include "daemon/gpu/nvml.h"

#define SL_MEASURE_GPUS_MAX 32

struct sl_measure;

struct sl_measure_answer {
	struct sl_measure_answer *next; /* the thread's own */
	bool is_inventory;
	bool is_xid; /* an error of a GPU, unasked; gpu SL_MEASURE_GPUS_MAX: of some */
	bool ok;
	char text[256]; /* why not ok */
	bool lost;      /* not ok: this GPU is lost */
	bool absent;    /* not ok: NVML does not know this GPU */
	uint32_t gpu;   /* of a usage or an Xid */
	uint64_t xid;
	sl_ns begin, end;
	struct sl_nvml_usage usage;
	struct sl_nvml_inventory *inventory;
};

/* Starts the thread. 0 or negative errno. */
SL_MUST_CHECK int sl_measure_new(struct sl_measure **out);
/* Ends the threads; one that hangs inside NVML is left behind, with its memory, after 300 ms.
 * NULL is fine; returns NULL. */
struct sl_measure *sl_measure_free(struct sl_measure *measure);

/* Polls readable while there are answers. */
int sl_measure_fd(const struct sl_measure *measure);
/* Says which GPU a number stands for; before the first request for it. */
void sl_measure_name(struct sl_measure *measure, uint32_t gpu, const char *uuid_text);
/* Asks for the list of GPUs; NVML is opened if it is not, and opened anew if it failed. */
void sl_measure_ask_inventory(struct sl_measure *measure);
/* The next list is asked of an NVML that was opened anew, as a GPU that was reset needs it. */
void sl_measure_reopen(struct sl_measure *measure);
/* Asks for the usage of one GPU. */
void sl_measure_ask(struct sl_measure *measure, uint32_t gpu);
/* The oldest answer, or NULL. */
struct sl_measure_answer *sl_measure_take(struct sl_measure *measure);
/* NULL is fine; returns NULL. */
struct sl_measure_answer *sl_measure_answer_free(struct sl_measure_answer *answer);

#endif
