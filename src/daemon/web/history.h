/*
 * history - requests that ask the history, a few at a time
 */
#ifndef SL_DAEMON_WEB_HISTORY_H
#define SL_DAEMON_WEB_HISTORY_H

#include "daemon/history/history.h"
#include "daemon/web/internal.h"

/* Waits for a place, then for the answer, which the caller frees. NULL: err says why there is
 * none. */
SL_MUST_CHECK struct sl_history_text *sl_page_ask_history(struct sl_page_request *request,
	struct sl_history_ask *ask, struct sl_error *err);

#endif
