/*
 * hash - see hash.h; the definition is in hash_math.h
 *
 * On the CPU the words are taken from the last to the first, with Horner's rule in both variables: along a
 * line by a^4, from line to line by b.
 */
#include "runtime/hash.h"
#include "runtime/hash_math.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sl_hash_powers powers_of_half(const struct sl_hash_key *key, int half)
{
	return sl_hash_powers_of(key->word[2 * half], key->word[2 * half + 1]);
}

/* bytes: at most a line. One that is not whole ends with zeros. */
static void hash_line(const struct sl_hash_powers k[2], const unsigned char *line,
	uint64_t bytes, uint64_t sum[2], uint32_t *seen)
{
	uint64_t a4[2] = {
		sl_hash_times(k[0].a2, k[0].a2), sl_hash_times(k[1].a2, k[1].a2)};
	uint64_t along[2] = {0, 0};

	for (uint64_t at = (bytes + 15) / 16 * 16; at > 0; at -= 16) {
		struct sl_hash_quad q = {{0, 0, 0, 0}};

		memcpy(&q, line + at - 16, sl_min_u64(16, bytes - (at - 16)));
		*seen |= q.word[0] | q.word[1] | q.word[2] | q.word[3];
		along[0] = sl_hash_step(along[0], a4[0], &k[0], &q);
		along[1] = sl_hash_step(along[1], a4[1], &k[1], &q);
	}
	for (int half = 0; half < 2; half++)
		sum[half] =
			sl_hash_fold((sl_hash_wide)sum[half] * k[half].b + along[half]);
}

void sl_hash_bytes(const struct sl_hash_key *key, const void *data, uint64_t size,
	struct sl_hash *out)
{
	const struct sl_hash_powers k[2] = {
		powers_of_half(key, 0), powers_of_half(key, 1)};
	uint64_t sum[2] = {0, 0}, end = size;
	uint32_t seen = 0;

	while (end) {
		uint64_t begin = (end - 1) / SL_HASH_LINE_BYTES * SL_HASH_LINE_BYTES;

		hash_line(
			k, (const unsigned char *)data + begin, end - begin, sum, &seen);
		end = begin;
	}
	out->low = sl_hash_final(sum[0]);
	out->high = sl_hash_final(sum[1]);
	out->zero = !seen;
}

/* --- the key ---------------------------------------------------------------------------------- */

static pthread_mutex_t key_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_hash_key own_key;
static bool own_key_made;

/* Kernels before 3.17 have only the file. */
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
