/*
 * bundle - descriptors of other processes, that several here point at, and their end
 *
 * What a client passes along may be anything: GPU memory, whose last reference takes the driver
 * its time to give up, or a socket that lingers. So descriptors of others are never closed in the
 * loop, nor connections, which may have some among what was not read: a thread does nothing else,
 * and others help while it hangs. They are started at need; if they cannot be, it is done here.
 * Bundles are the loop's; sl_bundle_close may be called by any thread.
 */
#ifndef SL_DAEMON_BUNDLE_H
#define SL_DAEMON_BUNDLE_H

#include <stdint.h>

#include "base/sl.h"

struct sl_bundle {
	uint32_t users, room, count;
	int fd[];
};

/* With one user, and room for so many. NULL without memory. */
struct sl_bundle *sl_bundle_new(uint32_t room);
struct sl_bundle *sl_bundle_ref(struct sl_bundle *bundle);
/* The last user's closes them. NULL is fine; returns NULL. */
struct sl_bundle *sl_bundle_unref(struct sl_bundle *bundle);
/* Takes the descriptors, which must fit. */
void sl_bundle_add(struct sl_bundle *bundle, const int *fds, uint32_t count);

/* Closes a descriptor of somebody else's, soon. -1 is fine. */
void sl_bundle_close(int fd);
/* Waits until all of them are closed, for a second at most. */
void sl_bundle_finish(void);

#endif
