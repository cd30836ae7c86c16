/*
 * page - the page and its API, served by sluiced itself (docs/api.md)
 *
 * HTTP on threads of its own, libmicrohttpd's, one per connection and SL_PAGE_CONNECTIONS of them
 * at most: each may block, and none touches what the loop owns. What a request wants to know or
 * to change goes through the command line's door (inside.h) as the user whose token it brings, so
 * rights and texts are those of `sluice`. Who may ask: over loopback everybody on the machine may
 * read root's, as with `sluice ps`; changes take a token, and so does reading from elsewhere or
 * from a daemon that serves its own user. Over a Unix socket the kernel says who asks.
 *
 * A connection that sends or takes too slowly ends, first of all when others want its place. All
 * calls are the loop's.
 */
#ifndef SL_DAEMON_WEB_PAGE_H
#define SL_DAEMON_WEB_PAGE_H

#include "daemon/state/daemon.h"

#define SL_PAGE_PORT    7654
#define SL_PAGE_ADDRESS "127.0.0.1:7654"

struct sl_peer;

/* Opens what the configuration says; without it nothing. On an error err says what and the remedy,
 * and sl_page_close is to be called. 0 or negative errno. */
SL_MUST_CHECK int sl_page_open(struct sl_daemon *daemon, struct sl_error *err);
/* Whether the configuration lets the page be served safely; else err says what is missing. 0 or
 * negative errno. */
SL_MUST_CHECK int sl_page_check(const struct sl_config *config, struct sl_error *err);
/* Mode and group anew, after SIGHUP. 0 or negative errno. */
SL_MUST_CHECK int sl_page_permit(const struct sl_daemon *daemon, struct sl_error *err);
/* No more requests, and who waits goes on; the door is to be ended before. */
void sl_page_close(struct sl_daemon *daemon);
/* Where it is served; "" if nowhere. */
const char *sl_page_address(const struct sl_daemon *daemon);
/* Answers PAGE_TOKEN. */
void sl_page_give_token(struct sl_peer *peer);

#endif
