/*
 * bundle - descriptors of other processes: shared here, and closed by threads
 *
 * A client may pass descriptors of any kind, and the process behind one can delay most calls on it:
 * close(2), fstat(2) and the end of the last reference may take as long as that process likes. So
 * the loop receives such descriptors and sends them on. Its only call on them is
 * getsockopt(SO_DOMAIN), which looks no further than the descriptor. The loop never closes such a
 * descriptor, nor a connection, whose unread messages may contain some.
 *
 * Threads close them, separate ones for each user, so a descriptor that hangs harms its own user
 * only. Threads are started at need. A thread whose close hangs does nothing else. Once both
 * threads of a user hang, the user's descriptors stay open. Those in bundles are charged to the
 * user until they are closed (ipc.c). Of descriptors outside bundles, a user may have
 * SL_BUNDLE_STRAYS_MAX open; then no more of that user's are received (sl_bundle_is_crowded).
 * Bundles belong to the loop; any thread may call the rest.
 */
#ifndef SL_DAEMON_LINK_BUNDLE_H
#define SL_DAEMON_LINK_BUNDLE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/sl.h"

/* Descriptors of one user outside bundles that are not closed yet. */
#define SL_BUNDLE_STRAYS_MAX 256

struct sl_daemon;

struct sl_bundle {
	uint32_t users, room, count;
	uid_t uid;       /* user charged for it */
	uint64_t client; /* its client charged for it, until the last use ends */
	int fd[];
};

/* A bundle with one use and `room` places, which are charged from now on. NULL: no memory. */
struct sl_bundle *sl_bundle_new(uint32_t room, uid_t uid, uint64_t client);
struct sl_bundle *sl_bundle_ref(struct sl_bundle *bundle);
/* Ends one use; the last one closes the descriptors. Accepts NULL; returns NULL. */
struct sl_bundle *sl_bundle_unref(struct sl_bundle *bundle);
/* Like unref; with the last use its client is no longer charged. Accepts NULL; returns NULL. */
struct sl_bundle *sl_bundle_put(struct sl_daemon *daemon, struct sl_bundle *bundle);
/* Takes ownership of the descriptors, which must fit. */
void sl_bundle_add(struct sl_bundle *bundle, const int *fds, uint32_t count);
/* Descriptors charged: to all users, and to one. */
uint32_t sl_bundle_kept(void);
uint32_t sl_bundle_kept_of(uid_t uid);

/* Soon closes a descriptor that came from this user. fd may be -1. */
void sl_bundle_close(int fd, uid_t uid);
/* This user has too many such descriptors still open: take no more. */
SL_MUST_CHECK bool sl_bundle_is_crowded(uid_t uid);
/* Soon closes a connection, together with unread messages in it. fd may be -1. */
void sl_bundle_hang_up(int fd);
/* Waits at most 1 s until all of them are closed. */
void sl_bundle_finish(void);

#endif
