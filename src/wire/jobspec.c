/*
 * jobspec - see the header
 *
 * The bytes stay as they came and are searched whenever an entry is needed. So the stored form is
 * the one that programs exchange. It is read too rarely to need an index. One table lists the keys,
 * how often each may come, and the form of its value.
 */
#include "wire/jobspec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

void sl_jobspec_fini(struct sl_jobspec *spec)
{
	free(spec->text);
	*spec = (struct sl_jobspec){0};
}

int sl_jobspec_add(struct sl_jobspec *spec, const char *key, const char *value)
{
	size_t key_size = strlen(key), value_size = strlen(value);
	size_t most = SL_JOBSPEC_BYTES_MAX + SL_JOBSPEC_MORE_BYTES;
	size_t size;
	char *at;

	if (spec->entries >= SL_JOBSPEC_ENTRIES_MAX + SL_JOBSPEC_MORE_ENTRIES ||
		key_size + value_size + 2 > most - spec->size)
		return -E2BIG;
	size = spec->size + key_size + value_size + 2;
	if (size > spec->room) {
		size_t room = sl_max_u64(size, 2 * spec->room + 1024);
		char *grown = realloc(spec->text, room);

		if (!grown)
			return sl_err_origin(-ENOMEM);
		spec->text = grown;
		spec->room = room;
	}
	at = spec->text + spec->size;
	memcpy(at, key, key_size);
	at[key_size] = '=';
	memcpy(at + key_size + 1, value, value_size + 1);
	spec->size = size;
	spec->entries++;
	return 0;
}

/* --- Checking. Each value_*: what is wrong with it, or NULL. --- */

static const char *value_arg(const char *value, size_t before)
{
	return before == 0 && !*value ? "the command's name is empty" : NULL;
}

static const char *value_env(const char *value, size_t before)
{
	return *value == '=' || !strchr(value, '=') ? "it is not NAME=VALUE" : NULL;
}

static const char *value_dir(const char *value, size_t before)
{
	if (*value != '/')
		return "the folder is not absolute";
	return strlen(value) >= PATH_MAX ? "the folder's name is too long" : NULL;
}

static bool digits_within(const char *value, unsigned int base, uint64_t most)
{
	uint64_t number = 0;

	if (!*value)
		return false;
	for (; *value; value++) {
		unsigned int digit = (unsigned int)(unsigned char)*value - '0';

		if (digit >= base)
			return false;
		number = number * base + digit;
		if (number > most)
			return false;
	}
	return true;
}

static const char *value_umask(const char *value, size_t before)
{
	return digits_within(value, 8, 0777) ? NULL : "it is not octal, 0 to 777";
}

/* The last number names neither a user nor a group: the calls that set one take it for "as it
 * is". */
static const char *value_id(const char *value, size_t before)
{
	return digits_within(value, 10, UINT32_MAX - 1) ? NULL
							: "it is not the number of one";
}

static const char *value_number(const char *value, size_t before)
{
	return digits_within(value, 10, UINT32_MAX) ? NULL : "it is not a number";
}

/* Moves *at behind the number and the character that ends it. */
static bool take_number(const char **at, char end, uint64_t *out)
{
	char text[24] = "";
	size_t size = strspn(*at, "0123456789");

	if (size == 0 || size >= sizeof(text) || (*at)[size] != end)
		return false;
	memcpy(text, *at, size);
	errno = 0;
	*out = strtoull(text, NULL, 10);
	*at += size + (end != '\0');
	return errno == 0;
}

bool sl_jobspec_limit_parse(const char *value, struct sl_jobspec_limit *out)
{
	uint64_t resource = 0;

	if (!take_number(&value, ' ', &resource) || resource >= SL_JOBSPEC_LIMITS ||
		!take_number(&value, ' ', &out->soft) ||
		!take_number(&value, '\0', &out->hard) || out->soft > out->hard)
		return false;
	out->resource = (uint32_t)resource;
	return true;
}

static const char *value_limit(const char *value, size_t before)
{
	struct sl_jobspec_limit limit;

	return sl_jobspec_limit_parse(value, &limit) ? NULL : "it is no resource limit";
}

bool sl_jobspec_rights_parse(const char *value, struct sl_jobspec_rights *out)
{
	uint64_t no_new_privs = 0, login = 0;

	if (!take_number(&value, ' ', &out->caps) ||
		!take_number(&value, ' ', &no_new_privs) || no_new_privs > 1 ||
		!take_number(&value, '\0', &login) || login > UINT32_MAX)
		return false;
	out->no_new_privs = no_new_privs == 1;
	out->login = (uint32_t)login;
	return true;
}

