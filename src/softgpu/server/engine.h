/*
 * engine - the one engine of a software GPU that runs the kernels of one process at a time
 *
 * With a time slice set, companions take the engine in turn; a kernel of several blocks gives it up
 * between two blocks once its slice is over and another process waits. Kernels of one process run
 * side by side, as on a real GPU. A companion that dies gives the engine up.
 */
#ifndef SL_SOFTGPU_SERVER_ENGINE_H
#define SL_SOFTGPU_SERVER_ENGINE_H

#include "base/clock.h"

/* slice 0: kernels never wait. fd: the GPU's memory file. Before kernels run. */
void sl_engine_init(int fd, sl_ns slice);
/* Around a kernel. */
void sl_engine_enter(void);
void sl_engine_leave(void);
/* Between two blocks of a kernel. */
void sl_engine_pass(void);

#endif
