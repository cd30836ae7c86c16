/*
 * util - options, output, time and arithmetic of the test programs: nothing of the driver
 *
 * Kept apart from prog.c so that programs which look the driver's functions up themselves do not
 * link to it.
 */
#include "prog.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void usage(const char *program, const char *summary,
	const struct prog_option *options, size_t count)
{
	fprintf(stderr, "usage: %s [options]\n%s\n", program, summary);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "  --%-16s %s\n", options[i].name, options[i].help);
}

/* Digits, and for sizes a binary suffix. False if text is anything else. */
static bool read_number(const char *text, bool size, uint64_t *out)
{
	static const char suffixes[] = "KMGT";
	char *end;
	const char *suffix;
	unsigned int shift = 0;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (end == text || errno)
		return false;
	if (size && *end && (suffix = strchr(suffixes, *end))) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
		if (*end == 'i')
			end++;
		if (*end == 'B')
			end++;
	}
	*out <<= shift;
	return *end == '\0';
}

static bool store(const struct prog_option *option, const char *value)
{
	switch (option->kind) {
	case PROG_FLAG: *(bool *)option->where = true; return true;
	case PROG_TEXT: *(const char **)option->where = value; return value;
	default:
		return value && read_number(value, option->kind == PROG_SIZE,
					(uint64_t *)option->where);
	}
}

int prog_options(int argc, char **argv, const char *summary,
	const struct prog_option *options, size_t count)
{
	int at = 1;

	for (; at < argc && !strncmp(argv[at], "--", 2) && argv[at][2]; at++) {
		const char *name = argv[at] + 2, *equals = strchr(name, '=');
		const char *value = equals ? equals + 1 : NULL;
		size_t length = equals ? (size_t)(equals - name) : strlen(name), i = 0;

		while (i < count && (strlen(options[i].name) != length ||
					    strncmp(options[i].name, name, length)))
			i++;
		if (i < count && options[i].kind != PROG_FLAG && !value && at + 1 < argc)
			value = argv[++at];
		if (i == count || !store(&options[i], value)) {
			usage(argv[0], summary, options, count);
			exit(PROG_USAGE);
		}
	}
	return at;
}

const char *prog_error_name(CUresult result)
{
	static _Thread_local char unknown[32];

	switch ((int)result) {
#define NAME(name, number, text) \
	case number: return "CUDA_" #name;
		SL_CU_RESULTS(NAME)
#undef NAME
	}
	snprintf(unknown, sizeof(unknown), "CUDA_ERROR_%d", (int)result);
	return unknown;
}

uint32_t prog_mix(uint32_t seed, uint64_t i)
{
	uint32_t x = (uint32_t)i * 0x9E3779B1u + seed;

	x ^= x >> 16;
	x *= 0x85EBCA6Bu;
	return x ^ (x >> 13);
}

void prog_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

uint64_t prog_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t prog_now_ms(void)
{
	return prog_now_ns() / 1000000;
}

void prog_sleep_ms(uint64_t ms)
{
	struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

void prog_rest(uint64_t ms, const char *until)
{
	uint64_t end_ms = prog_now_ms() + ms;

	if (!until) {
		prog_sleep_ms(ms);
		return;
	}
	while (access(until, F_OK) != 0 && prog_now_ms() < end_ms)
		prog_sleep_ms(10);
}

uint64_t prog_random(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	/* SplitMix64: any seed will do, 0 included. */
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}
