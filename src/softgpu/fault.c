/*
 * fault - makes chosen calls fail or hang
 *
 * "cuMemCreate:3=oom,cuMemMap:@5=unknown,cuMemcpyHtoD_v2:2=hang": the third cuMemCreate of this
 * process answers out-of-memory, every fifth cuMemMap an unknown error, the second copy never
 * returns. Grammar and names: box.h. A row that cannot be read is told on stderr and left out; a
 * silent mistake here would be a test that tests nothing.
 */
#include "softgpu/driver.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define RULES_MAX 64
#define HANG      (-1)

static struct rule {
	enum sl_entry_id id;
	unsigned long n;
	bool every;
	int what; /* a CUresult or HANG */
} rules[RULES_MAX];
static unsigned rule_count;
static _Atomic unsigned long calls[SL_ENTRY_COUNT];

static const char *const entry_names[] = {
#define SL_ENTRY(name, since, need) #name,
#include "softgpu/entry.def"
#undef SL_ENTRY
};

const char *sl_entry_name(enum sl_entry_id id)
{
	return entry_names[id];
}

/* Digits alone, from 1: strtoul by itself takes signs and blanks, and -1 would be a hang. */
static bool read_number(const char *text, unsigned long *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return !*end && !errno && *out;
}

static bool read_what(const char *text, int *what)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {
#define NAME(name, number, text) {#name, number},
		SL_CU_RESULTS(NAME)
#undef NAME
			{"ERROR_OOM", CUDA_ERROR_OUT_OF_MEMORY},
		{"ERROR_HANG", HANG},
	};
	unsigned long number;

	if (read_number(text, &number) && number <= INT_MAX) {
		*what = (int)number;
		return true;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		const char *name = names[i].name;

		if (!strncmp(name, "ERROR_", 6))
			name += 6;
		if (!strcasecmp(name, text)) {
			*what = names[i].value;
			return true;
		}
	}
	return false;
}

static bool read_rule(char *text, struct rule *r)
{
	char *colon = strchr(text, ':'), *equals = strchr(text, '=');

	if (!colon || !equals || equals < colon)
		return false;
	*colon = *equals = '\0';
	r->every = colon[1] == '@';
	if (!read_number(colon + 1 + r->every, &r->n) || !read_what(equals + 1, &r->what))
		return false;
	for (unsigned i = 0; i < SL_ENTRY_COUNT; i++)
		if (!strcmp(entry_names[i], text)) {
			r->id = (enum sl_entry_id)i;
			return true;
		}
	return false;
}

static void complain(const char *row, const char *why)
{
	fprintf(stderr, "sluice software GPU: fault plan: '%s' %s\n", row, why);
}

static void read_plan(const char *plan)
{
	char *copy = strdup(plan), *rest = copy, *row;

	while (copy && (row = strsep(&rest, ","))) {
		char whole[128];
		struct rule r;

		snprintf(whole, sizeof(whole), "%s", row);
		if (!*row)
			continue;
		if (!read_rule(row, &r))
			complain(whole, "not understood");
		else if (rule_count == RULES_MAX)
			complain(whole, "one rule too many");
		else
			rules[rule_count++] = r;
	}
	free(copy);
}

void sl_fault_init(const char *of_box)
{
	const char *own = getenv(SL_SOFTGPU_ENV_FAULTS);

	if (of_box && *of_box)
		read_plan(of_box);
	if (own)
		read_plan(own);
}

CUresult sl_fault_check(enum sl_entry_id id)
{
	unsigned long n;

	if (!rule_count)
		return CUDA_SUCCESS;
	n = atomic_fetch_add(&calls[id], 1) + 1;
	for (unsigned i = 0; i < rule_count; i++) {
		const struct rule *r = &rules[i];

		if (r->id != id || (r->every ? n % r->n != 0 : n != r->n))
			continue;
		while (r->what == HANG)
			pause();
		return (CUresult)r->what;
	}
	return CUDA_SUCCESS;
}
