/*
 * hostmem - one thread, one queue of jobs, which become their own answers
 *
 * Pages come from fallocate(2), not from touching a mapping: fallocate(2) fails with an error where
 * a touch would raise SIGBUS. In a full control group both get the process killed, so the thread
 * measures the room before each file and leaves a margin. A file is made in pieces, between which
 * the thread checks whether to stop.
 *
 * Where transparent huge pages are on request only (madvise), fallocate(2) cannot request them, and
 * its pages stay small. There the thread maps the file, requests huge pages for the mapping, and
 * makes them with MADV_POPULATE_WRITE, which fails with an error, too. That is three times slower
 * where pages come out small, so it is done nowhere else.
 */
#include "daemon/swap/hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* since Linux 6.3; some machines insist on it */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

#define PIECE (64 * SL_MIB)
#define NODES 1024

enum { MAKE, DROP, LOOK };

struct sl_hostmem {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* Under the mutex. */
	bool stop;
	struct sl_hostmem_answer *jobs, **last_job, *current;
	struct sl_hostmem_answer *first, **last;
	/* Constant. */
	int event_fd;
	const char *root;
	/* The thread's own. */
	int node;
};

struct sl_hostmem_answer *sl_hostmem_answer_free(struct sl_hostmem_answer *answer)
{
	if (!answer)
		return NULL;
	sl_closep(&answer->fd);
	free(answer);
	return NULL;
}

/* --- the thread --------------------------------------------------------------------------- */

static bool is_wanted(struct sl_hostmem *hostmem, const struct sl_hostmem_answer *job)
{
	bool wanted;

	(void)pthread_mutex_lock(&hostmem->mutex);
	wanted = !hostmem->stop && !job->forget;
	(void)pthread_mutex_unlock(&hostmem->mutex);
	return wanted;
}

/* This thread's pages come from that node while it has any. If the kernel refuses, from
 * anywhere. */
static void prefer(struct sl_hostmem *hostmem, int node)
{
	unsigned long mask[NODES / (8 * sizeof(long))] = {0};

	if (node == hostmem->node)
		return;
	if (node >= 0)
		mask[(size_t)node / (8 * sizeof(long))] =
			1ul << ((size_t)node % (8 * sizeof(long)));
	if (syscall(SYS_set_mempolicy, node < 0 ? MPOL_DEFAULT : MPOL_PREFERRED,
		    node < 0 ? NULL : mask, node < 0 ? 0ul : (unsigned long)NODES) < 0)
		sl_debug("host memory cannot be had from node %d: %s", node,
			strerror(errno));
	hostmem->node = node;
}

static int open_file(unsigned int flags)
{
	int fd = memfd_create(SL_HOST_FILE_NAME,
		MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | flags);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(
			SL_HOST_FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	return fd < 0 ? -errno : fd;
}

/* False: not possible here, or not for all bytes. */
static bool fill_advised(int fd, uint64_t at, uint64_t bytes)
{
	size_t room = bytes + SL_HOSTMEM_GRAIN;
	char *space = mmap(NULL, room, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *map;
	bool filled;

	if (space == MAP_FAILED)
		return false;
	/* For huge pages, the address must have the same offset within a huge page as the place in
	 * the file. */
	map = space + (-(uintptr_t)space & (SL_HOSTMEM_GRAIN - 1));
	filled = mmap(map, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)at) != MAP_FAILED &&
		 madvise(map, bytes, MADV_HUGEPAGE) == 0 &&
		 madvise(map, bytes, MADV_POPULATE_WRITE) == 0;
	(void)munmap(space, room);
	return filled;
}

static int fill_piece(int fd, uint64_t at, uint64_t bytes, bool advise)
{
	int r;

	if (advise && fill_advised(fd, at, bytes))
		return 0;
	do {
		r = fallocate(fd, 0, (off_t)at, (off_t)bytes) < 0 ? -errno : 0;
	} while (r == -EINTR);
	return r;
}

static int fill(struct sl_hostmem *hostmem, const struct sl_hostmem_answer *job, int fd,
	bool advise)
{
	int r = ftruncate(fd, (off_t)job->bytes) < 0 ? -errno : 0;

	for (uint64_t at = 0; r == 0 && at < job->bytes; at += PIECE) {
		if (!is_wanted(hostmem, job))
			return -ECANCELED;
		r = fill_piece(fd, at, sl_min_u64(PIECE, job->bytes - at), advise);
	}
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SL_HOSTMEM_SEALS) < 0)
		r = -errno;
	return r;
}

