/*
 * A refused spec says why. An accepted one consists of entries that are found again, each once, and
 * writing it again from these entries gives the same spec. Most inputs get a command and a folder:
 * chance alone would hardly write both.
 */
#include "fuzz.h"

#include "wire/jobspec.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

static const char *const known[] = {SL_JOBSPEC_ARG, SL_JOBSPEC_ENV, SL_JOBSPEC_DIR,
	SL_JOBSPEC_UMASK, SL_JOBSPEC_UID, SL_JOBSPEC_GID, SL_JOBSPEC_GROUP,
	SL_JOBSPEC_TASK, SL_JOBSPEC_ATTEMPT, SL_JOBSPEC_LIMIT, SL_JOBSPEC_RIGHTS};

/* In pieces, so that the text is its own memory and not a byte longer. */
static size_t make_text(const uint8_t *data, size_t size, char *text)
{
	static const char start[] = "arg=a\0dir=/";
	static const char daemons[] = "uid=1\0gid=1";
	size_t used = 0;

	if (data[0] & 1) {
		memcpy(text, start, sizeof(start));
		used += sizeof(start);
	}
	if (data[0] & 2) {
		memcpy(text + used, daemons, sizeof(daemons));
		used += sizeof(daemons);
	}
	/* A byte in four, as it is; else the keys, which are found by their number. */
	for (size_t i = 1; i < size && used + 16 < TEXT_MAX; i++) {
		const char *key = known[(data[i] >> 2) % SL_ARRAY_LEN(known)];

		if (data[i] % 64 == 1) {
			memcpy(text + used, key, strlen(key));
			used += strlen(key);
			text[used++] = '=';
		} else {
			text[used++] = data[i] % 32 == 2 ? '\0' : (char)data[i];
		}
	}
	if (data[0] & 4 && used > 0)
		text[used++] = '\0';
	return used;
}

static void look_through(const struct sl_jobspec *spec)
{
	struct sl_jobspec again = {0};
	char **env = sl_jobspec_env(spec);
	size_t found = 0, variables = 0;

	for (size_t k = 0; k < SL_ARRAY_LEN(known); k++) {
		char **all = sl_jobspec_all(spec, known[k]);

		for (size_t i = 0; all && all[i]; i++, found++) {
			if (sl_jobspec_add(&again, known[k], all[i]) != 0)
				abort();
		}
		free(all);
	}
	for (size_t i = 0; env && env[i]; i++, variables++) {
		if (!strchr(env[i], '=') || env[i][0] == '=')
			abort();
	}
	if (!env || variables > found || found != spec->entries ||
		again.entries != found || again.size != spec->size)
		abort();
	free(env);
	sl_jobspec_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_error err = {{0}};
	struct sl_jobspec spec;
	char text[TEXT_MAX + 64], *own;
	bool from_daemon;
	size_t used;

	if (size < 1)
		return 0;
	from_daemon = data[0] & 8;
	used = make_text(data, size, text);
	own = malloc(used ? used : 1);
	if (!own)
		return 0;
	memcpy(own, text, used);
	if (sl_jobspec_check(own, used, from_daemon, &err) != SL_JOBSPEC_OK) {
		if (!err.text[0])
			abort();
		free(own);
		return 0;
	}
	sl_jobspec_take(&spec, own, used);
	look_through(&spec);
	sl_jobspec_fini(&spec);
	return 0;
}
