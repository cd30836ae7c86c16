/* csv - see the header. Reads the file as a whole and splits it in place. */
#include "cli/simulate/csv.h"

#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MOST (1024u * 1024 * 1024)

void sl_csv_complain(
	const struct sl_csv *csv, struct sl_error *err, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_error_set(err, "%s line %u: %s", csv->path, csv->line, text);
}

/* Ends the line at csv->at and moves behind it. NULL at the end of the file, or with err. */
static char *take_line(struct sl_csv *csv, struct sl_error *err)
{
	char *line = csv->at, *end = strchr(line, '\n');

	if (!*line)
		return NULL;
	csv->line++;
	if (!end) {
		sl_csv_complain(csv, err,
			"it does not end with a newline, so the file may have been cut "
			"short; add "
			"one if it is whole");
		return NULL;
	}
	*end = '\0';
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	csv->at = end + 1;
	return line;
}

static uint32_t split(char *line, char **fields)
{
	uint32_t count = 0;

	for (char *at = line; at && count < SL_CSV_COLUMNS; count++) {
		fields[count] = at;
		at = strchr(at, ',');
		if (at)
			*at++ = '\0';
	}
	return count;
}

bool sl_csv_open(struct sl_csv *csv, const char *path, struct sl_error *err)
{
	size_t bytes = 0;
	char *line;
	int r;

	memset(csv, 0, sizeof(*csv));
	csv->path = path;
	r = sl_file_read(path, FILE_BYTES_MOST, &csv->data, &bytes);
	if (r < 0) {
		sl_error_set(err, "cannot read %s: %s", path, strerror(-r));
		return false;
	}
	csv->at = csv->data;
	if (strlen(csv->data) != bytes) {
		sl_error_set(err, "%s is no CSV file: it has NUL bytes", path);
		return false;
	}
	line = take_line(csv, err);
	if (!line && !err->text[0])
		sl_error_set(
			err, "%s is empty: its first line must name the columns", path);
	if (line)
		csv->columns = split(line, csv->header);
	return line != NULL;
}

void sl_csv_fini(struct sl_csv *csv)
{
	free(csv->data);
	csv->data = NULL;
}

int sl_csv_column(const struct sl_csv *csv, const char *name)
{
	for (uint32_t i = 0; i < csv->columns; i++)
		if (!strcmp(csv->header[i], name))
			return (int)i;
	return -1;
}

int sl_csv_need(const struct sl_csv *csv, const char *name, struct sl_error *err)
{
	int column = sl_csv_column(csv, name);

	if (column < 0)
		sl_error_set(err, "%s line 1: there is no column '%s'", csv->path, name);
	return column;
}

int sl_csv_next(struct sl_csv *csv, struct sl_error *err)
{
	uint32_t count;
	char *line;

	do {
		line = take_line(csv, err);
		if (!line)
			return err->text[0] ? -1 : 0;
	} while (!*line);
	count = split(line, csv->field);
	if (count == csv->columns)
		return 1;
	sl_csv_complain(csv, err, "%u fields where line 1 names %u", count, csv->columns);
	return -1;
}

bool sl_csv_number(const struct sl_csv *csv, int column, int64_t preset, uint64_t most,
	uint64_t *out, struct sl_error *err)
{
	const char *text = column < 0 ? "" : csv->field[column];
	char *end;

	if (!*text && preset >= 0) {
		*out = (uint64_t)preset;
		return true;
	}
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || *out > most) {
		sl_csv_complain(csv, err,
			"%s is '%.40s'; it must be a whole number of 0 to %llu",
			csv->header[column], text, (unsigned long long)most);
		return false;
	}
	return true;
}

bool sl_csv_seconds(
	const struct sl_csv *csv, int column, double *out, struct sl_error *err)
{
	const char *text = column < 0 ? "" : csv->field[column];
	char *end;

	*out = 0;
	if (!*text)
		return true;
	*out = strtod(text, &end);
	if (*end || !isfinite(*out) || *out < 0 || *out > 1e12) {
		sl_csv_complain(csv, err,
			"%s is '%.40s'; it must be seconds, not negative",
			csv->header[column], text);
		return false;
	}
	return true;
}
