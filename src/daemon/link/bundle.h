/*
 * bundle - descriptors of other processes, that several here point at, and their end
 *
 * What a client passes along may be anything, and almost every call on it is answered by who made
 * it: close(2), fstat(2) and the end of the last reference may take as long as a stranger likes. So
 * the loop only receives such descriptors, sends them on, and asks getsockopt(SO_DOMAIN), which
 * looks no further than the descriptor; it never closes one, nor a connection, which may have some
 * among what was not read.
 *
 * Threads do that, for each user its own: what one user's take is lost to that user. They are
 * started at need. A close that hangs keeps its thread; both of a user's may, and then the user's
 * descriptors stay: those of bundles are charged to it until they are closed (ipc.c), and of others
 * it has so many (sl_bundle_is_crowded) before no more are taken. Bundles are the loop's; the rest
 * any thread's.
 */
#ifndef SL_DAEMON_LINK_BUNDLE_H
#define SL_DAEMON_LINK_BUNDLE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/sl.h"

/* Of one user, that nobody wanted and that are not closed yet. */
#define SL_BUNDLE_STRAYS_MAX 256

struct sl_daemon;

struct sl_bundle {
	uint32_t users, room, count;
	uid_t uid;       /* who is charged for it */
	uint64_t client; /* and which of its clients, until the last user is gone */
	int fd[];
};

/* With one user, and room for so many, which is charged from now on. NULL without memory. */
struct sl_bundle *sl_bundle_new(uint32_t room, uid_t uid, uint64_t client);
struct sl_bundle *sl_bundle_ref(struct sl_bundle *bundle);
/* The last user's closes them. NULL is fine; returns NULL. */
struct sl_bundle *sl_bundle_unref(struct sl_bundle *bundle);
/* Ends one use of a bundle, and with the last one what its client is charged. NULL is fine; returns
 * NULL. */
struct sl_bundle *sl_bundle_put(struct sl_daemon *daemon, struct sl_bundle *bundle);
/* Takes the descriptors, which must fit. */
void sl_bundle_add(struct sl_bundle *bundle, const int *fds, uint32_t count);
/* Charged: of everybody, and of one user. */
uint32_t sl_bundle_kept(void);
uint32_t sl_bundle_kept_of(uid_t uid);

/* Closes a descriptor that came from this user, soon. -1 is fine. */
void sl_bundle_close(int fd, uid_t uid);
/* There are too many such that are not closed yet: none should be taken. */
SL_MUST_CHECK bool sl_bundle_is_crowded(uid_t uid);
/* Closes a connection, soon: with what was sent along it and never received. -1 is fine. */
void sl_bundle_hang_up(int fd);
/* Waits until all of them are closed, for a second at most. */
void sl_bundle_finish(void);

#endif
