/*
 * curses finds the changes since the last canvas and sends only those. It keeps its own handlers
 * for SIGWINCH (reported as a key) and SIGTSTP (ctrl-z and fg work).
 */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

/* term.h has a macro of this name, which breaks a struct member. */
#undef columns

#include "cli/top/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static SCREEN *screen;
static bool has_colour;

/* Refuses a terminal that cannot place its cursor, instead of printing garbage. */
static int check_terminal(struct sl_error *err)
{
	const char *name = getenv("TERM");
	int found = 0;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		sl_error_set(err, "standard input and output are no terminal; use "
				  "'sluice ps --watch', or "
				  "'sluice ps --json'");
		return SL_SCREEN_UNFIT;
	}
	if (!name || !*name) {
		sl_error_set(err,
			"TERM is not set, so what this terminal can do is not known; try "
			"TERM=xterm sluice top");
		return SL_SCREEN_UNFIT;
	}
	if (setupterm(name, STDOUT_FILENO, &found) != OK) {
		sl_error_set(err,
			"terminal type TERM=%.40s is not known here; try TERM=xterm "
			"sluice "
			"top",
			name);
		return SL_SCREEN_UNFIT;
	}
	if (!cursor_address || !clear_screen) {
		sl_error_set(err,
			"TERM=%.40s cannot place its cursor; use 'sluice ps --watch', or "
			"if "
			"the terminal can do more, TERM=xterm sluice top",
			name);
		return SL_SCREEN_UNFIT;
	}
	/* newterm() reads its own entry. */
	(void)del_curterm(cur_term);
	return SL_SCREEN_OK;
}

static void choose_colours(void)
{
	static const short colours[SL_STYLES] = {
		[SL_STYLE_GOOD] = COLOR_GREEN,
		[SL_STYLE_WARN] = COLOR_YELLOW,
		[SL_STYLE_BAD] = COLOR_RED,
		[SL_STYLE_WORKLOAD] = COLOR_CYAN,
		[SL_STYLE_WORKLOAD + 1] = COLOR_GREEN,
		[SL_STYLE_WORKLOAD + 2] = COLOR_MAGENTA,
		[SL_STYLE_WORKLOAD + 3] = COLOR_YELLOW,
		[SL_STYLE_WORKLOAD + 4] = COLOR_BLUE,
		[SL_STYLE_WORKLOAD + 5] = COLOR_RED,
	};

	has_colour = has_colors() && start_color() == OK && !getenv("NO_COLOR");
	if (!has_colour)
		return;
	(void)use_default_colors();
	for (short i = 0; i < SL_STYLES; i++)
		if (colours[i])
			(void)init_pair(i, colours[i], -1);
}

int sl_screen_open(bool *ascii, struct sl_error *err)
{
	int r = check_terminal(err);

	if (r)
		return r;
	/* Characters only: numbers keep their decimal point. */
	(void)setlocale(LC_CTYPE, "");
	*ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		sl_error_set(err,
			"the terminal TERM=%.40s cannot be used; try TERM=xterm "
			"sluice top",
			getenv("TERM"));
		return SL_SCREEN_UNFIT;
	}
	(void)set_term(screen);
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)nodelay(stdscr, TRUE);
	(void)set_escdelay(50);
	(void)curs_set(0);
	choose_colours();
	return SL_SCREEN_OK;
}

void sl_screen_close(void)
{
	if (!screen)
		return;
	(void)curs_set(1);
	(void)endwin();
	delscreen(screen);
	screen = NULL;
}

void sl_screen_size(unsigned int *width, unsigned int *height)
{
	*width = COLS > 0 ? (unsigned int)COLS : 0;
	*height = LINES > 0 ? (unsigned int)LINES : 0;
}

static attr_t attributes_of(uint8_t style)
{
	switch (style) {
	case SL_STYLE_PLAIN: return A_NORMAL;
	case SL_STYLE_BOLD: return A_BOLD;
	case SL_STYLE_DIM: return A_DIM;
	case SL_STYLE_SELECTED: return A_REVERSE;
	case SL_STYLE_BAD: return A_BOLD;
	default: return A_NORMAL;
	}
}

static void show_line(const struct sl_canvas *canvas, unsigned int y)
{
	const struct sl_cell *cells = &canvas->cells[(size_t)y * canvas->width];

	for (unsigned int x = 0; x < canvas->width; x++) {
		wchar_t text[2] = {(wchar_t)cells[x].c, 0};
		short pair = has_colour && cells[x].style >= SL_STYLE_GOOD
				     ? cells[x].style
				     : 0;
		cchar_t cell;

		if (!cells[x].c)
			continue;
		(void)setcchar(&cell, text, attributes_of(cells[x].style), pair, NULL);
		/* The cursor cannot move behind the last cell of the screen, which curses reports
		 * as an error. */
		(void)mvadd_wch((int)y, (int)x, &cell);
	}
}

void sl_screen_show(const struct sl_canvas *canvas)
{
	(void)erase();
	for (unsigned int y = 0; y < canvas->height; y++)
		show_line(canvas, y);
	(void)refresh();
}

int sl_screen_key(void)
{
	int key = getch();

	switch (key) {
	case ERR: return SL_KEY_NONE;
	case KEY_UP: return SL_KEY_UP;
	case KEY_DOWN: return SL_KEY_DOWN;
	case KEY_PPAGE: return SL_KEY_PAGE_UP;
	case KEY_NPAGE: return SL_KEY_PAGE_DOWN;
	case KEY_HOME: return SL_KEY_HOME;
	case KEY_END: return SL_KEY_END;
	case KEY_RESIZE: return SL_KEY_RESIZE;
	case KEY_ENTER:
	case '\r':
	case '\n': return SL_KEY_ENTER;
	case 27: return SL_KEY_ESCAPE;
	default: return key > 0 && key < 256 ? key : SL_KEY_RESIZE;
	}
}
