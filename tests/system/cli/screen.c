/*
 * screen COLUMNS ROWS -- CMD...: runs CMD on a terminal, types a script, and checks the screen
 *
 * CMD runs on a pseudo-terminal of that size. An emulation of the parts of xterm that curses uses
 * reads what CMD sends. Anything else is an error, so that a screen is never quietly wrong. The
 * script on standard input has a step per line:
 *
 *	expect TEXT   waits until some row of the screen has TEXT.
 *	gone TEXT     waits until no row has it.
 *	keys TEXT     types; \e is escape, \r enter.
 *	size C R      gives the terminal another size.
 *	signal N      sends CMD a signal.
 *	dump FILE     writes the screen, as UTF-8, blanks at ends of rows left out.
 *	exit STATUS   waits until CMD ends and compares.
 *
 * A step that is not fulfilled in 20 s fails, and shows the screen.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX    100
#define COLUMNS_MAX 300
#define ARGS_MAX    16
#define LONGEST_MS  20000
#define QUIET_MS    80 /* screens are 250 apart */

/* A cell is the bytes of one character. */
static char screen[ROWS_MAX][COLUMNS_MAX][8];
static int rows, columns, row, column, top, bottom;
static int terminal;
static pid_t child;
static char last[8] = " ";

static void blank(int y, int from, int to)
{
	for (int x = from; x < to && x < COLUMNS_MAX; x++)
		strcpy(screen[y][x], " ");
}

static void text_of(int y, char *out)
{
	size_t used = 0, end = 0;

	for (int x = 0; x < columns; x++) {
		size_t len = strlen(screen[y][x]);

		memcpy(out + used, screen[y][x], len);
		used += len;
		if (strcmp(screen[y][x], " ") != 0)
			end = used;
	}
	out[end] = '\0';
}

static void dump(FILE *out)
{
	char line[COLUMNS_MAX * 8 + 1];

	for (int y = 0; y < rows; y++) {
		text_of(y, line);
		fprintf(out, "%s\n", line);
	}
}

static void fail(const char *what, const char *more)
{
	fprintf(stderr, "screen: %s%s\n", what, more);
	dump(stderr);
	kill(child, SIGKILL);
	exit(1);
}

/* --- the emulation --- */

static void scroll(int from, int by)
{
	for (; by > 0; by--) {
		memmove(screen[from], screen[from + 1],
			sizeof(screen[0]) * (size_t)(bottom - from));
		blank(bottom, 0, COLUMNS_MAX);
	}
	for (; by < 0; by++) {
		memmove(screen[from + 1], screen[from],
			sizeof(screen[0]) * (size_t)(bottom - from));
		blank(from, 0, COLUMNS_MAX);
	}
}

static void down(void)
{
	if (row == bottom)
		scroll(top, 1);
	else if (row + 1 < rows)
		row++;
}

static void put(const char *bytes)
{
	if (column >= columns) {
		column = 0;
		down();
	}
	strcpy(screen[row][column++], bytes);
	if (bytes != last)
		strcpy(last, bytes);
}

static int clamp(int value, int least, int most)
{
	return value < least ? least : value > most ? most : value;
}

static void erase_display(int how)
{
	int from = how == 0 ? row + 1 : 0, to = how == 1 ? row : rows;

	if (how == 0)
		blank(row, column, COLUMNS_MAX);
	if (how == 1)
		blank(row, 0, column + 1);
	for (int y = from; y < to; y++)
		blank(y, 0, COLUMNS_MAX);
}

static void shift_cells(int by)
{
	char(*line)[8] = screen[row];
	int count = by < 0 ? -by : by;

	for (int i = 0; i < count && by < 0; i++) {
		memmove(line[column], line[column + 1],
			sizeof(line[0]) * (size_t)(columns - column - 1));
		strcpy(line[columns - 1], " ");
	}
	for (int i = 0; i < count && by > 0; i++) {
		memmove(line[column + 1], line[column],
			sizeof(line[0]) * (size_t)(columns - column - 1));
		strcpy(line[column], " ");
	}
}

