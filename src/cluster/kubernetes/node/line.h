/*
 * line - what sluice-kube asks of the sluiced of its node
 *
 * A connection of the command line's kind, on the loop. Calls wait in a queue and are made one
 * after the other, so a row belongs to the call that is first. A line that breaks, or does not
 * answer for SL_LINE_TIMEOUT, fails all calls; the next attempt follows after 0.1 s, then twice as
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
	/* sluiced is there, perhaps another one than before: what it does not know must be said
	 * again. */
	void (*up)(void *context);
	/* It is not, any more or yet; err says why, and is told once per reason. */
	void (*down)(void *context, const struct sl_error *err);
};

/* path is copied. The first attempt is made by the loop. 0 or negative errno. */
SL_MUST_CHECK int sl_line_new(sd_event *loop, const char *path,
	const struct sl_line_handler *handler, struct sl_line **out);
/* Open calls are dropped without a word. Takes NULL. Returns NULL. */
struct sl_line *sl_line_free(struct sl_line *line);
SL_MUST_CHECK bool sl_line_is_up(const struct sl_line *line);

/*
 * msg: an answer, or a row; NULL: no more comes, either because all has come (err NULL) or because
 * the call failed (err). It is called for the last time then. It may make calls, and must not free
 * the line.
 */
typedef void (*sl_line_fn)(
	void *context, const union sl_msg *msg, const struct sl_error *err);

/* Sends *ask (copied) in its turn. want: the answer's type, one message; or that of rows, which
 * LIST_END follows (rows true). -ENOTCONN: the line is down, fn is not called. -ENOMEM likewise. */
SL_MUST_CHECK int sl_line_call(struct sl_line *line, const union sl_msg *ask,
	enum sl_msg_type want, bool rows, sl_line_fn fn, void *context);
/* fn is not called any more for this context. The calls themselves are made all the same. */
void sl_line_forget(struct sl_line *line, const void *context);

#endif
