/*
 * page_server - connections and requests, until a handler has them
 */
#ifndef SL_DAEMON_PAGE_SERVER_H
#define SL_DAEMON_PAGE_SERVER_H

#include "daemon/page_room.h"

/* Starts the threads. certificate "": no TLS. 0 or negative errno; err may say more. */
SL_MUST_CHECK int sl_page_server_start(struct sl_page *page, const char *certificate,
	const char *key, struct sl_error *err);
/* Ends them; also after a failed start. */
void sl_page_server_end(struct sl_page *page);

#endif
