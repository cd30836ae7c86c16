/*
 * box - starts software GPUs for a command and its children
 *
 * A box is one server process (`sluice-softgpu serve`) in a private directory. It stands for the
 * kernel's driver and owns every byte of the GPUs. Programs reach it through the software GPU's
 * libcuda.so.1 and libnvidia-ml.so.1, found by LD_LIBRARY_PATH, and SLUICE_SOFTGPU, which names the
 * socket. Fork, then exec the command with sl_softgpu_env() applied. The box ends with the process
 * that started it (or on sl_softgpu_stop) and removes its directory.
 *
 * Not thread-safe; no locks; blocks at most a few seconds in sl_softgpu_start(). Sizes are bytes.
 */
#ifndef SL_SOFTGPU_LINK_BOX_H
#define SL_SOFTGPU_LINK_BOX_H

#include "softgpu/link/settings.h"

#include <sys/types.h>

struct sl_softgpu_box {
	pid_t pid;   /* of the server */
	int keep_fd; /* the server ends when the last copy of this is closed */
	char socket[108];
	char directory[96];
	char libraries[512]; /* folder of libcuda.so.1 and libnvidia-ml.so.1 */
	uint64_t cuda_version;
};

/* Sets all defaults. */
void sl_softgpu_config_init(struct sl_softgpu_config *config);

/*
 * Starts a server and waits until it serves. 0, or a negative errno with a sentence of at most
 * `size` bytes in `why`; after an error *box needs no stop. keep_fd is close-on-exec: the box ends
 * with the caller, even if processes that it started go on.
 */
SL_MUST_CHECK int sl_softgpu_start(struct sl_softgpu_box *box,
	const struct sl_softgpu_config *config, char *why, size_t size);

/* Sets SLUICE_SOFTGPU and the driver's version, and puts the libraries first in LD_LIBRARY_PATH, in
 * this process. */
SL_MUST_CHECK int sl_softgpu_env(const struct sl_softgpu_box *box);

enum sl_softgpu_event {
	SL_SOFTGPU_LOSE,   /* falls off the bus, with that Xid (79 on real GPUs) */
	SL_SOFTGPU_REVIVE, /* works again, for processes that start from now on */
	SL_SOFTGPU_XID,    /* only reports the Xid */
};
#define SL_SOFTGPU_XID_LOST 79

/*
 * Causes an event on a GPU of the box with that socket, from any process inside. 0, or a negative
 * errno with a sentence in `why`. -EINVAL: the GPU is in that state already.
 */
SL_MUST_CHECK int sl_softgpu_event(const char *socket, enum sl_softgpu_event event,
	uint32_t gpu, uint32_t xid, char *why, size_t size);

/* Ends the server, waits for it and removes the directory. Ignores a stopped box. */
void sl_softgpu_stop(struct sl_softgpu_box *box);

#endif
