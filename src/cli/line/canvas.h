/*
 * canvas - a screen of character cells
 *
 * Drawing functions write into cells and know no terminal; screen.c shows the cells, and tests read
 * them. Text that does not fit is cut. Texts are UTF-8; control characters are replaced while they
 * are drawn (cli/line/text.h), and an ASCII canvas shows other characters as '?'. Widths follow
 * wcwidth(3), which depends on LC_CTYPE.
 */
#ifndef SL_CLI_LINE_CANVAS_H
#define SL_CLI_LINE_CANVAS_H

#include "base/sl.h"

/* Styles, by meaning. Text must make sense without them: some terminals show few of them. */
enum sl_style {
	SL_STYLE_PLAIN = 0,
	SL_STYLE_BOLD,
	SL_STYLE_DIM,
	SL_STYLE_SELECTED,
	SL_STYLE_GOOD,
	SL_STYLE_WARN,
	SL_STYLE_BAD,
	SL_STYLE_WORKLOAD, /* and the next ones, for the workloads in turn */
	SL_STYLES = SL_STYLE_WORKLOAD + 6
};

struct sl_cell {
	uint32_t c; /* 0: the right half of a wide character */
	uint8_t style;
};

struct sl_canvas {
	unsigned int width, height;
	bool ascii;
	struct sl_cell *cells; /* row by row */
};

/* All blank. False when out of memory. */
SL_MUST_CHECK bool sl_canvas_init(
	struct sl_canvas *canvas, unsigned int width, unsigned int height, bool ascii);
void sl_canvas_fini(struct sl_canvas *canvas);
void sl_canvas_clear(struct sl_canvas *canvas);

/* Sets one cell; ignores a place outside the canvas. */
void sl_canvas_put(struct sl_canvas *canvas, unsigned int x, unsigned int y, uint32_t c,
	enum sl_style style);

/* Text at x, y in at most width cells, cut with ".." if there is space for that. Returns the cells
 * used. */
unsigned int sl_canvas_text(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int width, enum sl_style style, const char *text);
/* The same, right-aligned, ending at x + width. */
void sl_canvas_right(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int width, enum sl_style style, const char *text);
/* Wraps text at blanks to `width` from line y on, and draws the lines above y_end. Returns how many
 * lines the text needs. With canvas NULL it only counts. */
unsigned int sl_canvas_wrapped(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int y_end, unsigned int width, enum sl_style style, const char *text);
/* Sets the style of the whole line; keeps its text. */
void sl_canvas_style_line(struct sl_canvas *canvas, unsigned int y, enum sl_style style);

/* The line as UTF-8 without trailing blanks; returns buf. For tests. */
const char *sl_canvas_line(
	const struct sl_canvas *canvas, unsigned int y, char *buf, size_t size);

#endif