/* ESC [ args final, without a mark such as '?' before them. */
static void control(char final, const int *args, int count)
{
	int one = count && args[0] ? args[0] : 1, saved = top;

	switch (final) {
	case 'A': row = clamp(row - one, 0, rows - 1); break;
	case 'B': row = clamp(row + one, 0, rows - 1); break;
	case 'C': column = clamp(column + one, 0, columns - 1); break;
	case 'D': column = clamp(column - one, 0, columns - 1); break;
	case 'G': column = clamp(one - 1, 0, columns - 1); break;
	case 'd': row = clamp(one - 1, 0, rows - 1); break;
	case 'H':
		row = clamp(one - 1, 0, rows - 1);
		column = clamp(count > 1 && args[1] ? args[1] - 1 : 0, 0, columns - 1);
		break;
	case 'J': erase_display(count ? args[0] : 0); break;
	case 'K':
		blank(row, count && args[0] ? 0 : column,
			count && args[0] == 1 ? column + 1 : COLUMNS_MAX);
		break;
	case 'X': blank(row, column, column + one); break;
	case 'P': shift_cells(-one); break;
	case '@': shift_cells(one); break;
	case 'b':
		while (one--)
			put(last);
		break;
	case 'L':
	case 'M':
		top = row;
		scroll(row, final == 'M' ? one : -one);
		top = saved;
		break;
	case 'S': scroll(top, one); break;
	case 'T': scroll(top, -one); break;
	case 'r':
		top = count && args[0] ? args[0] - 1 : 0;
		bottom = count > 1 && args[1] ? args[1] - 1 : rows - 1;
		row = column = 0;
		break;
	case 'm': /* looks are not followed */
	case 't':
	case 'h':
	case 'l': break;
	default: {
		char text[2] = {final, 0};

		fail("ESC [ ... is not known: ", text);
	}
	}
}

static enum { TEXT, ESCAPE, CONTROL, CHARSET } state;

static void plain(char c)
{
	static char character[8];
	static size_t have, want;
	unsigned char byte = (unsigned char)c;

	if (want && (byte & 0xc0) == 0x80) {
		character[have++] = c;
		if (have == want) {
			character[have] = '\0';
			want = 0;
			put(character);
		}
		return;
	}
	want = 0;
	switch (c) {
	case '\033': state = ESCAPE; return;
	case '\n': down(); return;
	case '\r': column = 0; return;
	case '\b': column -= column > 0; return;
	case '\t': column = clamp((column / 8 + 1) * 8, 0, columns - 1); return;
	case '\a':
	case '\017': return;
	default: break;
	}
	if (byte < 0x20)
		fail("a control character", "");
	if (byte < 0x80) {
		put((char[]){c, 0});
		return;
	}
	want = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
	character[0] = c;
	have = 1;
}

static void escaped(char c)
{
	state = TEXT;
	switch (c) {
	case '[': state = CONTROL; return;
	case '(':
	case ')': state = CHARSET; return;
	case 'M':
		if (row == top)
			scroll(top, -1);
		else
			row -= row > 0;
		return;
	case '7':
	case '8':
	case '=':
	case '>': return;
	default: fail("ESC is followed by ", (char[]){c, 0});
	}
}

/* State is kept between calls: pieces end anywhere. */
static void draw(char c)
{
	static int args[ARGS_MAX], count;
	static bool marked;

	switch (state) {
	case TEXT: plain(c); return;
	case ESCAPE:
		count = 0;
		marked = false;
		memset(args, 0, sizeof(args));
		escaped(c);
		return;
	case CHARSET: state = TEXT; return;
	case CONTROL: break;
	}
	if (isdigit((unsigned char)c)) {
		count += !count;
		args[count - 1] = args[count - 1] * 10 + (c - '0');
	} else if (c == ';') {
		count += count ? 1 : 2;
		if (count > ARGS_MAX)
			fail("too many numbers", "");
	} else if (c == '?' || c == '>') {
		marked = true;
	} else {
		state = TEXT;
		if (!marked)
			control(c, args, count);
	}
}

/* --- steps --- */

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads for up to ms. False once CMD has closed the terminal. */
static bool follow(int ms)
{
	struct pollfd fd = {.fd = terminal, .events = POLLIN};
	char piece[4096];
	ssize_t n;

	if (poll(&fd, 1, ms) <= 0)
		return true;
	n = read(terminal, piece, sizeof(piece));
	if (n <= 0)
		return n < 0 && errno == EINTR;
	for (ssize_t i = 0; i < n; i++)
		draw(piece[i]);
	return true;
}

