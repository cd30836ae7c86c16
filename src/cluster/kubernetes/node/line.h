/*
 * line - the connection from sluice-kube to its node's sluiced
 *
 * A connection like the command line's, on the loop. Calls are queued and made one after the other,
 * so a row always belongs to the first call. If the line breaks, or sluiced does not answer for
 * SL_LINE_TIMEOUT, all calls fail. The next attempt to connect follows after 0.1 s, then twice as
 * long each time up to 5 s. Loop's thread. Nothing blocks.
 */
#ifndef SL_KUBE_LINE_H
#define SL_KUBE_LINE_H

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"
#include "wire/wire.h"

#define SL_LINE_TIMEOUT (10 * SL_S)

struct sl_line;

struct sl_line_handler {
	void *context;
	/* Connected, perhaps to a new daemon, which must be told again what it does not know. */
	void (*up)(void *context);
	/* Disconnected, or not connected yet; err has the reason, reported once per reason. */
	void (*down)(void *context, const struct sl_error *err);
};

/* path is copied. The loop makes the first attempt. 0 or negative errno. */
SL_MUST_CHECK int sl_line_new(sd_event *loop, const char *path,
	const struct sl_line_handler *handler, struct sl_line **out);
/* Drops open calls without calling their functions. Accepts NULL. Returns NULL. */
struct sl_line *sl_line_free(struct sl_line *line);
SL_MUST_CHECK bool sl_line_is_up(const struct sl_line *line);

/*
 * msg: an answer or a row; or NULL in the function's last call, after the end (err NULL) or a
 * failure (err). The function may make calls, but must not free the line.
 */
typedef void (*sl_line_fn)(
	void *context, const union sl_msg *msg, const struct sl_error *err);

/* Queues *ask (copied). rows false: one answer comes, of type want. rows true: rows of type want
 * come, then LIST_END. -ENOTCONN (the line is down) or -ENOMEM: fn is not called. */
SL_MUST_CHECK int sl_line_call(struct sl_line *line, const union sl_msg *ask,
	enum sl_msg_type want, bool rows, sl_line_fn fn, void *context);
/* fn is no longer called for this context. The calls themselves are still made. */
void sl_line_forget(struct sl_line *line, const void *context);

#endif
