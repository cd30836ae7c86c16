/*
 * guard - which requests the page's server takes, by their headers
 *
 * A browser on this machine is led by any web site that its user opens: such a site can make it
 * send requests here (forged ones), and can give itself a name that leads here (DNS rebinding), to
 * read the answers. So a request must name a host that is ours, must not say that it comes from
 * another site, and one that changes something must say that it brings JSON, which no form of
 * another site can. Rights are a matter of tokens, which no browser sends by itself
 * (web/tokens.h). Pure.
 */
#ifndef SL_DAEMON_WEB_GUARD_H
#define SL_DAEMON_WEB_GUARD_H

#include "base/error.h"

struct sl_page_rules {
	bool is_socket; /* a Unix socket: no browser gets there by itself, and any Host will do */
	bool is_loopback; /* else other machines reach it */
	bool tls;
	/* Further names of this machine, with spaces or commas between; never NULL */
	const char *names;
	const char *machine; /* its own name, or "" */
};

/* Headers; NULL: not there. */
struct sl_page_headers {
	const char *host, *origin, *site, *mode, *type;
	unsigned int hosts; /* how often Host was there */
	bool changes;       /* POST and DELETE */
	bool has_body;
	bool is_front; /* the page itself, to which other sites may link */
};

/* 0, or the HTTP status of the refusal, with why and the remedy. */
SL_MUST_CHECK unsigned int sl_page_guard(const struct sl_page_rules *rules,
	const struct sl_page_headers *headers, struct sl_error *why);

#endif