static bool shows(const char *text)
{
	char line[COLUMNS_MAX * 8 + 1];

	for (int y = 0; y < rows; y++) {
		text_of(y, line);
		if (strstr(line, text))
			return true;
	}
	return false;
}

static void wait_until(const char *text, bool wanted)
{
	long end = now_ms() + LONGEST_MS;

	while (shows(text) != wanted) {
		if (now_ms() > end)
			fail(wanted ? "does not show: " : "still shows: ", text);
		if (!follow(50) && shows(text) != wanted)
			fail("CMD ended before: ", text);
	}
}

static void type(const char *text)
{
	char out[256];
	size_t n = 0;

	for (; *text && n < sizeof(out); text++)
		if (*text == '\\' && text[1]) {
			text++;
			out[n++] = *text == 'e' ? '\033' : *text == 'r' ? '\r' : *text;
		} else {
			out[n++] = *text;
		}
	if (write(terminal, out, n) != (ssize_t)n)
		fail("cannot type", "");
}

static void resize(const char *text)
{
	struct winsize size = {0};
	int old_rows = rows;

	if (sscanf(text, "%d %d", &columns, &rows) != 2 || columns > COLUMNS_MAX ||
		rows > ROWS_MAX)
		fail("no size: ", text);
	for (int y = 0; y < ROWS_MAX; y++)
		blank(y, y < rows && y < old_rows ? columns : 0, COLUMNS_MAX);
	row = clamp(row, 0, rows - 1);
	column = clamp(column, 0, columns - 1);
	top = 0;
	bottom = rows - 1;
	size.ws_col = (unsigned short)columns;
	size.ws_row = (unsigned short)rows;
	ioctl(terminal, TIOCSWINSZ, &size);
}

/* A screen comes in pieces; one that is looked at as a whole must not be half of it. */
static void wait_for_rest(void)
{
	struct pollfd fd = {.fd = terminal, .events = POLLIN};

	for (int i = 0; i < 200 && poll(&fd, 1, QUIET_MS) > 0 && follow(0); i++)
		;
}

static void write_dump(const char *path)
{
	FILE *out = fopen(path, "w");

	wait_for_rest();
	if (!out)
		fail("cannot write ", path);
	dump(out);
	fclose(out);
}

static void wait_for_end(const char *wanted)
{
	long end = now_ms() + LONGEST_MS;
	int status;
	char text[32];

	while (follow(50))
		if (now_ms() > end)
			fail("CMD does not end", "");
	waitpid(child, &status, 0);
	snprintf(text, sizeof(text), "%d",
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	if (strcmp(text, wanted) != 0)
		fail("CMD ended with ", text);
}

static void step(char *line)
{
	char *rest = strchr(line, ' ');

	line[strcspn(line, "\n")] = '\0';
	if (rest)
		*rest++ = '\0';
	else
		rest = line + strlen(line);
	if (!strcmp(line, "expect"))
		wait_until(rest, true);
	else if (!strcmp(line, "gone"))
		wait_until(rest, false);
	else if (!strcmp(line, "keys"))
		type(rest);
	else if (!strcmp(line, "size"))
		resize(rest);
	else if (!strcmp(line, "signal"))
		kill(child, atoi(rest));
	else if (!strcmp(line, "dump"))
		write_dump(rest);
	else if (!strcmp(line, "exit"))
		wait_for_end(rest);
	else
		fail("no such step: ", line);
}

int main(int argc, char **argv)
{
	struct winsize size = {0};
	char line[512];

	if (argc < 5 || strcmp(argv[3], "--") != 0) {
		fprintf(stderr, "usage: screen COLUMNS ROWS -- CMD...\n");
		return 64;
	}
	columns = clamp(atoi(argv[1]), 1, COLUMNS_MAX);
	rows = clamp(atoi(argv[2]), 1, ROWS_MAX);
	bottom = rows - 1;
	for (int y = 0; y < ROWS_MAX; y++)
		blank(y, 0, COLUMNS_MAX);
	size.ws_col = (unsigned short)columns;
	size.ws_row = (unsigned short)rows;
	child = forkpty(&terminal, NULL, NULL, &size);
	if (child < 0) {
		perror("screen");
		return 71;
	}
	if (!child) {
		execvp(argv[4], argv + 4);
		perror(argv[4]);
		_exit(127);
	}
	while (fgets(line, sizeof(line), stdin))
		step(line);
	kill(child, SIGKILL);
	return 0;
}
