/*
 * trust - does a socket belong to root's daemon or the user's own?
 *
 * The command line and libsluice trust no other: a stranger's "daemon" would learn command lines
 * and offer GPUs that do not exist. In a user namespace, root of the outside shows as 65534, like
 * every user without a number there. So the folder decides, too. Makes system calls directly, so it
 * needs nothing of newer C libraries. Keeps no state.
 */
#ifndef SL_BASE_TRUST_H
#define SL_BASE_TRUST_H

#include "base/error.h"

#include <sys/types.h>

enum {
	SL_TRUST_OK = 0,
	SL_TRUST_NO /* err names the socket, the user and the remedy */
};

/* fd is connected to the socket at path. OK if root or this user listens, in a folder of root's or
 * this user's. NO also if that cannot be determined. */
SL_MUST_CHECK int sl_trust_daemon(int fd, const char *path, struct sl_error *err);
/* Does this existing folder belong to root or this user? */
SL_MUST_CHECK bool sl_trust_folder(const char *path, uid_t *owner);
/* Does path exist and belong to this user? */
SL_MUST_CHECK bool sl_trust_is_own(const char *path);

/* --- for tests ------------------------------------------------------------------------------- */

/* Parses the text of a /proc/self/uid_map: is it of a user namespace, and does it map the user
 * `uid`? */
SL_MUST_CHECK bool sl_trust_parse_map(const char *map, uid_t uid, bool *has_uid);

#endif
