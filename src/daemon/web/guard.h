/*
 * guard - accepts or refuses requests to the page's server by their headers
 *
 * Any web site that a user opens can make the browser send forged requests here. The site can also
 * give itself a name that resolves to this machine, to read the answers (DNS rebinding). So a
 * request must name one of this server's hosts, and must not say that it comes from another site.
 * If it changes something, its body must be declared as JSON, which a form of another site cannot
 * do. Rights depend on tokens, which a browser never sends by itself (web/tokens.h). Pure.
 */
#ifndef SL_DAEMON_WEB_GUARD_H
#define SL_DAEMON_WEB_GUARD_H

#include "base/error.h"

struct sl_page_rules {
	bool is_socket; /* a Unix socket: browsers cannot reach it, and any Host will do */
	bool is_loopback; /* else other machines reach it */
	bool tls;
	/* Further names of this machine, separated by spaces or commas; never NULL */
	const char *names;
	const char *machine; /* its host name, or "" */
};

/* Headers of a request; NULL: absent. */
struct sl_page_headers {
	const char *host, *origin, *site, *mode, *type;
	unsigned int hosts; /* number of Host headers */
	bool changes;       /* any method but GET and HEAD */
	bool has_body;
	bool is_front; /* the page itself, to which other sites may link */
};

/* 0, or the HTTP status of the refusal; why says the reason and the remedy. */
SL_MUST_CHECK unsigned int sl_page_guard(const struct sl_page_rules *rules,
	const struct sl_page_headers *headers, struct sl_error *why);

/* Whether a Host header names this machine's loopback: localhost, 127.0.0.0/8 or [::1], with or
 * without a port. */
bool sl_page_is_local_host(const char *host);

#endif
