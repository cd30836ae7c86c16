/*
 * A wrapped list cannot be read, and a silently missing last column is worse. So text columns (the
 * command) are cut first, the widest first, each down to its least width. Then whole columns are
 * dropped, least important first. Row names are cut last, numbers never.
 */
#include "cli/line/table.h"

#include "base/amount.h"
#include "cli/line/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2
/* A name is worth more than a column: up to this many characters it stays whole. */
#define NAME_WHOLE 24

struct cell {
	char text[SL_TABLE_CELL_MAX];
};

struct sl_table {
	const struct sl_column *columns;
	size_t count, rows,
		room; /* capacity of rows; the row being filled is number `rows` */
	struct cell *cells;
};

/* Allocates and clears one more row. */
static bool grow(struct sl_table *t)
{
	if (t->rows == t->room) {
		size_t room = t->room ? t->room * 2 : 16;
		struct cell *cells =
			reallocarray(t->cells, room * t->count, sizeof(*cells));

		if (!cells)
			return false;
		t->cells = cells;
		t->room = room;
	}
	for (size_t i = 0; i < t->count; i++)
		t->cells[t->rows * t->count + i].text[0] = '\0';
	return true;
}

struct sl_table *sl_table_new(const struct sl_column *columns, size_t count)
{
	struct sl_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->columns = columns;
	t->count = count;
	return grow(t) ? t : sl_table_free(t);
}

struct sl_table *sl_table_free(struct sl_table *t)
{
	if (t)
		free(t->cells);
	free(t);
	return NULL;
}

void sl_table_freep(struct sl_table **t)
{
	*t = sl_table_free(*t);
}

void sl_table_set(struct sl_table *t, size_t column, const char *format, ...)
{
	char *text = t->cells[t->rows * t->count + column].text;
	va_list args;

	va_start(args, format);
	vsnprintf(text, SL_TABLE_CELL_MAX, format, args);
	va_end(args);
	/* Names come from other users: their escape sequences must not reach the terminal. */
	sl_text_tame(text);
}

bool sl_table_end_row(struct sl_table *t)
{
	t->rows++;
	if (grow(t))
		return true;
	t->rows--;
	return false;
}

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static unsigned int length(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += starts_character(*text);
	return n;
}

static void print_cell(
	const char *text, unsigned int width, bool right, bool last, FILE *out)
{
	unsigned int len = length(text);

	if (len > width) {
		/* "..." marks the cut, except in a very narrow cell. */
		unsigned int keep = width > 6 ? width - 2 : width;
		unsigned int seen = 0;

		for (; *text; text++) {
			seen += starts_character(*text);
			if (seen > keep)
				break;
			fputc(*text, out);
		}
		if (keep < width)
			fputs("..", out);
		len = width;
	} else {
		if (right)
			fprintf(out, "%*s", (int)(width - len), "");
		fputs(text, out);
		if (right)
			len = width;
	}
	if (!last)
		fprintf(out, "%*s", (int)(width - len + GAP), "");
}

static bool is_empty(const struct sl_table *t, size_t column)
{
	for (size_t r = 0; r < t->rows; r++) {
		const char *text = t->cells[r * t->count + column].text;

		if (text[0] && strcmp(text, "-") != 0)
			return false;
	}
	return true;
}

/* The natural width of each column; 0 for those that are left out. */
static void natural_widths(const struct sl_table *t, unsigned int *widths)
{
	for (size_t c = 0; c < t->count; c++) {
		widths[c] = 0;
		if (t->columns[c].hides && is_empty(t, c))
			continue;
		widths[c] = length(t->columns[c].title);
		for (size_t r = 0; r < t->rows; r++) {
			unsigned int w = length(t->cells[r * t->count + c].text);

			if (w > widths[c])
				widths[c] = w;
		}
	}
}

static unsigned int total(const struct sl_table *t, const unsigned int *widths)
{
	unsigned int sum = 0;

	for (size_t c = 0; c < t->count; c++)
		if (widths[c])
			sum += widths[c] + (sum ? GAP : 0);
	return sum;
}

/* Cuts one character off the widest column that may be cut, among droppable or other columns. */
static bool shrink(const struct sl_table *t, unsigned int *widths, bool droppable)
{
	size_t widest = t->count;

	for (size_t c = 0; c < t->count; c++)
		if (t->columns[c].least && widths[c] > t->columns[c].least &&
			!t->columns[c].drop == !droppable &&
			(widest == t->count || widths[c] > widths[widest]))
			widest = c;
	if (widest == t->count)
		return false;
	widths[widest]--;
	return true;
}

static bool drop(const struct sl_table *t, unsigned int *widths)
{
	size_t next = t->count;

	for (size_t c = 0; c < t->count; c++)
		if (t->columns[c].drop && widths[c] &&
			(next == t->count || t->columns[c].drop < t->columns[next].drop))
			next = c;
	if (next == t->count)
		return false;
	widths[next] = 0;
	return true;
}

/* Width below which another column is dropped instead. */
static unsigned int least_of(const struct sl_column *column, unsigned int width)
{
	unsigned int least = column->drop ? column->least : NAME_WHOLE;

	return width < least ? width : least;
}

/* Keeps as many columns as fit at their least widths, then cuts as little as possible. */
static void fit(const struct sl_table *t, unsigned int width, unsigned int *widths)
{
	unsigned int least[32];

	natural_widths(t, widths);
	if (!width)
		return;
	for (;;) {
		memcpy(least, widths, t->count * sizeof(*least));
		for (size_t c = 0; c < t->count; c++)
			if (t->columns[c].least)
				least[c] = least_of(&t->columns[c], widths[c]);
		if (total(t, least) <= width || !drop(t, widths))
			break;
	}
	while (total(t, widths) > width &&
		(shrink(t, widths, true) || shrink(t, widths, false)))
		;
}

static void print_row(const struct sl_table *t, const unsigned int *widths,
	const struct cell *row, FILE *out)
{
	size_t last = t->count;

	while (last > 0 && !widths[last - 1])
		last--;
	for (size_t c = 0; c < last; c++)
		if (widths[c])
			print_cell(row ? row[c].text : t->columns[c].title, widths[c],
				t->columns[c].right, c + 1 == last, out);
	fputc('\n', out);
}

void sl_table_print(const struct sl_table *t, unsigned int width, FILE *out)
{
	unsigned int widths[32] = {0};

	fit(t, width, widths);
	print_row(t, widths, NULL, out);
	for (size_t r = 0; r < t->rows; r++)
		print_row(t, widths, &t->cells[r * t->count], out);
}

unsigned int sl_table_terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns && atoi(columns) > 0)
		return (unsigned int)atoi(columns);
	if (!isatty(fd))
		return 0;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return 80;
	return size.ws_col;
}

const char *sl_table_age(uint64_t ms, char *buf, size_t size)
{
	return sl_span_format(ms / 1000 * SL_S, buf, size);
}
