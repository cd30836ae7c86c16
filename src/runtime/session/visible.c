/*
 * visible - see visible.h
 */
#include "runtime/session/visible.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "CUDA_VISIBLE_DEVICES"

enum { ENTRY_MAX = 48 };

/* Held until the variable is restored: a second thread would take the changed value for the
 * program's. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* A number without sign, or -1. */
static long number_of(const char *entry)
{
	char *end;
	long number = strtol(entry, &end, 10);

	return end == entry || *end || *entry == '-' || *entry == '+' ? -1 : number;
}

/* Does the entry name the GPU? The driver takes the beginning of a UUID for the whole. */
static bool names(const char *entry, const struct sl_gpu *gpu)
{
	char uuid[41];

	if (strncmp(entry, "GPU-", 4) != 0)
		return number_of(entry) == (long)gpu->first_number;
	sl_wire_uuid_format(gpu->uuid[SL_GPU_FIRST], uuid);
	return entry[4] && strncmp(entry, uuid, strlen(entry)) == 0;
}

/* Writes the entry's name of today. */
static int translate(const char *entry, char *out)
{
	char uuid[41];

	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		const struct sl_gpu *gpu = &sl_session.gpus[i];

		if (!names(entry, gpu))
			continue;
		if (*entry != 'G')
			return sprintf(out, "%u", gpu->number);
		sl_wire_uuid_format(gpu->uuid[SL_GPU_NOW], uuid);
		return sprintf(out, "%s", uuid);
	}
	return sprintf(out, "%s", entry);
}

/* Of the list, which is cut into its entries. NULL: no memory. */
static char *translate_all(char *list)
{
	char *out = malloc(strlen(list) + ENTRY_MAX * (SL_GPUS_MAX + 1)), *at = out,
	     *entry;
	unsigned int count = 0;

	while (out && (entry = strsep(&list, ",")) && count++ < SL_GPUS_MAX) {
		at += sprintf(at, "%s", at == out ? "" : ",");
		at += translate(entry + strspn(entry, " "), at);
	}
	return out;
}

static bool has_moved(void)
{
	bool moved = false;

	for (uint32_t i = 0; i < sl_session.gpu_count; i++)
		moved |= memcmp(sl_session.gpus[i].uuid[SL_GPU_NOW],
				 sl_session.gpus[i].uuid[SL_GPU_FIRST],
				 SL_WIRE_UUID_BYTES) != 0;
	return moved;
}

/* What the variable must say today, or NULL: it is right as it is. To be freed. */
static char *value_of_today(const char *value)
{
	char *list = strdup(value), *now = NULL;

	sl_session_lock();
	if (list && has_moved())
		now = translate_all(list);
	sl_session_unlock();
	free(list);
	return now;
}

/* Else the driver finds no GPU, and nothing depends on the daemon. */
static bool names_a_gpu(const char *list)
{
	list += list ? strspn(list, " ") : 0;
	return list && (strncmp(list, "GPU-", 4) == 0 || (*list >= '0' && *list <= '9'));
}

char *sl_visible_begin(void)
{
	int saved_errno = errno;
	char *before = NULL, *now;
	const char *value;

	if (!names_a_gpu(getenv(VARIABLE)) || sl_session_join() != CUDA_SUCCESS)
		return NULL;
	(void)pthread_mutex_lock(&changing);
	value = getenv(VARIABLE);
	now = value ? value_of_today(value) : NULL;
	before = now ? strdup(value) : NULL;
	if (before && setenv(VARIABLE, now, 1) == 0) {
		free(now);
		errno = saved_errno;
		return before;
	}
	(void)pthread_mutex_unlock(&changing);
	free(before);
	free(now);
	errno = saved_errno;
	return NULL;
}

void sl_visible_end(char *before)
{
	int saved_errno = errno;

	if (!before)
		return;
	(void)setenv(VARIABLE, before, 1);
	(void)pthread_mutex_unlock(&changing);
	free(before);
	errno = saved_errno;
}

void sl_visible_forget(void)
{
	(void)pthread_mutex_init(&changing, NULL);
}
