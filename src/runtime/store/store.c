/*
 * store - see store.h
 *
 * A file is cut into grains, and each grain has its owner. So a walk through the grains shows what
 * a file is still needed for, without a second account that could be wrong. A search for room walks
 * the grains of files with enough free ones: 512 pointers per GiB, once per chunk of mostly 64 MiB
 * and more.
 */
#include "runtime/store/store.h"
#include "runtime/session/state.h"
#include "runtime/store/internal.h"

#include "base/log.h"
#include "base/step.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 0x0002
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct sl_store sl_store = {.files = SL_LIST_INIT(sl_store.files)};

void sl_store_lock(void)
{
	(void)pthread_mutex_lock(&lock);
}

void sl_store_unlock(void)
{
	(void)pthread_mutex_unlock(&lock);
}

static struct sl_store_file *file_of(struct sl_link *link)
{
	return SL_LIST_ENTRY(link, struct sl_store_file, link);
}

/* --- places: under the lock ------------------------------------------------------------------ */

/* The longest run of unowned grains, up to `most`: its length, and where it begins. */
static uint32_t longest_run(const struct sl_store_file *file, uint32_t most, uint32_t *at)
{
	uint32_t best = 0, length = 0;

	for (uint32_t i = 0; i < file->grains && best < most; i++) {
		length = file->owner[i] ? 0 : length + 1;
		if (length > best) {
			best = length;
			*at = i + 1 - length;
		}
	}
	return best;
}

static bool is_near(const struct sl_store_file *file, uint32_t ordinal)
{
	return ordinal < 32 && (file->near >> ordinal & 1);
}

/* Among the near files, or the others: the first run that is long enough, or the longest. 0:
 * nothing is free. */
static uint32_t find_run_of(uint32_t grains, uint32_t ordinal, bool near,
	struct sl_store_file **in, uint32_t *at)
{
	uint32_t best = 0;

	sl_list_foreach (link, &sl_store.files) {
		struct sl_store_file *file = file_of(link);
		uint32_t where = 0, length;

		if (file->leaving || file->free <= best || is_near(file, ordinal) != near)
			continue;
		length = longest_run(file, grains, &where);
		if (length > best) {
			best = length;
			*in = file;
			*at = where;
		}
		if (best == grains)
			break;
	}
	return best;
}

/* Another NUMA node's memory is reached through the link between the nodes, which GPUs share. So
 * several near runs are better than a far one. */
static uint32_t find_run(
	uint32_t grains, uint32_t ordinal, struct sl_store_file **in, uint32_t *at)
{
	uint32_t best = find_run_of(grains, ordinal, true, in, at);

	return best ? best : find_run_of(grains, ordinal, false, in, at);
}

static bool add_place(struct sl_host_copy *host, struct sl_store_file *file, uint32_t at,
	uint32_t grains)
{
	struct sl_places *places = &host->places;
	struct sl_place *more = realloc(places->at, (places->count + 1) * sizeof(*more));

	if (!more)
		return false;
	places->at = more;
	more[places->count++] = (struct sl_place){
		.file = file,
		.offset = at * SL_STORE_GRAIN,
		.bytes = grains * SL_STORE_GRAIN,
	};
	for (uint32_t i = 0; i < grains; i++)
		file->owner[at + i] = host;
	file->free -= grains;
	return true;
}

/* Owner of lost places, so that they stay in use. */
static struct sl_host_copy lost = {.where = SL_EVICTED};

/* Under the lock: gives all places to heir (NULL: frees them). */
static void hand_over(struct sl_host_copy *host, struct sl_host_copy *heir)
{
	struct sl_places *places = &host->places;

	for (uint32_t n = 0; n < places->count; n++) {
		const struct sl_place *place = &places->at[n];
		uint32_t at = (uint32_t)(place->offset / SL_STORE_GRAIN);
		uint32_t grains = (uint32_t)(place->bytes / SL_STORE_GRAIN);

		for (uint32_t i = 0; i < grains; i++)
			place->file->owner[at + i] = heir;
		place->file->free += heir ? 0 : grains;
	}
	free(places->at);
	*places = (struct sl_places){NULL, 0};
	host->valid = host->hashed = false;
}

