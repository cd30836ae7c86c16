/*
 * csv - a CSV file line by line, by the names of its columns
 *
 * Fields without quotes. Every error names the file and the line.
 */
#ifndef SL_CLI_SIMULATE_CSV_H
#define SL_CLI_SIMULATE_CSV_H

#include "base/error.h"

#define SL_CSV_COLUMNS 64

struct sl_csv {
	const char *path;
	char *data, *at; /* the whole file, and the unread rest */
	uint32_t line;   /* number of the last line read */
	char *header[SL_CSV_COLUMNS], *field[SL_CSV_COLUMNS];
	uint32_t columns;
};

/* Zero-initialise, and fini in any case. False with err. */
SL_MUST_CHECK bool sl_csv_open(
	struct sl_csv *csv, const char *path, struct sl_error *err);
void sl_csv_fini(struct sl_csv *csv);
/* The number of the column, or -1. */
int sl_csv_column(const struct sl_csv *csv, const char *name);
/* The same; -1 with err if it is missing. */
int sl_csv_need(const struct sl_csv *csv, const char *name, struct sl_error *err);

/* Reads the next line into field[]. 1; 0 at the end; -1 with err. Skips empty lines. */
int sl_csv_next(struct sl_csv *csv, struct sl_error *err);

/* Puts the error into err, with the place of the last line read. */
void sl_csv_complain(const struct sl_csv *csv, struct sl_error *err, const char *format,
	...) SL_PRINTF(3, 4);

/* A whole number of at most `most`. If column is -1 or the field is empty and `preset` >= 0:
 * preset. */
SL_MUST_CHECK bool sl_csv_number(const struct sl_csv *csv, int column, int64_t preset,
	uint64_t most, uint64_t *out, struct sl_error *err);
/* Seconds, not negative; 0 if absent. */
SL_MUST_CHECK bool sl_csv_seconds(
	const struct sl_csv *csv, int column, double *out, struct sl_error *err);

#endif
