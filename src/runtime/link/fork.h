/*
 * fork - the child starts from nothing
 *
 * A forked child shares no GPU state with its parent: the driver gives it none. The child forgets
 * records, regions and session, closes its copy of the socket without sending anything, and joins
 * anew at its first CUDA call.
 */
#ifndef SL_RUNTIME_LINK_FORK_H
#define SL_RUNTIME_LINK_FORK_H

/* Registers the child's handler, once per process image. */
void sl_fork_watch(void);

#endif
