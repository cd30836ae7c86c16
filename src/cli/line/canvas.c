/* Every text is tamed before it reaches a cell, so no cell holds a control character. */
#include "cli/line/canvas.h"

#include "cli/line/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define TEXT_MAX 1024

bool sl_canvas_init(
	struct sl_canvas *canvas, unsigned int width, unsigned int height, bool ascii)
{
	*canvas = (struct sl_canvas){.width = width, .height = height, .ascii = ascii};
	canvas->cells = calloc((size_t)width * height + 1, sizeof(*canvas->cells));
	if (canvas->cells)
		sl_canvas_clear(canvas);
	return canvas->cells != NULL;
}

void sl_canvas_fini(struct sl_canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct sl_canvas){0};
}

void sl_canvas_clear(struct sl_canvas *canvas)
{
	for (size_t i = 0; i < (size_t)canvas->width * canvas->height; i++)
		canvas->cells[i] = (struct sl_cell){.c = ' '};
}

void sl_canvas_put(struct sl_canvas *canvas, unsigned int x, unsigned int y, uint32_t c,
	enum sl_style style)
{
	if (x < canvas->width && y < canvas->height)
		canvas->cells[(size_t)y * canvas->width + x] =
			(struct sl_cell){.c = c, .style = (uint8_t)style};
}

/* Cells of a character; replaces one that the canvas cannot show. */
static unsigned int cells_of(bool ascii, uint32_t *c)
{
	int width;

	if (*c < 0x80)
		return 1;
	width = ascii ? -1 : wcwidth((wchar_t)*c);
	if (width < 0)
		*c = '?';
	return width < 0 ? 1 : (unsigned int)width;
}

static unsigned int cells_of_text(bool ascii, const char *text, size_t bytes)
{
	const char *end = text + bytes;
	unsigned int cells = 0;

	while (text < end && *text) {
		uint32_t c = sl_text_next(&text);

		cells += cells_of(ascii, &c);
	}
	return cells;
}

/* Draws whole characters as long as they fit. */
static unsigned int draw(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int width, enum sl_style style, const char *text, size_t bytes)
{
	const char *end = text + bytes;
	unsigned int used = 0;

	while (text < end && *text) {
		uint32_t c = sl_text_next(&text);
		unsigned int cells = cells_of(canvas->ascii, &c);

		if (used + cells > width)
			break;
		/* Combining marks are left out. */
		for (unsigned int i = 0; i < cells; i++)
			sl_canvas_put(canvas, x + used + i, y, i ? 0 : c, style);
		used += cells;
	}
	return used;
}

static unsigned int room(
	const struct sl_canvas *canvas, unsigned int x, unsigned int width)
{
	unsigned int left = x < canvas->width ? canvas->width - x : 0;

	return width < left ? width : left;
}

unsigned int sl_canvas_text(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int width, enum sl_style style, const char *text)
{
	char tamed[TEXT_MAX];
	unsigned int used;

	width = room(canvas, x, width);
	snprintf(tamed, sizeof(tamed), "%s", text);
	sl_text_tame(tamed);
	if (cells_of_text(canvas->ascii, tamed, strlen(tamed)) <= width || width <= 6)
		return draw(canvas, x, y, width, style, tamed, strlen(tamed));
	used = draw(canvas, x, y, width - 2, style, tamed, strlen(tamed));
	return used + draw(canvas, x + used, y, 2, style, "..", 2);
}

void sl_canvas_right(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int width, enum sl_style style, const char *text)
{
	unsigned int cells = cells_of_text(canvas->ascii, text, strlen(text));

	if (cells < width)
		x += width - cells;
	sl_canvas_text(canvas, x, y, cells < width ? cells : width, style, text);
}

/* How many bytes of text go on a line of width cells: up to the last blank that fits; without a
 * blank as much as fits, and at least one character. */
static size_t line_bytes(bool ascii, unsigned int width, const char *text)
{
	const char *at = text, *blank = NULL;
	unsigned int used = 0;

	while (*at) {
		const char *next = at;
		uint32_t c = sl_text_next(&next);

		used += cells_of(ascii, &c);
		if (used > width)
			return blank       ? (size_t)(blank - text)
			       : at > text ? (size_t)(at - text)
					   : (size_t)(next - text);
		at = next;
		if (*at == ' ' || !*at)
			blank = at;
	}
	return (size_t)(at - text);
}

unsigned int sl_canvas_wrapped(struct sl_canvas *canvas, unsigned int x, unsigned int y,
	unsigned int y_end, unsigned int width, enum sl_style style, const char *text)
{
	char tamed[TEXT_MAX];
	const char *at = tamed;
	unsigned int lines = 0;

	snprintf(tamed, sizeof(tamed), "%s", text);
	sl_text_tame(tamed);
	for (; *at && width; lines++) {
		size_t bytes = line_bytes(canvas && canvas->ascii, width, at);

		if (canvas && y + lines < y_end)
			draw(canvas, x, y + lines, width, style, at, bytes);
		at += bytes;
		at += strspn(at, " ");
	}
	return lines;
}

void sl_canvas_style_line(struct sl_canvas *canvas, unsigned int y, enum sl_style style)
{
	for (unsigned int x = 0; x < canvas->width && y < canvas->height; x++)
		canvas->cells[(size_t)y * canvas->width + x].style = (uint8_t)style;
}

const char *sl_canvas_line(
	const struct sl_canvas *canvas, unsigned int y, char *buf, size_t size)
{
	size_t used = 0, end = 0;

	for (unsigned int x = 0; x < canvas->width && used + 5 < size; x++) {
		uint32_t c = canvas->cells[(size_t)y * canvas->width + x].c;

		if (!c)
			continue;
		if (c < 0x80) {
			buf[used++] = (char)c;
		} else if (c < 0x800) {
			buf[used++] = (char)(0xc0 | c >> 6);
			buf[used++] = (char)(0x80 | (c & 0x3f));
		} else {
			if (c < 0x10000) {
				buf[used++] = (char)(0xe0 | c >> 12);
			} else {
				buf[used++] = (char)(0xf0 | c >> 18);
				buf[used++] = (char)(0x80 | (c >> 12 & 0x3f));
			}
			buf[used++] = (char)(0x80 | (c >> 6 & 0x3f));
			buf[used++] = (char)(0x80 | (c & 0x3f));
		}
		if (c != ' ')
			end = used;
	}
	buf[end] = '\0';
	return buf;
}
