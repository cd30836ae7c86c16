/*
 * fake_nvml - an NVML that says what the test wrote into a shared file
 *
 * FAKE_NVML names a file of one struct fake_nvml, mapped by test and daemon alike. The library has
 * only the functions that the daemon asks for.
 */
#ifndef SL_TESTS_FAKE_NVML_H
#define SL_TESTS_FAKE_NVML_H

#include <stdint.h>

#define FAKE_GPUS_MAX      4
#define FAKE_PROCESSES_MAX 2048

struct fake_gpu {
	char uuid[48];
	char name[64];
	unsigned int bus;
	uint64_t total_bytes;
	uint64_t unlisted_bytes; /* in use, but in no row */
	unsigned int mig, exclusive;
	unsigned int lost;        /* every call about it fails; it is still counted */
	unsigned int busy_pct;    /* utilisation of the whole */
	unsigned int process_use; /* error of a question for each process */
	unsigned int count;
	struct {
		unsigned int pid;
		uint64_t bytes;
		unsigned int busy_pct; /* of the GPU's processors */
	} rows[FAKE_PROCESSES_MAX];
};

struct fake_nvml {
	unsigned int broken; /* every call fails */
	unsigned int hang;   /* every usage call sleeps while this is set */
	unsigned int gpu_count;
	unsigned int order[FAKE_GPUS_MAX]; /* NVML's index -> gpus[] */
	unsigned int questions;            /* asked so far */
	unsigned int hang_init, hang_wait; /* opening, waiting for an event sleeps */
	unsigned int opened;               /* sessions so far */
	unsigned int garbage;              /* the list of processes is nonsense */
	unsigned int xid_gpu, xid;         /* an event, taken when xid is not 0 */
	unsigned int watching;             /* waits for events so far */
	struct fake_gpu gpus[FAKE_GPUS_MAX];
};

#endif
