/*
 * mode - the environment, read as rarely as possible
 *
 * getenv takes no lock and allocates nothing, so this one read is safe even inside dlsym.
 */
#include "runtime/process/mode.h"

#include "base/log.h"
#include "base/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODE_UNKNOWN = 0, MODE_BYPASS, MODE_ACTIVE };

static int mode_now;

struct sl_options sl_options = {
#define SL_OPTION(key, environment, unit, min, max, standard, help) .key = (standard),
#include "runtime/process/options.def"
#undef SL_OPTION
};

/* In a container that was given the library and a socket's folder: its programs are limited
 * whatever environment they start with, and while there is no daemon, whose socket would be there.
 * Keeps errno. */
static bool is_contained(void)
{
	int error = errno;
	bool is = access(SL_PATHS_CONTAINER_LIBRARY, F_OK) == 0 &&
		  access(SL_PATHS_CONTAINER, F_OK) == 0;

	errno = error;
	return is;
}

static SL_COLD int find_mode(void)
{
	const char *bypass = getenv("SLUICE_BYPASS");
	const char *socket = getenv("SLUICE_SOCKET");
	const char *workload = getenv("SLUICE_WORKLOAD");
	int mode = MODE_ACTIVE;

	if (bypass && strcmp(bypass, "1") == 0)
		mode = MODE_BYPASS;
	if (!(socket && *socket) && !(workload && *workload) && !is_contained())
		mode = MODE_BYPASS;
	__atomic_store_n(&mode_now, mode, __ATOMIC_RELAXED);
	return mode;
}

bool sl_mode_is_active(void)
{
	int mode = __atomic_load_n(&mode_now, __ATOMIC_RELAXED);

	return (sl_likely(mode) ? mode : find_mode()) == MODE_ACTIVE;
}

/* Digits only; strtoull has another symbol version on newer systems. */
static bool parse_number(const char *text, uint64_t *out)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		number = number > UINT64_MAX / 100
				 ? UINT64_MAX / 10
				 : 10 * number + (uint64_t)(*text - '0');
	*out = number;
	return *text == '\0';
}

static void read_option(
	const char *environment, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *text = getenv(environment);
	uint64_t number;

	if (text && *text && parse_number(text, &number) && number >= min &&
		number <= max)
		*value = number;
}

void sl_mode_read_options(void)
{
	const char *level = getenv("SLUICE_LOG");

#define SL_OPTION(key, environment, unit, min, max, standard, help) \
	read_option(environment, min, max, &sl_options.key);
#include "runtime/process/options.def"
#undef SL_OPTION
	if (level && sl_log_set_level_name(level))
		sl_log_set_tag("libsluice");
}
