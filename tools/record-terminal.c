/*
 * record-terminal OUT.svg COLUMNS ROWS TITLE -- CMD...: a moving picture of CMD in a terminal
 *
 * CMD runs on a pseudo-terminal; what it draws is followed by a small emulation (text, new line,
 * carriage return, cursor up, erase line: what our own tables use; anything else is an error, so
 * that a picture is never quietly wrong). Every row of the screen becomes texts with the time
 * each was seen, which an SVG can show one after the other, in a loop, without a script. A viewer
 * that does not animate shows the last screen.
 *
 * Used by tools/record-demo only; no part of what is installed.
 */
#include <ctype.h>
#include <errno.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX    64
#define COLUMNS_MAX 160
/* Changes closer than this are one: a redraw arrives in pieces. */
#define FRAME_MS    60
#define LAST_MS     6000 /* the end stays for reading */
#define CELL_WIDTH  8.43
#define LINE_HEIGHT 19
#define MARGIN      14
#define BAR_HEIGHT  30

struct span {
	int row;
	long from_ms, to_ms; /* to_ms -1: until the end */
	char text[COLUMNS_MAX + 1];
};

static char screen[ROWS_MAX][COLUMNS_MAX + 1];
static char shown[ROWS_MAX][COLUMNS_MAX + 1]; /* as of the last frame */
static long shown_since_ms[ROWS_MAX];
static int rows, columns, row, column;
static struct span *spans;
static size_t span_count, span_room;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void end_span(int at, long to_ms)
{
	struct span *span;

	if (!shown[at][0])
		return;
	if (span_count == span_room) {
		span_room = span_room ? span_room * 2 : 64;
		spans = realloc(spans, span_room * sizeof(*spans));
		if (!spans)
			exit(71);
	}
	span = &spans[span_count++];
	*span = (struct span){.row = at, .from_ms = shown_since_ms[at], .to_ms = to_ms};
	strcpy(span->text, shown[at]);
}

static void frame(long ms)
{
	for (int i = 0; i < rows; i++) {
		if (!strcmp(shown[i], screen[i]))
			continue;
		end_span(i, ms);
		strcpy(shown[i], screen[i]);
		shown_since_ms[i] = ms;
	}
}

static void new_line(void)
{
	if (row + 1 < rows) {
		row++;
		return;
	}
	memmove(screen[0], screen[1], sizeof(screen[0]) * (size_t)(rows - 1));
	screen[rows - 1][0] = '\0';
}

static void put(char c)
{
	size_t length = strlen(screen[row]);

	if (column >= columns) {
		column = 0;
		new_line();
		length = strlen(screen[row]);
	}
	if (length <= (size_t)column) {
		memset(screen[row] + length, ' ', (size_t)column - length);
		screen[row][column + 1] = '\0';
	}
	screen[row][column++] = c;
}

static void control(char final, int argument)
{
	if (final == 'A') {
		row -= argument ? argument : 1;
		if (row < 0)
			row = 0;
	} else if (final == 'K' && argument == 0) {
		if ((size_t)column < strlen(screen[row]))
			screen[row][column] = '\0';
	} else if (final != 'm') {
		fprintf(stderr, "record-terminal: ESC [ %d %c is not known\n", argument,
			final);
		exit(1);
	}
}

/* A byte of what CMD drew. State is kept between calls: pieces end anywhere. */
static void draw(char c)
{
	static enum { TEXT, ESCAPE, CONTROL } state;
	static int argument;

	if (state == ESCAPE) {
		state = c == '[' ? CONTROL : TEXT;
		argument = 0;
	} else if (state == CONTROL) {
		if (isdigit((unsigned char)c)) {
			argument = argument * 10 + (c - '0');
			return;
		}
		state = TEXT;
		control(c, argument);
	} else if (c == '\033') {
		state = ESCAPE;
	} else if (c == '\n') {
		new_line();
	} else if (c == '\r') {
		column = 0;
	} else if ((unsigned char)c >= ' ') {
		put(c);
	}
}