void sl_store_give_locked(struct sl_host_copy *host)
{
	hand_over(host, NULL);
}

void sl_store_lose(struct sl_host_copy *host)
{
	sl_store_lock();
	hand_over(host, &lost);
	sl_store_unlock();
}

/* Drops a copy of a chunk that is on the GPU, to make room. False: there is none. */
static bool drop_a_copy(uint32_t ordinal, bool near)
{
	sl_list_foreach (link, &sl_store.files) {
		const struct sl_store_file *file = file_of(link);

		if (is_near(file, ordinal) != near)
			continue;
		for (uint32_t i = 0; i < file->grains; i++) {
			if (file->owner[i] && !sl_host_copy_is_needed(file->owner[i])) {
				sl_store_give_locked(file->owner[i]);
				return true;
			}
		}
	}
	return false;
}

/* Under the lock: takes free places, all or nothing. */
static bool take(uint32_t left, uint32_t ordinal, struct sl_host_copy *host)
{
	struct sl_store_file *file = NULL;
	uint32_t at = 0, grains;

	for (; left; left -= grains) {
		grains = find_run(left, ordinal, &file, &at);
		if (!grains || !add_place(host, file, at, grains)) {
			sl_store_give_locked(host);
			return false;
		}
	}
	return true;
}

bool sl_store_take(uint64_t bytes, uint32_t ordinal, struct sl_host_copy *host)
{
	uint32_t grains = (uint32_t)((bytes + SL_STORE_GRAIN - 1) / SL_STORE_GRAIN);
	bool taken;

	sl_store_lock();
	do
		taken = take(grains, ordinal, host);
	while (!taken && (drop_a_copy(ordinal, true) || drop_a_copy(ordinal, false)));
	sl_store_unlock();
	return taken;
}

void sl_store_give(struct sl_host_copy *host)
{
	/* Takes the lock even without places: another thread may be giving up the copy, and the
	 * record goes after this. */
	sl_store_lock();
	sl_store_give_locked(host);
	sl_store_unlock();
}

struct sl_run sl_store_run(const struct sl_place *place, uint64_t offset)
{
	const struct sl_store_file *file = place->file;
	uint64_t at = place->offset + offset;
	uint64_t piece_end = (at / SL_STORE_PIECE + 1) * SL_STORE_PIECE;

	/* Some drivers refuse copies that cross from one registration into another. */
	return (struct sl_run){
		.at = file->map + at,
		.bytes = sl_min_u64(place->bytes - offset, piece_end - at),
		.pinned = __atomic_load_n(&file->pinned[at / SL_STORE_PIECE],
				  __ATOMIC_ACQUIRE) != NULL,
	};
}

/* --- files ------------------------------------------------------------------------------------ */

/* NULL if the file is valid. */
static const char *fault_of(int fd, uint64_t bytes)
{
	struct stat info;
	long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);

	if (syscall(SYS_fstat, fd, &info) != 0)
		return "it cannot be looked at";
	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return "it may be cut short";
	if (bytes == 0 || (uint64_t)info.st_size < bytes)
		return "it is shorter than said";
	return NULL;
}

void sl_store_close(struct sl_store_file *file)
{
	if (!file)
		return;
	if (file->map != MAP_FAILED)
		(void)munmap(file->map, file->bytes);
	sl_fd_close(&file->fd);
	free(file->owner);
	free(file->pinned);
	free(file);
}

static struct sl_store_file *file_new(const struct sl_msg_store *msg)
{
	struct sl_store_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	sl_list_init(&file->link);
	file->number = msg->number;
	file->flags = msg->flags;
	file->near = msg->near;
	file->bytes = msg->bytes;
	file->fd.fd = -1;
	file->map = MAP_FAILED;
	file->grains = file->free = (uint32_t)(msg->bytes / SL_STORE_GRAIN);
	file->pieces = (uint32_t)((msg->bytes + SL_STORE_PIECE - 1) / SL_STORE_PIECE);
	file->checked = file->pieces;
	file->owner = calloc(file->grains + 1u, sizeof(struct sl_host_copy *));
	file->pinned = calloc(file->pieces + 1u, sizeof(CUcontext));
	if (file->owner && file->pinned)
		return file;
	sl_store_close(file);
	return NULL;
}

