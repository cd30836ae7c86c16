/*
 * server - the process that owns the software GPUs of one box
 */
#ifndef SL_SOFTGPU_SERVER_SERVER_H
#define SL_SOFTGPU_SERVER_SERVER_H

#include "softgpu/link/box.h"

/*
 * Serves at a socket path until SIGTERM, or until the other end of keep_fd is closed (-1: none).
 * Writes one byte to ready_fd and closes it once it serves; removes the socket and its directory at
 * the end. Returns the process's exit status; reports a failure to start on stderr.
 */
SL_MUST_CHECK int sl_softgpu_serve(const struct sl_softgpu_config *config,
	const char *path, int keep_fd, int ready_fd);

#endif
