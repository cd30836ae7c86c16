/*
 * mutants - see the header
 */
#include "mutants.h"

#include <string.h>

#include "base/sl.h"
#include "policy/mutant.h"

static const struct {
	const char *name, *text;
} rows[] = {
#define SL_MUTANT_ROW(NAME, text) {#NAME, text},
#include "mutants.def"
#undef SL_MUTANT_ROW
};

void sl_mutant_list(FILE *out)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		fprintf(out, "%s %s\n", rows[i].name, rows[i].text);
}

#ifdef SL_MUTANTS

bool sl_mutant_can_switch(void)
{
	return true;
}

bool sl_mutant_switch(const char *name)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].name, name) == 0) {
			sl_mutant_now = SL_MUTANT_OFF + 1 + (int)i;
			return true;
		}
	}
	return false;
}

#else

bool sl_mutant_can_switch(void)
{
	return false;
}

bool sl_mutant_switch(const char *name)
{
	return false;
}

#endif
