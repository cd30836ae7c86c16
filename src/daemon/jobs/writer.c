/*
 * writer - see the header
 *
 * A new job is made in a folder of another name, which is renamed once all of it is on the disk; a
 * removed job's folder is renamed first and then emptied. So a folder named by a number is always a
 * whole job, and any other name is a leftover. A state is replaced by renaming a fixed temporary
 * name, since only the thread writes.
 *
 * Orders wait in a list. A job's newest state replaces the one that still waits, so a slow disk
 * sees each job at most once more, however often it has changed meanwhile.
 */
#include "daemon/jobs/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/core/map.h"
#include "daemon/core/worker.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/logs.h"
#include "daemon/jobs/state.h"

struct order {
	struct sl_link link;
	uint64_t id;
	bool removes;
	bool reads_log; /* of this task; log_fd: the descriptor, or negative errno */
	uint32_t task;
	int log_fd;
	struct sl_jobs_row row;
	char *spec; /* NULL: stored already */
	size_t spec_size;
	uint64_t *tickets;
	size_t tickets_count;
	/* Once it is done. */
	int result;
	struct sl_error err;
};

/* A log that is being written. */
struct log {
	struct sl_link link;
	uint64_t id, most_bytes;
	uint32_t task;
	bool last;
};

struct sl_jobs_store {
	struct sl_worker worker;
	/* Under the worker's mutex. */
	struct sl_link waiting, done; /* orders */
	struct sl_map newest;         /* job -> its waiting order that stores a state */
	struct sl_link logs;          /* only the thread removes some */
	/* The thread's own. */
	sl_ns look_at; /* next check of the logs */
	int folder_fd;
	uint64_t next_stored, next;
	/* Constant. */
	char folder[SL_PATH_MAX];
};

static struct order *order_free(struct order *order)
{
	if (order) {
		sl_jobs_row_fini(&order->row);
		sl_closep(&order->log_fd);
		free(order->spec);
		free(order->tickets);
		free(order);
	}
	return NULL;
}

static void order_freep(struct order **order)
{
	*order = order_free(*order);
}

static int sync_folder(const char *path)
{
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(AT_FDCWD, path);

	return fd < 0 ? sl_err_origin(fd) : sl_jobs_files_sync(fd);
}

/* The folder is closed to others: what jobs run and print is their users' business. */
static int make_folder(const char *folder)
{
	char parent[SL_PATH_MAX], *slash;
	int r = 0;

	(void)snprintf(parent, sizeof(parent), "%s", folder);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = '\0';
		r = sl_file_make_dirs(parent, 0755);
	}
	if (r == 0 && mkdir(folder, 0700) == 0)
		return sync_folder(slash && slash != parent ? parent : "/");
	return r < 0 || errno == EEXIST ? r : sl_err_origin(-errno);
}

/* Finds which numbers were given already. */
static int find_numbers(struct sl_jobs_store *store)
{
	sl_cleanup(sl_jobs_files_ids_fini) struct sl_jobs_files_ids ids = {0};
	int r = sl_jobs_files_ids(store->folder_fd, &ids);

	if (r < 0)
		return r;
	store->next_stored = sl_jobs_files_next(store->folder);
	store->next = store->next_stored;
	if (ids.count && ids.ids[ids.count - 1] >= store->next)
		store->next = ids.ids[ids.count - 1] + 1;
	return 0;
}

/* The first job makes the folder, so a daemon without jobs leaves no trace. */
static int have_folder(struct sl_jobs_store *store)
{
	int r;

	if (store->folder_fd >= 0)
		return 0;
	r = make_folder(store->folder);
	if (r < 0)
		return r;
	store->folder_fd = sl_jobs_files_folder(AT_FDCWD, store->folder);
	if (store->folder_fd < 0)
		return sl_err_origin(store->folder_fd);
	r = find_numbers(store);
	if (r < 0)
		sl_closep(&store->folder_fd);
	return r;
}

static int put_state(int job_fd, const struct sl_jobs_row *row)
{
	sl_cleanup(sl_freep) char *text = sl_jobs_state_write(row);
	int r = text ? sl_jobs_files_put(job_fd, "state", text, strlen(text))
		     : sl_err_origin(-ENOMEM);

	return r == 0 ? sl_jobs_files_sync(job_fd) : r;
}

static int fill_new(int job_fd, const struct order *order)
{
	int r = sl_jobs_files_put(job_fd, "spec", order->spec, order->spec_size);

	return r < 0 ? r : put_state(job_fd, &order->row);
}