static const char *value_rights(const char *value, size_t before)
{
	struct sl_jobspec_rights rights;

	return sl_jobspec_rights_parse(value, &rights) ? NULL : "they are no rights";
}

static const struct key {
	const char *name;
	const char *(*wrong)(const char *value, size_t before);
	size_t least, most;
	bool daemons;
} keys[] = {
	{SL_JOBSPEC_ARG, value_arg, 1, SIZE_MAX, false},
	{SL_JOBSPEC_ENV, value_env, 0, SIZE_MAX, false},
	{SL_JOBSPEC_DIR, value_dir, 1, 1, false},
	{SL_JOBSPEC_UMASK, value_umask, 0, 1, false},
	{SL_JOBSPEC_DELAY, value_number, 0, 1, false},
	{SL_JOBSPEC_UID, value_id, 1, 1, true},
	{SL_JOBSPEC_GID, value_id, 1, 1, true},
	{SL_JOBSPEC_GROUP, value_id, 0, SIZE_MAX, true},
	{SL_JOBSPEC_LIMIT, value_limit, 0, SL_JOBSPEC_LIMITS, true},
	{SL_JOBSPEC_RIGHTS, value_rights, 0, 1, true},
	{SL_JOBSPEC_TASK, value_number, 0, 1, true},
	{SL_JOBSPEC_ATTEMPT, value_number, 0, 1, true},
};

/* The value, if the entry has that key. */
static const char *value_of(const char *entry, const char *key)
{
	size_t size = strlen(key);

	return strncmp(entry, key, size) == 0 && entry[size] == '=' ? entry + size + 1
								    : NULL;
}

static int check_entry(const char *entry, size_t number, bool from_daemon,
	size_t counts[SL_ARRAY_LEN(keys)], struct sl_error *err)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		const char *value = value_of(entry, keys[i].name), *wrong;

		if (!value)
			continue;
		if (keys[i].daemons && !from_daemon)
			break;
		wrong = keys[i].wrong(value, counts[i]);
		if (!wrong) {
			counts[i]++;
			return SL_JOBSPEC_OK;
		}
		sl_error_set(
			err, "the job's entry %zu, '%.80s': %s", number, entry, wrong);
		return SL_JOBSPEC_BAD;
	}
	sl_error_set(err,
		"the job's entry %zu, '%.80s', is none that a job has; use a sluice of "
		"the same "
		"version as sluiced",
		number, entry);
	return SL_JOBSPEC_BAD;
}

static int check_counts(
	const size_t counts[SL_ARRAY_LEN(keys)], bool from_daemon, struct sl_error *err)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		if (keys[i].daemons && !from_daemon)
			continue;
		if (counts[i] >= keys[i].least && counts[i] <= keys[i].most)
			continue;
		sl_error_set(err, "the job has %zu entries '%s' instead of %s%zu",
			counts[i], keys[i].name,
			counts[i] < keys[i].least ? "at least " : "at most ",
			counts[i] < keys[i].least ? keys[i].least : keys[i].most);
		return SL_JOBSPEC_BAD;
	}
	return SL_JOBSPEC_OK;
}

int sl_jobspec_check(
	const char *text, size_t size, bool from_daemon, struct sl_error *err)
{
	size_t bytes_most = SL_JOBSPEC_BYTES_MAX, most = SL_JOBSPEC_ENTRIES_MAX;
	size_t counts[SL_ARRAY_LEN(keys)] = {0}, number = 0;

	if (from_daemon) {
		bytes_most += SL_JOBSPEC_MORE_BYTES;
		most += SL_JOBSPEC_MORE_ENTRIES;
	}
	if (size > bytes_most) {
		sl_error_set(err,
			"command and environment have %zu bytes, and a job may have %zu; "
			"shorten them",
			size, bytes_most);
		return SL_JOBSPEC_BAD;
	}
	if (size > 0 && text[size - 1] != '\0') {
		sl_error_set(err, "the job's last entry has no end");
		return SL_JOBSPEC_BAD;
	}
	for (size_t at = 0; at < size; at += strlen(text + at) + 1) {
		if (++number > most) {
			sl_error_set(err,
				"command and environment are more than %zu words, which "
				"is the "
				"most of a job; shorten them",
				most);
			return SL_JOBSPEC_BAD;
		}
		if (check_entry(text + at, number, from_daemon, counts, err) !=
			SL_JOBSPEC_OK)
			return SL_JOBSPEC_BAD;
	}
	return check_counts(counts, from_daemon, err);
}

/* --- Reading. --- */

