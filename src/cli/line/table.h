/*
 * table - rows of text in columns that fit the terminal
 *
 * Cells are UTF-8 and counted by character (all output is one cell wide). Memory is the table's
 * own; no locks.
 */
#ifndef SL_CLI_LINE_TABLE_H
#define SL_CLI_LINE_TABLE_H

#include "base/sl.h"

#include <stdio.h>

#define SL_TABLE_CELL_MAX 160

/* A column: how far it may shrink, and when it is dropped. */
struct sl_column {
	const char *title;
	bool right;         /* numbers are aligned to the right */
	unsigned int least; /* characters it may be cut to; 0: never cut */
	/* Order of dropping (1 first) when cutting is not enough. 0: never, and cut last. */
	unsigned int drop;
	bool hides; /* left out if no row has more than a dash there */
};

struct sl_table;

/* columns must outlive the table. NULL when out of memory. */
struct sl_table *sl_table_new(const struct sl_column *columns, size_t count);
/* Accepts NULL; returns NULL. */
struct sl_table *sl_table_free(struct sl_table *table);
void sl_table_freep(struct sl_table **table);

/* Sets a cell of the row being filled; control characters become '?'. */
void sl_table_set(struct sl_table *table, size_t column, const char *format, ...)
	SL_PRINTF(3, 4);
/* Ends the row. False when out of memory. */
SL_MUST_CHECK bool sl_table_end_row(struct sl_table *table);

/* Prints title line and rows. width 0: full width, nothing cut. */
void sl_table_print(const struct sl_table *table, unsigned int width, FILE *out);

/* Columns of the terminal behind fd, or 0 if it is not one; COLUMNS, if set, wins. */
unsigned int sl_table_terminal_width(int fd);

/* As sl_span_format(), in whole seconds: "12s", "5m", "3h", "9d". */
const char *sl_table_age(uint64_t ms, char *buf, size_t size);

#endif