static int put_new(struct sl_jobs_store *store, const struct order *order)
{
	sl_cleanup(sl_closep) int fd = -1;
	char making[32], name[24];
	int r = 0;

	(void)snprintf(name, sizeof(name), "%" PRIu64, order->id);
	(void)snprintf(making, sizeof(making), SL_JOBS_MAKING "%s", name);
	sl_jobs_files_clear(store->folder_fd, making);
	if (mkdirat(store->folder_fd, making, 0700) < 0)
		return sl_err_origin(-errno);
	fd = sl_jobs_files_folder(store->folder_fd, making);
	r = fd < 0 ? fd : fill_new(fd, order);
	sl_step(D_JOB_MADE);
	if (r == 0 && renameat(store->folder_fd, making, store->folder_fd, name) < 0)
		r = sl_err_origin(-errno);
	if (r < 0) {
		sl_jobs_files_clear(store->folder_fd, making);
		return r;
	}
	r = sl_jobs_files_sync(store->folder_fd);
	/* Its submitter is told that it failed, so the job must not reappear. */
	if (r < 0)
		sl_jobs_files_clear(store->folder_fd, name);
	return r;
}

static int put_again(struct sl_jobs_store *store, const struct order *order)
{
	sl_cleanup(sl_closep) int fd = -1;
	char name[24];

	(void)snprintf(name, sizeof(name), "%" PRIu64, order->id);
	fd = sl_jobs_files_folder(store->folder_fd, name);
	return fd < 0 ? sl_err_origin(fd) : put_state(fd, &order->row);
}

/* Before the job with the highest number is removed: only the file keeps that number from being
 * given again. */
static int keep_number(struct sl_jobs_store *store, uint64_t id)
{
	char text[32];
	int r;

	if (id < store->next_stored)
		return 0;
	(void)snprintf(text, sizeof(text), "%" PRIu64 "\n", store->next);
	r = sl_jobs_files_put(store->folder_fd, "next", text, strlen(text));
	if (r == 0)
		r = sl_jobs_files_sync(store->folder_fd);
	if (r == 0)
		store->next_stored = store->next;
	return r;
}

static int remove_job(struct sl_jobs_store *store, uint64_t id)
{
	char name[24], ending[32];
	int r = keep_number(store, id);

	if (r < 0)
		return r;
	(void)snprintf(name, sizeof(name), "%" PRIu64, id);
	(void)snprintf(ending, sizeof(ending), SL_JOBS_ENDING "%s", name);
	sl_jobs_files_clear(store->folder_fd, ending);
	if (renameat(store->folder_fd, name, store->folder_fd, ending) < 0)
		return errno == ENOENT ? 0 : sl_err_origin(-errno);
	r = sl_jobs_files_sync(store->folder_fd);
	sl_step(D_JOB_ENDING);
	sl_jobs_files_clear(store->folder_fd, ending);
	return r;
}

static void carry_out(struct sl_jobs_store *store, struct order *order)
{
	int r;

	order->result = SL_JOBS_STORE_OK;
	if (order->reads_log) {
		order->log_fd = sl_jobs_store_open_log(
			store->folder, order->id, order->task, false);
		return;
	}
	r = have_folder(store);
	if (order->id >= store->next)
		store->next = order->id + 1;
	if (order->removes) {
		if (r == 0)
			r = remove_job(store, order->id);
		if (r < 0)
			sl_error_log("cannot remove job %" PRIu64 " from %s: %s; %s",
				order->id, store->folder, strerror(-r),
				sl_jobs_files_remedy(-r));
		return;
	}
	if (r == 0)
		r = order->spec ? put_new(store, order) : put_again(store, order);
	if (r < 0)
		order->result = sl_jobs_files_failed(
			"store", store->folder, order->id, r, &order->err);
}

/* Under the mutex. */
static struct order *next_order(struct sl_jobs_store *store)
{
	struct order *order;

	if (sl_list_is_empty(&store->waiting))
		return NULL;
	order = SL_LIST_ENTRY(store->waiting.next, struct order, link);
	sl_list_unlink(&order->link);
	if (sl_map_get(&store->newest, order->id) == order)
		(void)sl_map_take(&store->newest, order->id);
	return order;
}

/* --- Logs. --- */

#define LOOK_NS SL_S

/* Under the mutex, which is released while the disk works. */
static void trim(struct sl_jobs_store *store, struct log *log)
{
	bool last = log->last;
	int r;

	(void)pthread_mutex_unlock(&store->worker.mutex);
	r = sl_jobs_logs_trim(store->folder, log->id, log->task, log->most_bytes);
	(void)pthread_mutex_lock(&store->worker.mutex);
	if (r < 0 && r != -EAGAIN && r != -ENOENT)
		sl_warning("job %" PRIu64 ": the output of task %" PRIu32
			   " cannot be kept within job_log_max: %s; put data_dir on a "
			   "file system that has holes (ext4, XFS, Btrfs)",
			log->id, log->task, strerror(-r));
	if (!last && (r == 0 || r == -EAGAIN))
		return;
	sl_list_unlink(&log->link);
	free(log);
}