static int record(char **words)
{
	struct winsize size = {
		.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
	long start = now_ms(), framed = 0;
	int terminal, status;
	char piece[4096];
	ssize_t n;
	pid_t child = forkpty(&terminal, NULL, NULL, &size);

	if (child < 0) {
		perror("record-terminal");
		exit(71);
	}
	if (!child) {
		execvp(words[0], words);
		perror(words[0]);
		_exit(127);
	}
	while ((n = read(terminal, piece, sizeof(piece))) > 0 ||
		(n < 0 && errno == EINTR)) {
		for (ssize_t i = 0; i < n; i++)
			draw(piece[i]);
		if (now_ms() - start - framed >= FRAME_MS) {
			framed = now_ms() - start;
			frame(framed);
		}
	}
	frame(now_ms() - start);
	for (int i = 0; i < rows; i++)
		end_span(i, -1);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		default: fputc(*text, out);
		}
}

static const char *colour_of(const char *text)
{
	if (strstr(text, "DIED") || strstr(text, "died of"))
		return "bad";
	if (strstr(text, "waits for"))
		return "wait";
	if (strstr(text, "done") || !strncmp(text, "With Sluice", 11))
		return "good";
	return "";
}

static void write_span(FILE *out, const struct span *span, long end_ms)
{
	const char *colour = colour_of(span->text);
	bool last = span->to_ms < 0;

	fprintf(out, "<text x=\"%d\" y=\"%d\"", MARGIN,
		BAR_HEIGHT + MARGIN + LINE_HEIGHT * span->row + 12);
	if (colour[0])
		fprintf(out, " class=\"%s\"", colour);
	fprintf(out, " visibility=\"%s\">", last ? "visible" : "hidden");
	put_escaped(out, span->text);
	/* What is there at the end is visible unless told otherwise, for viewers that do not
	 * animate. */
	if (last && span->from_ms > 0)
		fprintf(out,
			"<set attributeName=\"visibility\" to=\"hidden\" "
			"begin=\"l.begin\" "
			"dur=\"%.2fs\"/>",
			(double)span->from_ms / 1000);
	else if (!last)
		fprintf(out,
			"<set attributeName=\"visibility\" to=\"visible\" "
			"begin=\"l.begin+%.2fs\" "
			"dur=\"%.2fs\"/>",
			(double)span->from_ms / 1000,
			(double)((span->to_ms < 0 ? end_ms : span->to_ms) -
				 span->from_ms) /
				1000);
	fputs("</text>\n", out);
}

static void write_svg(FILE *out, const char *title, long end_ms)
{
	int used = rows;
	double width = 2 * MARGIN + CELL_WIDTH * columns;
	int height;

	while (used > 1 && !shown[used - 1][0])
		used--;
	height = BAR_HEIGHT + 2 * MARGIN + LINE_HEIGHT * used;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" "
		"viewBox=\"0 0 %.0f %d\" "
		"width=\"%.0f\" "
		"height=\"%d\">\n<style>text{font:14px 'DejaVu Sans "
		"Mono',Menlo,Consolas,monospace;"
		"fill:#d8dee9;white-space:pre}.bad{fill:#ff7b72}.wait{fill:#e3b341}.good{"
		"fill:#7ee787}"
		".title{fill:#8b949e}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n"
		"<rect width=\"0\" height=\"0\"><animate id=\"l\" attributeName=\"x\" "
		"from=\"0\" to=\"0\" "
		"begin=\"0s;l.end\" dur=\"%.2fs\"/></rect>\n"
		"<text class=\"title\" x=\"%d\" y=\"20\">",
		width, height, width, height, (double)(end_ms + LAST_MS) / 1000, MARGIN);
	put_escaped(out, title);
	fputs("</text>\n", out);
	for (size_t i = 0; i < span_count; i++)
		write_span(out, &spans[i], end_ms + LAST_MS);
	fputs("</svg>\n", out);
}

int main(int argc, char **argv)
{
	long start = now_ms(), end_ms;
	FILE *out;
	int status;

	if (argc < 7 || strcmp(argv[5], "--")) {
		fprintf(stderr,
			"usage: record-terminal OUT.svg COLUMNS ROWS TITLE -- CMD...\n");
		return 64;
	}
	columns = atoi(argv[2]);
	rows = atoi(argv[3]);
	if (columns < 1 || columns > COLUMNS_MAX || rows < 1 || rows > ROWS_MAX)
		return 64;
	status = record(argv + 6);
	end_ms = now_ms() - start;
	if (status) {
		fprintf(stderr,
			"record-terminal: %s exited with %d; nothing is written\n",
			argv[6], status);
		return status;
	}
	out = fopen(argv[1], "w");
	if (!out) {
		perror(argv[1]);
		return 71;
	}
	write_svg(out, argv[4], end_ms);
	return fclose(out) ? 71 : 0;
}
