/*
 * companion - the process that runs a client's kernels on one software GPU
 */
#ifndef SL_SOFTGPU_SERVER_COMPANION_H
#define SL_SOFTGPU_SERVER_COMPANION_H

#include "base/clock.h"

/*
 * Serves the client at the other end of `socket` (base: softgpu/link/proto.h) until it is gone,
 * whatever kernels still run. engine: the time slice of engine.h. Returns the exit status.
 */
SL_MUST_CHECK int sl_companion_serve(int socket, uint32_t device, sl_ns engine);

#endif
