/*
 * trust - is what listens at a socket the daemon of root, or our own?
 *
 * Command line and libsluice believe no other: a stranger's "daemon" would learn command lines, and
 * hand out GPUs that are not there. In a user namespace root outside has no number but that of
 * everybody who has none (65534), so there the place decides, too. Direct system calls: nothing of
 * newer C libraries is needed. Keeps no state.
 */
#ifndef SL_BASE_TRUST_H
#define SL_BASE_TRUST_H

#include "base/error.h"

#include <sys/types.h>

enum {
	SL_TRUST_OK = 0,
	SL_TRUST_NO /* err names the socket, the user, and the remedy */
};

/* fd is connected to the socket at path: does it listen for root or for us, in a folder of root's
 * or ours? Also NO if that cannot be seen. */
SL_MUST_CHECK int sl_trust_daemon(int fd, const char *path, struct sl_error *err);
/* Is the folder, which exists, root's or ours? */
SL_MUST_CHECK bool sl_trust_folder(const char *path, uid_t *owner);
/* Is there something at path that is ours? */
SL_MUST_CHECK bool sl_trust_is_own(const char *path);

/* --- for tests ------------------------------------------------------------------------------- */

/* Of the text of a /proc/self/uid_map: is it that of a user namespace, and has it a user `uid`? */
SL_MUST_CHECK bool sl_trust_parse_map(const char *map, uid_t uid, bool *has_uid);

#endif