/* Takes over fd, also on failure. */
static bool map_file(struct sl_store_file *file, int fd)
{
	const char *fault = fault_of(fd, file->bytes);

	if (fault)
		sl_warning("host memory %u of the daemon is not used: %s", file->number,
			fault);
	if (sl_fd_claim(&file->fd, fd) != 0 || fault)
		return false;
	file->map = mmap(
		NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd.fd, 0);
	if (file->map == MAP_FAILED)
		return false;
	/* A child of a fork never reads it, and core dumps leave it out. */
	(void)madvise(file->map, file->bytes, MADV_DONTFORK);
	(void)madvise(file->map, file->bytes, MADV_DONTDUMP);
	(void)madvise(file->map, file->bytes, MADV_HUGEPAGE);
	return true;
}

static void say(enum sl_msg_type type, const struct sl_store_file *file)
{
	union sl_msg msg;
	int fd = -1;

	sl_wire_init(&msg, type);
	if (type == SL_MSG_STORE_BACK) {
		msg.store_back.number = file->number;
		sl_session_say(&msg);
		return;
	}
	msg.store_held.number = file->number;
	msg.store_held.flags = file->flags;
	msg.store_held.near = file->near;
	msg.store_held.bytes = file->bytes;
	/* If the program has closed our descriptor, the mapping remains but cannot be passed on. */
	if (sl_fd_is_ours(&file->fd))
		fd = (int)syscall(SYS_fcntl, file->fd.fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		sl_session_say_fds(&msg, &fd, 1);
	else
		sl_warning("host memory %u cannot be shown to the daemon: its descriptor "
			   "was closed",
			file->number);
}

void sl_store_on_store(const struct sl_msg_store *msg, struct sl_wire_fds *fds)
{
	struct sl_store_file none = {.number = msg->number}, *file = NULL;
	int saved_errno = errno;

	if (fds->count == 1)
		file = file_new(msg);
	if (file) {
		fds->count = 0;
		if (!map_file(file, fds->fd[0])) {
			sl_store_close(file);
			file = NULL;
		}
	}
	errno = saved_errno;
	if (!file) {
		say(SL_MSG_STORE_BACK, &none);
		return;
	}
	sl_debug("host memory %u: %llu MiB", file->number,
		(unsigned long long)(file->bytes / SL_MIB));
	sl_store_lock();
	sl_list_push_tail(&sl_store.files, &file->link);
	sl_store_wake();
	sl_store_unlock();
	sl_step(C_STORE_TAKEN);
}

void sl_store_report(void)
{
	sl_store_lock();
	sl_list_foreach (link, &sl_store.files)
		say(SL_MSG_STORE_HELD, file_of(link));
	sl_store_unlock();
}

struct sl_store_counts sl_store_count(void)
{
	struct sl_store_counts counts = {0};

	sl_store_lock();
	sl_list_foreach (link, &sl_store.files) {
		const struct sl_store_file *file = file_of(link);

		counts.files++;
		counts.bytes += file->bytes;
		counts.free_bytes += file->free * SL_STORE_GRAIN;
		for (uint32_t i = 0; i < file->pieces; i++)
			if (file->pinned[i])
				counts.pinned_bytes += sl_min_u64(
					SL_STORE_PIECE, file->bytes - i * SL_STORE_PIECE);
	}
	sl_store_unlock();
	return counts;
}

/* The child inherits neither the mappings nor the contexts that pinned pieces, but it inherits
 * descriptors. */
void sl_store_forget(void)
{
	sl_list_foreach (link, &sl_store.files)
		sl_fd_close(&file_of(link)->fd);
	(void)pthread_mutex_init(&lock, NULL);
	memset(&sl_store, 0, sizeof(sl_store));
	sl_list_init(&sl_store.files);
	sl_store_pinning_forget();
}