static void trim_all(struct sl_jobs_store *store)
{
	/* Stops at the current end: logs added meanwhile come behind it. */
	struct sl_link *end = store->logs.prev;

	sl_list_foreach_safe (link, &store->logs) {
		bool is_end = link == end;

		trim(store, SL_LIST_ENTRY(link, struct log, link));
		if (is_end)
			break;
	}
}

/* Under the mutex; also when there is always other work. */
static void look_at_logs(struct sl_jobs_store *store)
{
	if (sl_list_is_empty(&store->logs) || sl_clock_now() < store->look_at)
		return;
	trim_all(store);
	store->look_at = sl_clock_now() + LOOK_NS;
}

/* Under the mutex: until there is work, or logs are due for a check. */
static void wait_for_work(struct sl_jobs_store *store)
{
	struct timespec until = {.tv_sec = (time_t)(store->look_at / SL_S),
		.tv_nsec = (long)(store->look_at % SL_S)};

	if (sl_list_is_empty(&store->logs))
		(void)pthread_cond_wait(&store->worker.wake, &store->worker.mutex);
	else
		(void)pthread_cond_clockwait(&store->worker.wake, &store->worker.mutex,
			CLOCK_MONOTONIC, &until);
}

/* Under the mutex. False: the thread must end, and all is written. */
static bool next_turn(struct sl_jobs_store *store, struct order **order)
{
	look_at_logs(store);
	*order = next_order(store);
	return *order || !store->worker.stop;
}

static void *thread_main(void *argument)
{
	struct sl_jobs_store *store = argument;
	struct sl_worker *worker = &store->worker;
	struct order *order;

	(void)pthread_mutex_lock(&worker->mutex);
	/* Orders that were handed over are written before the end. */
	while (next_turn(store, &order)) {
		if (!order) {
			wait_for_work(store);
			continue;
		}
		(void)pthread_mutex_unlock(&worker->mutex);
		carry_out(store, order);
		(void)pthread_mutex_lock(&worker->mutex);
		if (order->tickets_count == 0) {
			order = order_free(order);
			continue;
		}
		sl_list_push_tail(&store->done, &order->link);
		sl_worker_tell(worker);
	}
	(void)pthread_mutex_unlock(&worker->mutex);
	return NULL;
}

/* --- The loop's side. --- */

static void close_store(struct sl_jobs_store *store)
{
	sl_list_foreach_safe (link, &store->waiting) {
		(void)order_free(SL_LIST_ENTRY(link, struct order, link));
	}
	sl_list_foreach_safe (link, &store->done) {
		(void)order_free(SL_LIST_ENTRY(link, struct order, link));
	}
	sl_list_foreach_safe (link, &store->logs) {
		free(SL_LIST_ENTRY(link, struct log, link));
	}
	sl_map_fini(&store->newest);
	sl_closep(&store->folder_fd);
	free(store);
}

static void close_storep(struct sl_jobs_store **store)
{
	if (*store)
		close_store(*store);
}

int sl_jobs_store_new(const char *folder, struct sl_jobs_store **out)
{
	sl_cleanup(close_storep) struct sl_jobs_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return sl_err_origin(-ENOMEM);
	sl_list_init(&store->waiting);
	sl_list_init(&store->done);
	sl_list_init(&store->logs);
	(void)snprintf(store->folder, sizeof(store->folder), "%s", folder);
	store->folder_fd = -1;
	r = sl_worker_start(&store->worker, thread_main, store);
	if (r < 0)
		return r;
	*out = sl_steal(&store);
	return 0;
}

struct sl_jobs_store *sl_jobs_store_free(struct sl_jobs_store *store)
{
	if (!store)
		return NULL;
	sl_worker_end(&store->worker);
	close_store(store);
	return NULL;
}

int sl_jobs_store_fd(const struct sl_jobs_store *store)
{
	return store->worker.event_fd;
}

static int copy_row(struct sl_jobs_row *to, const struct sl_jobs_row *from)
{
	size_t size = from->task_count * sizeof(*from->tasks);
	struct sl_jobs_task *tasks = malloc(size ? size : 1);

	if (!tasks)
		return sl_err_origin(-ENOMEM);
	if (size)
		memcpy(tasks, from->tasks, size);
	*to = *from;
	to->tasks = tasks;
	return 0;
}

static int add_ticket(struct order *order, uint64_t ticket)
{
	uint64_t *grown = realloc(
		order->tickets, (order->tickets_count + 1) * sizeof(*order->tickets));

	if (!grown)
		return sl_err_origin(-ENOMEM);
	order->tickets = grown;
	order->tickets[order->tickets_count++] = ticket;
	return 0;
}