const char *sl_jobspec_next(const struct sl_jobspec *spec, const char *key, size_t *at)
{
	while (*at < spec->size) {
		const char *entry = spec->text + *at;
		const char *value = value_of(entry, key);

		*at += strlen(entry) + 1;
		if (value)
			return value;
	}
	return NULL;
}

uint32_t sl_jobspec_number(
	const struct sl_jobspec *spec, const char *key, uint32_t fallback)
{
	size_t at = 0;
	const char *value = sl_jobspec_next(spec, key, &at);
	int base = strcmp(key, SL_JOBSPEC_UMASK) == 0 ? 8 : 10;

	return value ? (uint32_t)strtoul(value, NULL, base) : fallback;
}

char **sl_jobspec_all(const struct sl_jobspec *spec, const char *key)
{
	char **all = calloc(spec->entries + 1, sizeof(*all));
	size_t at = 0, count = 0;
	const char *value;

	while (all && (value = sl_jobspec_next(spec, key, &at)))
		all[count++] = spec->text + (value - spec->text);
	return all;
}

/* By name; entries of one name in the order in which they stand in the text. */
static int compare_variables(const void *left, const void *right)
{
	const char *a = **(const char *const *const *)left;
	const char *b = **(const char *const *const *)right;
	size_t a_size = strcspn(a, "="), b_size = strcspn(b, "=");
	int order = memcmp(a, b, sl_min_u64(a_size, b_size));

	if (order == 0)
		order = (a_size > b_size) - (a_size < b_size);
	return order ? order : (a > b) - (a < b);
}

static bool have_same_name(const char *a, const char *b)
{
	size_t size = strcspn(a, "=") + 1;

	return strncmp(a, b, size) == 0;
}

char **sl_jobspec_env(const struct sl_jobspec *spec)
{
	sl_cleanup(sl_freep) char **all = sl_jobspec_all(spec, SL_JOBSPEC_ENV);
	sl_cleanup(sl_freep) char ***sorted = NULL;
	size_t count = 0, kept = 0;

	while (all && all[count])
		count++;
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!all || !sorted)
		return NULL;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &all[i];
	qsort(sorted, count, sizeof(*sorted), compare_variables);
	for (size_t i = 0; i + 1 < count; i++) {
		if (have_same_name(*sorted[i], *sorted[i + 1]))
			*sorted[i] = NULL;
	}
	for (size_t i = 0; i < count; i++) {
		if (all[i])
			all[kept++] = all[i];
	}
	all[kept] = NULL;
	return sl_steal(&all);
}

void sl_jobspec_take(struct sl_jobspec *spec, char *text, size_t size)
{
	*spec = (struct sl_jobspec){.text = text, .size = size, .room = size};
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		spec->entries++;
}

/* --- As a memfd. --- */

int sl_jobspec_to_fd(const struct sl_jobspec *spec)
{
	sl_cleanup(sl_closep) int fd =
		memfd_create("sluice-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return sl_err_origin(-errno);
	r = sl_file_write_all(fd, spec->text, spec->size);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return sl_err_origin(-errno);
	return sl_steal_fd(&fd);
}

static int bad_fd(struct sl_error *err, const char *what)
{
	sl_error_set(err,
		"what came with the job %s; use a sluice of the same version as sluiced",
		what);
	return SL_JOBSPEC_BAD;
}

/* The file is sealed, so its size cannot change while it is read. */
static bool read_whole(int fd, char *text, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = pread(fd, text + used, size - used, (off_t)used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		used += (size_t)n;
	}
	return true;
}

int sl_jobspec_from_fd(int fd, size_t size, bool from_daemon, struct sl_jobspec *spec,
	struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	struct stat stat;
	/* Answered by the kernel alone. fstat(2) on a stranger's file system may never return. */
	int seals = fcntl(fd, F_GET_SEALS), r;

	if (seals < 0 || (seals & SEALS) != SEALS)
		return bad_fd(err, "is not a sealed file");
	if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size != size)
		return bad_fd(err, "has another size than it says");
	/* Before memory is allocated for it. */
	if (size > SL_JOBSPEC_BYTES_MAX + SL_JOBSPEC_MORE_BYTES)
		return sl_jobspec_check(NULL, size, from_daemon, err);
	text = malloc(size + 1);
	if (!text)
		return sl_err_origin(-ENOMEM);
	if (!read_whole(fd, text, size))
		return bad_fd(err, "cannot be read");
	r = sl_jobspec_check(text, size, from_daemon, err);
	if (r == SL_JOBSPEC_OK)
		sl_jobspec_take(spec, sl_steal(&text), size);
	return r;
}
