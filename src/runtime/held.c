/*
 * held - see held.h
 */
#include "runtime/held.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	const struct sl_gpu *gpu;
	uint64_t bytes;
} counts[SL_GPUS_MAX];

/* Under the lock. There are as many rows as GPUs, so there is always one. */
static uint64_t *count_of(const struct sl_gpu *gpu)
{
	size_t i = 0;

	while (i < SL_GPUS_MAX - 1 && counts[i].gpu && counts[i].gpu != gpu)
		i++;
	counts[i].gpu = gpu;
	return &counts[i].bytes;
}

bool sl_held_take(struct sl_gpu *gpu, uint64_t bytes)
{
	sl_held_add(gpu, bytes);
	return true;
}

void sl_held_add(struct sl_gpu *gpu, uint64_t bytes)
{
	(void)pthread_mutex_lock(&lock);
	*count_of(gpu) += bytes;
	(void)pthread_mutex_unlock(&lock);
}

void sl_held_drop(struct sl_gpu *gpu, uint64_t bytes)
{
	uint64_t *count;

	(void)pthread_mutex_lock(&lock);
	count = count_of(gpu);
	*count = sl_sub_sat(*count, bytes);
	(void)pthread_mutex_unlock(&lock);
}

uint64_t sl_held_bytes(const struct sl_gpu *gpu)
{
	uint64_t bytes;

	(void)pthread_mutex_lock(&lock);
	bytes = *count_of(gpu);
	(void)pthread_mutex_unlock(&lock);
	return bytes;
}

/* The daemon counts what is passed through as hidden until it is told otherwise. */
void sl_held_tell(bool everything)
{
	(void)everything;
}

void sl_held_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	memset(counts, 0, sizeof(counts));
}