static struct order *order_new(uint64_t id)
{
	struct order *order = calloc(1, sizeof(*order));

	if (order) {
		sl_list_init(&order->link);
		order->log_fd = -1;
		order->id = id;
	}
	return order;
}

/* Under the mutex: true if a waiting order took the newer row. */
static bool overtake(struct sl_jobs_store *store, struct order *order)
{
	struct order *older = sl_map_get(&store->newest, order->id);
	struct sl_jobs_task *tasks;

	if (!older || order->spec || add_ticket(older, order->tickets[0]) < 0)
		return false;
	tasks = older->row.tasks;
	older->row = order->row;
	order->row.tasks = tasks;
	return true;
}

int sl_jobs_store_put(struct sl_jobs_store *store, const struct sl_jobs_row *row,
	const struct sl_jobspec *spec, uint64_t ticket)
{
	sl_cleanup(order_freep) struct order *order = order_new(row->id);
	int r = 0;

	if (!order || copy_row(&order->row, row) < 0 || add_ticket(order, ticket) < 0)
		return sl_err_origin(-ENOMEM);
	if (spec) {
		order->spec_size = spec->size;
		order->spec = malloc(spec->size);
		if (!order->spec)
			return sl_err_origin(-ENOMEM);
		memcpy(order->spec, spec->text, spec->size);
	}
	(void)pthread_mutex_lock(&store->worker.mutex);
	if (!overtake(store, order)) {
		r = sl_map_put(&store->newest, row->id, order);
		if (r == 0) {
			sl_list_push_tail(&store->waiting, &order->link);
			order = NULL;
		}
	}
	(void)pthread_cond_signal(&store->worker.wake);
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return r;
}

int sl_jobs_store_remove(struct sl_jobs_store *store, uint64_t id)
{
	struct order *order = order_new(id);

	if (!order)
		return sl_err_origin(-ENOMEM);
	order->removes = true;
	(void)pthread_mutex_lock(&store->worker.mutex);
	/* Later states must not replace one that stands before this removal. */
	(void)sl_map_take(&store->newest, id);
	sl_list_push_tail(&store->waiting, &order->link);
	(void)pthread_cond_signal(&store->worker.wake);
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return 0;
}

static struct log *find_log(struct sl_jobs_store *store, uint64_t id, uint32_t task)
{
	sl_list_foreach (link, &store->logs) {
		struct log *log = SL_LIST_ENTRY(link, struct log, link);

		if (log->id == id && log->task == task)
			return log;
	}
	return NULL;
}

void sl_jobs_store_bound_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t most_bytes)
{
	struct log *log;

	(void)pthread_mutex_lock(&store->worker.mutex);
	log = find_log(store, id, task);
	if (most_bytes == SL_JOBS_STORE_LAST) {
		if (log)
			log->last = true;
	} else if (log) {
		log->most_bytes = most_bytes;
		log->last = false;
	} else if (most_bytes && (log = calloc(1, sizeof(*log)))) {
		*log = (struct log){.id = id, .most_bytes = most_bytes, .task = task};
		sl_list_init(&log->link);
		sl_list_push_tail(&store->logs, &log->link);
	}
	(void)pthread_cond_signal(&store->worker.wake);
	(void)pthread_mutex_unlock(&store->worker.mutex);
}

int sl_jobs_store_read_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t ticket)
{
	sl_cleanup(order_freep) struct order *order = order_new(id);

	if (!order || add_ticket(order, ticket) < 0)
		return sl_err_origin(-ENOMEM);
	order->reads_log = true;
	order->task = task;
	(void)pthread_mutex_lock(&store->worker.mutex);
	sl_list_push_tail(&store->waiting, &sl_steal(&order)->link);
	(void)pthread_cond_signal(&store->worker.wake);
	(void)pthread_mutex_unlock(&store->worker.mutex);
	return 0;
}

bool sl_jobs_store_take(struct sl_jobs_store *store, uint64_t *ticket, int *result,
	int *log_fd, struct sl_error *err)
{
	struct order *order = NULL;
	bool over;

	sl_worker_hear(&store->worker);
	(void)pthread_mutex_lock(&store->worker.mutex);
	over = !sl_list_is_empty(&store->done);
	if (over) {
		order = SL_LIST_ENTRY(store->done.next, struct order, link);
		*ticket = order->tickets[0];
		*result = order->result;
		*log_fd = order->log_fd;
		order->log_fd = -1;
		*err = order->err;
		memmove(order->tickets, order->tickets + 1,
			--order->tickets_count * sizeof(*order->tickets));
		if (order->tickets_count > 0)
			order = NULL;
		else
			sl_list_unlink(&order->link);
	}
	(void)pthread_mutex_unlock(&store->worker.mutex);
	(void)order_free(order);
	return over;
}
