/* Names come from the lists of the software GPU itself, so they always match. */
#include "cli/verbs/faults.h"

#include "base/cuda_types.h"
#include "base/file.h"
#include "base/nearest.h"
#include "cli/line/option.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const calls[] = {
#define SL_ENTRY(name, since, need) #name,
#include "softgpu/driver/entry.def"
#undef SL_ENTRY
	NULL,
};

static bool is_result(const char *text)
{
	static const char *const names[] = {
#define NAME(name, number, text) #name,
		SL_CU_RESULTS(NAME)
#undef NAME
			"OOM",
		"HANG",
	};

	if (*text && text[strspn(text, "0123456789")] == '\0')
		return true;
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		const char *name = names[i];

		if (!strncmp(name, "ERROR_", strlen("ERROR_")))
			name += strlen("ERROR_");
		if (!strcasecmp(name, text))
			return true;
	}
	return false;
}

static int check_call(const char *name, struct sl_error *err)
{
	struct sl_nearest near = sl_nearest_to(name);

	for (size_t i = 0; calls[i]; i++) {
		if (!strcmp(calls[i], name))
			return SL_FAULTS_OK;
		sl_nearest_offer(&near, calls[i]);
	}
	sl_error_set(err, "--faults: the software GPU has no call '%.60s'", name);
	sl_nearest_add(&near, "", err);
	return SL_FAULTS_BAD;
}

/* Splits row in place. */
static int check_row(char *row, struct sl_error *err)
{
	char *colon = strchr(row, ':'), *equals = strchr(row, '='), *count;

	if (!colon || !equals || equals < colon) {
		sl_error_set(err,
			"--faults '%.60s' is no row of a plan; write cuMemCreate:3=oom",
			row);
		return SL_FAULTS_BAD;
	}
	*colon = *equals = '\0';
	count = colon + 1;
	count += *count == '@';
	if (!isdigit((unsigned char)*count) || count[strspn(count, "0123456789")] ||
		!strtoul(count, NULL, 10)) {
		sl_error_set(err,
			"--faults: '%.20s' does not say which call of %.60s; write 3 for "
			"the third, @3 "
			"for every third",
			colon + 1, row);
		return SL_FAULTS_BAD;
	}
	if (!is_result(equals + 1)) {
		sl_error_set(err,
			"--faults: '%.60s' is no error; write oom, hang, a number, or a "
			"name like "
			"invalid_value",
			equals + 1);
		return SL_FAULTS_BAD;
	}
	return check_call(row, err);
}

int sl_faults_check(const char *plan, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *copy = strdup(plan);
	char *rest = copy, *row;
	int outcome = SL_FAULTS_OK;

	while (copy && outcome == SL_FAULTS_OK && (row = strsep(&rest, ",")))
		if (*row)
			outcome = check_row(row, err);
	return outcome;
}
