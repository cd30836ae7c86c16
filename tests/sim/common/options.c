/*
 * options - see the header
 */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sim_read_number(const char *text, uint64_t *out)
{
	char *end = NULL;

	*out = strtoull(text, &end, 0);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

uint64_t sim_some_seed(void)
{
	return (sl_clock_now() ^ ((uint64_t)getpid() << 32)) % 1000000007;
}

int sim_hand_over(const char *program, char **argv)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-mutant"));

	if (len < 0)
		return 2;
	(void)strcpy(path + len, "-mutant");
	execv(path, argv);
	fprintf(stderr, "%s: %s is not built\n", program, path);
	return 2;
}

void sim_print_counts(const char *title, int width, const uint64_t count[SL_REASONS])
{
	printf("  %-*s", width, title);
	for (uint32_t i = 0; i < SL_REASONS; i++) {
		if (count[i])
			printf(" %s %" PRIu64, sl_reason_name(i), count[i]);
	}
	putchar('\n');
}