/* A whole file, or a negative errno. */
static int make_file(
	struct sl_hostmem *hostmem, const struct sl_hostmem_answer *job, bool huge)
{
	sl_cleanup(sl_closep) int fd = open_file(huge ? MFD_HUGETLB : 0);
	bool advise = !huge && sl_host_budget_advises(hostmem->root);
	int r = fd < 0 ? fd : fill(hostmem, job, fd, advise);

	return r < 0 ? r : sl_steal_fd(&fd);
}

static bool has_huge(const struct sl_hostmem_answer *job)
{
	const struct sl_host_budget *room = &job->room;

	return room->huge_page_bytes && job->bytes % room->huge_page_bytes == 0 &&
	       room->huge_free_bytes >= job->bytes;
}

static void make(struct sl_hostmem *hostmem, struct sl_hostmem_answer *job)
{
	const struct sl_host_budget *room = &job->room;
	int r = sl_host_budget_read(hostmem->root, &job->room);

	prefer(hostmem, job->node);
	job->huge = r == 0 && has_huge(job);
	if (job->huge)
		job->fd = make_file(hostmem, job, true);
	if (job->fd < 0) {
		job->huge = false;
		if (r == 0 &&
			room->available_bytes < job->bytes + sl_host_budget_margin(room))
			r = -ENOSPC;
		job->fd = r < 0 ? r : make_file(hostmem, job, false);
	}
	job->error = job->fd < 0 ? job->fd : 0;
	job->fd = job->error ? -1 : job->fd;
}

/* Empties the file first: a dead or lying client may keep its mapping. */
static void drop(struct sl_hostmem_answer *job)
{
	for (uint64_t at = 0; at < job->bytes; at += PIECE) {
		if (fallocate(job->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    (off_t)at, (off_t)sl_min_u64(PIECE, job->bytes - at)) < 0) {
			sl_debug("a file of host memory cannot be emptied: %s",
				strerror(errno));
			break;
		}
	}
	sl_closep(&job->fd);
}

static void work(struct sl_hostmem *hostmem, struct sl_hostmem_answer *job)
{
	switch (job->kind) {
	case MAKE: make(hostmem, job); break;
	case DROP: drop(job); break;
	default: break;
	}
	if (sl_host_budget_read(hostmem->root, &job->room) < 0)
		job->room = (struct sl_host_budget){0};
}

/* Under the mutex. */
static void publish(struct sl_hostmem *hostmem, struct sl_hostmem_answer *job)
{
	uint64_t one = 1;

	hostmem->current = NULL;
	if (job->forget) {
		(void)sl_hostmem_answer_free(job);
		return;
	}
	job->next = NULL;
	*hostmem->last = job;
	hostmem->last = &job->next;
	if (write(hostmem->event_fd, &one, sizeof(one)) < 0)
		sl_debug("the thread of host memory could not wake the loop: %s",
			strerror(errno));
}

static void *thread_main(void *argument)
{
	struct sl_hostmem *hostmem = argument;

	(void)pthread_mutex_lock(&hostmem->mutex);
	while (!hostmem->stop) {
		struct sl_hostmem_answer *job = hostmem->jobs;

		if (!job) {
			(void)pthread_cond_wait(&hostmem->wake, &hostmem->mutex);
			continue;
		}
		hostmem->jobs = job->next;
		if (!hostmem->jobs)
			hostmem->last_job = &hostmem->jobs;
		hostmem->current = job;
		(void)pthread_mutex_unlock(&hostmem->mutex);
		work(hostmem, job);
		(void)pthread_mutex_lock(&hostmem->mutex);
		publish(hostmem, job);
	}
	(void)pthread_mutex_unlock(&hostmem->mutex);
	return NULL;
}

/* --- the loop ----------------------------------------------------------------------------- */

