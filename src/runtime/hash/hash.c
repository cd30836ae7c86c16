/*
 * hash - see hash.h; the definition is in math.h
 *
 * Computes 16 KiB of powers first, then hashes line by line, without a division or a reduction
 * inside a line.
 */
#include "runtime/hash/hash.h"
#include "runtime/hash/math.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void sl_hash_bytes(const struct sl_hash_key *key, const void *data, uint64_t size,
	struct sl_hash *out)
{
	const struct sl_hash_powers k[2] = {sl_hash_powers_of(key->word[0], key->word[1]),
		sl_hash_powers_of(key->word[2], key->word[3])};
	unsigned long long by[2] = {1, 1}, sum[2] = {0, 0}, line[2];
	struct sl_hash_columns columns;
	bool seen = false;

	sl_hash_columns_init(
		&columns, k, (unsigned int)sl_min_u64(size / 4, SL_HASH_LINE_WORDS));
	for (uint64_t at = 0; at < size; at += SL_HASH_LINE_BYTES) {
		uint64_t words = sl_min_u64(size - at, SL_HASH_LINE_BYTES) / 4;

		if (sl_hash_line(&columns,
			    (const unsigned int *)((const char *)data + at),
			    (unsigned int)words, line))
			seen = true;
		for (int half = 0; half < 2; half++) {
			sum[half] = sl_hash_fold(
				(sl_hash_wide)line[half] * by[half] + sum[half]);
			by[half] = sl_hash_times(by[half], k[half].b);
		}
	}
	out->low = sl_hash_final(sum[0]);
	out->high = sl_hash_final(sum[1]);
	out->zero = !seen;
}

/* --- the key ---------------------------------------------------------------------------------- */

static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_hash_key own_key;
static bool own_key_made;

/* Kernels before 3.17 have no getrandom, only the file. */
static bool random_from_file(struct sl_hash_key *key)
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, key, sizeof(*key)) : -1;

	if (fd >= 0)
		(void)close(fd);
	return n == sizeof(*key);
}

static bool make_key(struct sl_hash_key *key)
{
	int saved_errno = errno;
	bool made = syscall(SYS_getrandom, key, sizeof(*key), 0) == sizeof(*key) ||
		    random_from_file(key);

	errno = saved_errno;
	return made;
}

const struct sl_hash_key *sl_hash_own_key(void)
{
	bool made;

	(void)pthread_mutex_lock(&key_lock);
	own_key_made = own_key_made || make_key(&own_key);
	made = own_key_made;
	(void)pthread_mutex_unlock(&key_lock);
	return made ? &own_key : NULL;
}

void sl_hash_forget(void)
{
	(void)pthread_mutex_init(&key_lock, NULL);
	own_key_made = false;
	memset(&own_key, 0, sizeof(own_key));
}
