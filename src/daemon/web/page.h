/*
 * page - the page and its API, served by sluiced itself (docs/api.md)
 *
 * HTTP in libmicrohttpd's threads, one per connection and SL_PAGE_CONNECTIONS at most: each may
 * block, and none touches what the loop owns. A request reads and changes through the command
 * line's door (inside.h), as the user of its token. So rights and texts are those of `sluice`. Over
 * loopback, all users of the machine may read the page of root's daemon, as with `sluice ps`.
 * Changes need a token, and so does reading from other machines, or from a daemon that serves its
 * own user. Over a Unix socket the kernel identifies the user.
 *
 * Connections that send or receive too slowly are closed, earlier if others wait for a place. All
 * calls are the loop's.
 */
#ifndef SL_DAEMON_WEB_PAGE_H
#define SL_DAEMON_WEB_PAGE_H

#include "daemon/state/daemon.h"

#define SL_PAGE_PORT    7654
#define SL_PAGE_ADDRESS "127.0.0.1:7654"

struct sl_peer;

/* Opens the configured address, if any. On an error err says what is wrong and the remedy, and the
 * caller must call sl_page_close. 0 or negative errno. */
SL_MUST_CHECK int sl_page_open(struct sl_daemon *daemon, struct sl_error *err);
/* Whether the configuration serves the page safely; else err says what is missing. 0 or negative
 * errno. */
SL_MUST_CHECK int sl_page_check(const struct sl_config *config, struct sl_error *err);
/* Sets mode and group again, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_page_permit(const struct sl_daemon *daemon, struct sl_error *err);
/* Ends all requests, including waiting ones; the caller ends the door first. */
void sl_page_close(struct sl_daemon *daemon);
/* The address it is served at; "" if none. */
const char *sl_page_address(const struct sl_daemon *daemon);
/* Answers PAGE_TOKEN. */
void sl_page_give_token(struct sl_peer *peer);

#endif
