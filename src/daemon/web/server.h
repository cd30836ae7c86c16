/*
 * server - connections and requests, up to the handler
 */
#ifndef SL_DAEMON_WEB_SERVER_H
#define SL_DAEMON_WEB_SERVER_H

#include "daemon/web/internal.h"

/* Starts the threads. certificate "": no TLS. 0 or negative errno; err may say more. */
SL_MUST_CHECK int sl_page_server_start(struct sl_page *page, const char *certificate,
	const char *key, struct sl_error *err);
/* Ends the threads; also after a failed start. */
void sl_page_server_end(struct sl_page *page);

/* --- web/door.c ------------------------------------------------------------------------------ */

/* The door's thread; runs until page->ending. context: the page. */
void *sl_page_door_keep(void *context);
/* For libmicrohttpd: a connection begins or ends. */
void sl_page_door_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
	enum MHD_ConnectionNotificationCode code);
/* NULL: there was no memory for it. */
struct sl_page_connection *sl_page_connection_of(struct MHD_Connection *mhd);
/* Sets the asker of the connection's present request. */
void sl_page_door_asker(
	struct sl_page *page, struct MHD_Connection *mhd, struct sl_page_asker asker);
void sl_page_door_phase(
	struct sl_page *page, struct MHD_Connection *mhd, enum sl_page_phase phase);

#endif
