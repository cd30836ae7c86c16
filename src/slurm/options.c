/* Slurm carries the values to the nodes, and to the steps of a job, by itself. */
#include <stdint.h>

#include "slurm/options.h"

#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"

#define VALUE_MAX 32
#define GPUS_MAX  64

enum option { REQUEST, LIMIT, GPUS, OPTIONS };

static char values[OPTIONS][VALUE_MAX];
static struct sl_amount amounts[OPTIONS];

static int check_gpus(const char *text, struct sl_error *err)
{
	char *end = NULL;
	long count = strtol(text, &end, 10);

	if (*text && !*end && count >= 1 && count <= GPUS_MAX)
		return SL_AMOUNT_OK;
	sl_error_set(err, "'%.31s' is not a number from 1 to %d", text, GPUS_MAX);
	return SL_AMOUNT_BAD;
}

static const char *const names[OPTIONS] = {"request", "limit", "gpus"};

static int take(int option, const char *text, int remote)
{
	struct sl_error err = {0};
	int outcome = option == GPUS ? check_gpus(text, &err)
				     : sl_amount_parse(text, &amounts[option], &err);

	if (outcome == SL_AMOUNT_OK && strlen(text) < VALUE_MAX) {
		strcpy(values[option], text);
		return 0;
	}
	slurm_error(
		"--sluice-%s: %s", names[option], err.text[0] ? err.text : "too long");
	return -1;
}

static struct spank_option rows[OPTIONS] = {
	{"sluice-request", "AMOUNT",
		"GPU memory guaranteed to the job, on each GPU: a fraction (0.25) or "
		"bytes (10GiB)",
		1, REQUEST, take},
	{"sluice-limit", "AMOUNT", "the most GPU memory it may hold, on each GPU", 1,
		LIMIT, take},
	{"sluice-gpus", "N", "number of GPUs it shares (default 1)", 1, GPUS, take},
};

int sl_options_register(spank_t spank)
{
	int r = ESPANK_SUCCESS;

	for (int i = 0; i < OPTIONS && r == ESPANK_SUCCESS; i++)
		r = (int)spank_option_register(spank, &rows[i]);
	return r;
}

void sl_options_forget_outer(void)
{
	char name[96];

	for (int i = 0; i < OPTIONS; i++) {
		(void)snprintf(name, sizeof(name),
			"SLURM_SPANK__SLURM_SPANK_OPTION_sluice_sluice_%s", names[i]);
		(void)unsetenv(name);
	}
}

int sl_options_check(void)
{
	struct sl_error err = {0};

	if (sl_amount_check(&amounts[REQUEST], &amounts[LIMIT], true, &err) ==
		SL_AMOUNT_OK)
		return 0;
	slurm_error("sluice: %s", err.text);
	return -1;
}

bool sl_options_given(void)
{
	return values[REQUEST][0] || values[LIMIT][0] || values[GPUS][0];
}

size_t sl_options_words(const char **argv)
{
	static const char *const words[OPTIONS] = {"--request", "--limit", "--gpus"};
	size_t count = 0;

	for (int i = 0; i < OPTIONS; i++) {
		if (!values[i][0])
			continue;
		argv[count++] = words[i];
		argv[count++] = values[i];
	}
	return count;
}

void sl_options_print(char *out, size_t size)
{
	(void)snprintf(
		out, size, "%s:%s:%s", values[REQUEST], values[LIMIT], values[GPUS]);
}
