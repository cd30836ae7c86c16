/*
 * screen - a terminal that shows a canvas and reads keys
 *
 * The only file that uses curses. One screen per process. Between open and close the terminal is in
 * curses' mode, so close it before every exit.
 */
#ifndef SL_CLI_TOP_SCREEN_H
#define SL_CLI_TOP_SCREEN_H

#include "base/error.h"
#include "cli/line/canvas.h"

enum sl_key {
	SL_KEY_NONE = 0,
	/* Printable characters stand for themselves; these are the others. */
	SL_KEY_UP = 256,
	SL_KEY_DOWN,
	SL_KEY_PAGE_UP,
	SL_KEY_PAGE_DOWN,
	SL_KEY_HOME,
	SL_KEY_END,
	SL_KEY_ENTER,
	SL_KEY_ESCAPE,
	SL_KEY_RESIZE,
};

enum {
	SL_SCREEN_OK = 0,
	SL_SCREEN_UNFIT /* err names the fault of the terminal */
};

/* Takes over the terminal of standard input and output. *ascii: it can show ASCII only. */
SL_MUST_CHECK int sl_screen_open(bool *ascii, struct sl_error *err);
/* Restores the terminal. Safe to call twice. */
void sl_screen_close(void);
void sl_screen_size(unsigned int *width, unsigned int *height);
void sl_screen_show(const struct sl_canvas *canvas);
/* Never blocks. */
int sl_screen_key(void);

#endif