static int start(struct sl_hostmem *hostmem)
{
	sigset_t all, before;
	int r;

	/* The loop handles signals; SIGXFSZ, where file sizes are limited, becomes an error of
	 * fallocate. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&hostmem->thread, NULL, thread_main, hostmem);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int sl_hostmem_new(const char *root, struct sl_hostmem **out)
{
	sl_cleanup(sl_freep) struct sl_hostmem *hostmem = calloc(1, sizeof(*hostmem));
	sl_cleanup(sl_closep) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (!hostmem || fd < 0)
		return sl_err_origin(hostmem ? -errno : -ENOMEM);
	hostmem->event_fd = fd;
	hostmem->root = root;
	hostmem->node = -1;
	hostmem->last_job = &hostmem->jobs;
	hostmem->last = &hostmem->first;
	(void)pthread_mutex_init(&hostmem->mutex, NULL);
	(void)pthread_cond_init(&hostmem->wake, NULL);
	r = start(hostmem);
	if (r < 0)
		return sl_err_origin(r);
	(void)sl_steal_fd(&fd);
	*out = sl_steal(&hostmem);
	return 0;
}

static void free_list(struct sl_hostmem_answer *list)
{
	while (list) {
		struct sl_hostmem_answer *next = list->next;

		(void)sl_hostmem_answer_free(list);
		list = next;
	}
}

struct sl_hostmem *sl_hostmem_free(struct sl_hostmem *hostmem)
{
	if (!hostmem)
		return NULL;
	(void)pthread_mutex_lock(&hostmem->mutex);
	hostmem->stop = true;
	(void)pthread_cond_signal(&hostmem->wake);
	(void)pthread_mutex_unlock(&hostmem->mutex);
	(void)pthread_join(hostmem->thread, NULL);
	free_list(hostmem->jobs);
	free_list(hostmem->first);
	(void)close(hostmem->event_fd);
	(void)pthread_cond_destroy(&hostmem->wake);
	(void)pthread_mutex_destroy(&hostmem->mutex);
	free(hostmem);
	return NULL;
}

int sl_hostmem_fd(const struct sl_hostmem *hostmem)
{
	return hostmem->event_fd;
}

static bool add(struct sl_hostmem *hostmem, const struct sl_hostmem_answer *what)
{
	struct sl_hostmem_answer *job = malloc(sizeof(*job));

	if (!job)
		return false;
	*job = *what;
	(void)pthread_mutex_lock(&hostmem->mutex);
	*hostmem->last_job = job;
	hostmem->last_job = &job->next;
	(void)pthread_cond_signal(&hostmem->wake);
	(void)pthread_mutex_unlock(&hostmem->mutex);
	return true;
}

bool sl_hostmem_make(
	struct sl_hostmem *hostmem, uint64_t client, uint64_t bytes, int node)
{
	return add(hostmem, &(struct sl_hostmem_answer){.kind = MAKE,
				    .made = true,
				    .client = client,
				    .bytes = bytes,
				    .node = node,
				    .fd = -1});
}

void sl_hostmem_drop(struct sl_hostmem *hostmem, int fd, uint64_t bytes)
{
	/* Without memory for the job, the pages are freed with the last mapping. */
	if (!add(hostmem,
		    &(struct sl_hostmem_answer){.kind = DROP, .fd = fd, .bytes = bytes}))
		(void)close(fd);
}

void sl_hostmem_look(struct sl_hostmem *hostmem)
{
	(void)add(hostmem, &(struct sl_hostmem_answer){.kind = LOOK, .fd = -1});
}

/* Takes a client's jobs out of a list, whose end is *last. */
static struct sl_hostmem_answer *pick(
	struct sl_hostmem_answer **at, struct sl_hostmem_answer ***last, uint64_t client)
{
	struct sl_hostmem_answer *picked = NULL;

	while (*at) {
		struct sl_hostmem_answer *job = *at;

		if (!job->made || job->client != client) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		job->next = picked;
		picked = job;
	}
	*last = at;
	return picked;
}

void sl_hostmem_cancel(struct sl_hostmem *hostmem, uint64_t client)
{
	struct sl_hostmem_answer *waiting, *done;

	(void)pthread_mutex_lock(&hostmem->mutex);
	waiting = pick(&hostmem->jobs, &hostmem->last_job, client);
	done = pick(&hostmem->first, &hostmem->last, client);
	if (hostmem->current && hostmem->current->made &&
		hostmem->current->client == client)
		hostmem->current->forget = true;
	(void)pthread_mutex_unlock(&hostmem->mutex);
	free_list(waiting);
	/* The thread closes files that are made already. */
	while (done) {
		struct sl_hostmem_answer *next = done->next;

		if (done->fd >= 0)
			sl_hostmem_drop(hostmem, sl_steal_fd(&done->fd), done->bytes);
		(void)sl_hostmem_answer_free(done);
		done = next;
	}
}

struct sl_hostmem_answer *sl_hostmem_take(struct sl_hostmem *hostmem)
{
	struct sl_hostmem_answer *answer;
	uint64_t count;

	(void)pthread_mutex_lock(&hostmem->mutex);
	answer = hostmem->first;
	if (answer)
		hostmem->first = answer->next;
	if (!hostmem->first)
		hostmem->last = &hostmem->first;
	if (!answer && read(hostmem->event_fd, &count, sizeof(count)) < 0 &&
		errno != EAGAIN)
		sl_debug("the event of the thread of host memory: %s", strerror(errno));
	(void)pthread_mutex_unlock(&hostmem->mutex);
	return answer;
}
