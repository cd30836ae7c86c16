/*
 * hostpool - see hostpool.h
 *
 * A client maps its files. We keep each file's descriptor, so that we can empty a file that the
 * client gives back but does not unmap.
 *
 * A client that outlived a daemon hands its files' descriptors to the next one. A descriptor is
 * accepted only if it is what a daemon makes: a memfd with our seals, of the size it claims, with
 * all its pages, and not another client's. F_GET_SEALS is answered by the kernel alone, unlike
 * fstat(2) of a foreign file system. Whichever process made such a file, its pages are really
 * allocated.
 */
#include "daemon/swap/hostpool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/link/bundle.h"
#include "daemon/link/peer.h"
#include "daemon/link/share.h"
#include "daemon/state/client.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"
#include "daemon/state/workload.h"
#include "daemon/swap/hostmem.h"

struct file {
	struct sl_link link; /* client->host_files */
	uint64_t bytes, inode;
	uint32_t number;
	uint32_t near; /* GPUs that it is near to, one bit per ordinal */
	int fd;
	bool huge;
	bool told; /* sent or named on the current connection */
};

static struct sl_hostpool *pool_of(const struct sl_client *client)
{
	return client->daemon->hostpool;
}

/* --- what the policy is told ---------------------------------------------------------------- */

static void tell_store(struct sl_client *client)
{
	struct sl_event event = {.type = SL_EVENT_STORE};

	event.store.client = client->id;
	event.store.bytes = client->host_bytes;
	sl_drive(client->daemon, &event);
}

static void tell_size(struct sl_daemon *daemon, uint64_t bytes)
{
	struct sl_hostpool *pool = daemon->hostpool;
	struct sl_event event = {.type = SL_EVENT_POOL_SIZE};

	if (pool->pool_bytes == bytes)
		return;
	pool->pool_bytes = bytes;
	event.pool_size.pool_bytes = bytes;
	sl_drive(daemon, &event);
	sl_timer_set(pool->timer, bytes < pool->configured_bytes
					  ? sl_clock_now() + SL_HOSTPOOL_LOOK_NS
					  : SL_NS_NEVER);
}

/* The most that all files could have, as the host is now. */
static uint64_t possible(const struct sl_hostpool *pool)
{
	uint64_t more = sl_sub_sat(
		pool->room.available_bytes, sl_host_budget_margin(&pool->room));

	return sl_min_u64(pool->configured_bytes,
		pool->made_bytes + sl_max_u64(more, pool->room.huge_free_bytes) /
					   SL_HOSTMEM_GRAIN * SL_HOSTMEM_GRAIN);
}

/* Tells the policy of a smaller pool as soon as a file could not be made. Tells it of a larger pool
 * once that is larger by an eighth or as large as configured, and not of every page. */
static void judge_size(struct sl_daemon *daemon, bool failed)
{
	struct sl_hostpool *pool = daemon->hostpool;
	uint64_t bytes = possible(pool);

	if (failed && bytes < pool->pool_bytes)
		tell_size(daemon, bytes);
	else if (bytes > pool->pool_bytes &&
		 (bytes == pool->configured_bytes ||
			 bytes - pool->pool_bytes >= pool->pool_bytes / 8))
		tell_size(daemon, bytes);
	else if (pool->pool_bytes < pool->configured_bytes)
		sl_timer_set(pool->timer, sl_clock_now() + SL_HOSTPOOL_LOOK_NS);
}

/* The configured size of the pool; by default half of what the host had for us when the daemon
 * started. Files from an earlier daemon count as available, or each restart would leave less. */
static uint64_t configured(const struct sl_daemon *daemon)
{
	const struct sl_hostpool *pool = daemon->hostpool;
	uint64_t bytes = daemon->config.host_memory;

	if (bytes == SL_CONFIG_WORD)
		bytes = (pool->at_start.available_bytes + pool->found_bytes) / 2;
	return bytes - bytes % SL_HOSTMEM_GRAIN;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_hostmem_look(daemon->hostpool->hostmem);
	return 0;
}

/* --- near which GPU -------------------------------------------------------------------------- */

static int node_of(const struct sl_client *client, uint32_t ordinal)
{
	return client->daemon->gpus[client->gpu_numbers[ordinal]].node;
}

static uint32_t near_node(const struct sl_client *client, int node)
{
	uint32_t near = 0;

	for (uint32_t i = 0; i < client->gpu_count; i++) {
		int of = node_of(client, i);

		if (of == node || of < 0 || node < 0)
			near |= 1u << i;
	}
	return near;
}

uint32_t sl_hostpool_near(const struct sl_client *client, uint32_t ordinal)
{
	return near_node(client, node_of(client, ordinal));
}

static void add_near(struct sl_client *client, uint32_t near, uint64_t bytes)
{
	for (uint32_t i = 0; i < client->gpu_count; i++)
		client->gpus[i].near_bytes += near >> i & 1 ? bytes : 0;
}

static void take_near(struct sl_client *client, uint32_t near, uint64_t bytes)
{
	for (uint32_t i = 0; i < client->gpu_count; i++)
		client->gpus[i].near_bytes =
			sl_sub_sat(client->gpus[i].near_bytes, near >> i & 1 ? bytes : 0);
}

/* --- files ---------------------------------------------------------------------------------- */

/* Inode numbers of memory files are unique per kind of page only. */
static bool key_of(int fd, uint64_t *key, struct stat *stat)
{
	if (fstat(fd, stat) < 0)
		return false;
	*key = (uint64_t)stat->st_ino ^ (uint64_t)stat->st_dev << 44;
	return true;
}

static struct file *find(const struct sl_client *client, uint32_t number)
{
	sl_list_foreach (link, &client->host_files) {
		struct file *file = SL_LIST_ENTRY(link, struct file, link);

		if (file->number == number)
			return file;
	}
	return NULL;
}

/* Takes fd, unless it returns NULL: no memory, or the file is known already. */
static struct file *file_new(struct sl_client *client, const struct file *what)
{
	struct sl_hostpool *pool = pool_of(client);
	struct file *file = calloc(1, sizeof(*file));
	struct stat stat = {0};
	uint64_t key = 0;

	if (!file || !key_of(what->fd, &key, &stat) || sl_map_get(&pool->inodes, key) ||
		sl_map_put(&pool->inodes, key, file) < 0) {
		free(file);
		return NULL;
	}
	*file = *what;
	file->inode = key;
	file->told = true;
	sl_list_push_tail(&client->host_files, &file->link);
	add_near(client, file->near, file->bytes);
	client->host_bytes += file->bytes;
	client->host_next = (uint32_t)sl_max_u64(client->host_next, file->number);
	pool->made_bytes += file->bytes;
	pool->huge_bytes += file->huge ? file->bytes : 0;
	pool->files++;
	return file;
}

static void file_leave(struct sl_client *client, struct file *file)
{
	struct sl_hostpool *pool = pool_of(client);

	(void)sl_map_take(&pool->inodes, file->inode);
	sl_list_unlink(&file->link);
	take_near(client, file->near, file->bytes);
	client->host_bytes -= file->bytes;
	pool->made_bytes -= file->bytes;
	pool->huge_bytes -= file->huge ? file->bytes : 0;
	pool->files--;
}

/* The contents are not needed any more. */
static void file_drop(struct sl_client *client, struct file *file)
{
	file_leave(client, file);
	sl_hostmem_drop(pool_of(client)->hostmem, file->fd, file->bytes);
	free(file);
}

/* --- making --------------------------------------------------------------------------------- */

/* From clients of an earlier daemon that had more descriptors, the pool accepts up to this many
 * times its own limit of files: refusing a file would not free it. */
#define HELD_TIMES 2

/* A quarter of the descriptors: connections and processes come first. */
static uint32_t files_max(void)
{
	struct rlimit limit = {.rlim_cur = 1024};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return (uint32_t)sl_min_u64(limit.rlim_cur / 4, SL_HOSTPOOL_FILES_MAX);
}

/* A small need gets a small file, but at least an eighth of what the client has, to keep files
 * few. */
static uint64_t next_size(const struct sl_client *client, uint64_t lacks)
{
	uint64_t have = client->host_bytes + client->host_making_bytes;
	uint64_t bytes = sl_round_up(lacks, SL_HOSTMEM_GRAIN);

	if (bytes < have / 8)
		bytes = sl_round_up(have / 8, SL_HOSTMEM_GRAIN);
	return sl_min_u64(bytes, SL_HOSTMEM_FILE_MAX);
}

bool sl_hostpool_make(struct sl_client *client, uint64_t bytes, uint32_t ordinal)
{
	struct sl_hostpool *pool = pool_of(client);

	if (pool->files + pool->making >= pool->files_max ||
		!sl_hostmem_make(
			pool->hostmem, client->id, bytes, node_of(client, ordinal)))
		return false;
	add_near(client, sl_hostpool_near(client, ordinal), bytes);
	client->host_making++;
	client->host_making_bytes += bytes;
	pool->making++;
	pool->making_bytes += bytes;
	return true;
}

uint64_t sl_hostpool_bound(const struct sl_daemon *daemon)
{
	uint64_t bytes = daemon->config.host_memory_workload;

	return bytes ? sl_max_u64(bytes - bytes % SL_HOSTMEM_GRAIN, SL_HOSTMEM_GRAIN) : 0;
}

uint64_t sl_hostpool_left(const struct sl_client *client, uint64_t beyond_bytes)
{
	const struct sl_hostpool *pool = pool_of(client);
	uint64_t bound = sl_hostpool_bound(client->daemon), has = 0;
	uint64_t left =
		sl_sub_sat(pool->configured_bytes, pool->made_bytes + pool->making_bytes);

	if (!bound)
		return left;
	sl_list_foreach (link, &client->workload->clients) {
		const struct sl_client *other =
			SL_LIST_ENTRY(link, struct sl_client, link);

		has += other->host_bytes + other->host_making_bytes;
	}
	return sl_min_u64(left, sl_sub_sat(bound + beyond_bytes, has));
}

uint64_t sl_hostpool_at_hand(const struct sl_hostpool *pool)
{
	return sl_sub_sat(pool->pool_bytes, pool->made_bytes + pool->making_bytes);
}

enum sl_hostpool_outcome sl_hostpool_want(
	struct sl_client *client, uint64_t bytes, uint64_t near_bytes, uint32_t ordinal)
{
	uint64_t have = client->host_bytes + client->host_making_bytes;
	uint64_t lacks = sl_round_up(sl_sub_sat(bytes, have), SL_HOSTMEM_GRAIN);
	/* A chunk larger than the rest of the workload's bound could otherwise never leave. */
	uint64_t beyond = sl_min_u64(client->host_short_bytes, SL_HOSTPOOL_CHUNK_MAX);
	uint64_t left = sl_hostpool_left(client, beyond);
	uint64_t easy = sl_min_u64(left, sl_hostpool_at_hand(pool_of(client)));
	uint64_t far =
		sl_round_up(sl_sub_sat(near_bytes, client->gpus[ordinal].near_bytes),
			SL_HOSTMEM_GRAIN);

	if (lacks > left)
		return SL_HOSTPOOL_FULL;
	/* Files near another GPU work, but slowly. */
	lacks = sl_max_u64(lacks, sl_min_u64(far, easy - easy % SL_HOSTMEM_GRAIN));
	while (lacks > 0) {
		uint64_t size = next_size(client, lacks);

		/* A bigger file is only a convenience: never fail for it. */
		if (size > easy)
			size = sl_min_u64(lacks, SL_HOSTMEM_FILE_MAX);
		if (!sl_hostpool_make(client, size, ordinal))
			break;
		easy = sl_sub_sat(easy, size);
		lacks = sl_sub_sat(lacks, size);
	}
	if (client->host_bytes + client->host_making_bytes < bytes)
		return SL_HOSTPOOL_FULL;
	return client->host_making ? SL_HOSTPOOL_MAKING : SL_HOSTPOOL_HAS;
}

void sl_hostpool_trimmed(struct sl_client *client)
{
	client->host_not_before = sl_clock_now() + SL_HOSTPOOL_REST_NS;
}

/* --- giving --------------------------------------------------------------------------------- */

/* The client gets a descriptor of its own: ours stays whatever happens to the message. */
static bool give(struct sl_client *client, const struct file *file)
{
	struct sl_bundle *bundle;
	union sl_msg msg;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return false;
	bundle = sl_bundle_new(1, client->peer->uid, 0);
	if (!bundle) {
		(void)close(fd);
		return false;
	}
	sl_bundle_add(bundle, &fd, 1);
	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = file->number;
	msg.store.flags = file->huge ? SL_STORE_HUGE : 0;
	msg.store.near = file->near;
	msg.store.bytes = file->bytes;
	sl_peer_send_fds(client->peer, &msg, bundle, 0, 1);
	(void)sl_bundle_unref(bundle);
	sl_step(D_STORE_SENT);
	return true;
}

/* False: the client did not get it. */
static bool hand_over(struct sl_client *client, struct sl_hostmem_answer *answer)
{
	struct file *file = NULL;

	if (client->peer && answer->fd >= 0)
		file = file_new(client, &(struct file){.number = client->host_next + 1,
						.fd = answer->fd,
						.bytes = answer->bytes,
						.near = near_node(client, answer->node),
						.huge = answer->huge});
	if (!file)
		return false;
	answer->fd = -1;
	client->host_given_at = sl_clock_now();
	if (give(client, file))
		return true;
	file_drop(client, file);
	return false;
}

static void on_made(struct sl_daemon *daemon, struct sl_hostmem_answer *answer)
{
	struct sl_hostpool *pool = daemon->hostpool;
	struct sl_client *client = sl_map_get(&daemon->clients, answer->client);
	char size[32];
	uint64_t before;

	/* The requests of a dead client were cancelled. */
	if (!client || client->state == SL_CLIENT_DYING)
		return;
	pool->making--;
	pool->making_bytes -= answer->bytes;
	client->host_making--;
	client->host_making_bytes -= answer->bytes;
	take_near(client, near_node(client, answer->node), answer->bytes);
	before = client->host_bytes;
	sl_step(D_STORE_MADE);
	if (answer->error) {
		pool->failures++;
		pool->ahead_not_before = sl_clock_now() + SL_HOSTPOOL_REST_NS;
		client->host_failed = true;
		if (sl_peer_may_log(daemon, SL_LOG_WARNING))
			sl_warning("%s of host memory cannot be had: %s",
				sl_bytes_format(answer->bytes, size, sizeof(size)),
				answer->error == -ENOSPC
					? "too little is available; see host_memory"
					: strerror(-answer->error));
	} else if (!hand_over(client, answer)) {
		client->host_failed = true;
	}
	if (client->host_bytes != before)
		tell_store(client);
	judge_size(daemon, answer->error != 0);
	if (!client->host_making) {
		bool failed = client->host_failed;

		client->host_failed = false;
		pool->ready(client, !failed);
	}
}

static int on_answer(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_daemon *daemon = context;
	struct sl_hostpool *pool = daemon->hostpool;
	struct sl_share_turn turn = sl_share_begin();
	struct sl_hostmem_answer *answer;

	while ((answer = sl_hostmem_take(pool->hostmem))) {
		if (answer->room.total_bytes)
			pool->room = answer->room;
		if (answer->made)
			on_made(daemon, answer);
		else
			judge_size(daemon, false);
		/* The thread closes a file that no client took: it can be large. */
		if (answer->fd >= 0)
			sl_hostmem_drop(
				pool->hostmem, sl_steal_fd(&answer->fd), answer->bytes);
		(void)sl_hostmem_answer_free(answer);
	}
	daemon->up->settle(daemon);
	sl_share_note(daemon, SL_SHARE_HOSTMEM, &turn);
	return 0;
}

/* --- messages ------------------------------------------------------------------------------- */

void sl_hostpool_on_store_back(struct sl_peer *peer, const struct sl_msg_store_back *msg)
{
	struct sl_client *client = peer->client;
	struct file *file = find(client, msg->number);

	if (!file || !file->told) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"STORE_BACK of file %u, which it does not have", msg->number);
		return;
	}
	sl_step(D_STORE_BACK_TAKEN);
	file_drop(client, file);
	tell_store(client);
}

/* Why no daemon can have made this file, or NULL. */
static const char *fault_of(int fd, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0)
		return "no memory file";
	if ((seals & SL_HOSTMEM_SEALS) != SL_HOSTMEM_SEALS ||
		seals & SL_HOSTMEM_SEALS_NOT)
		return "a file with other seals";
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return "a file that cannot be written";
	if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size != bytes || bytes == 0 ||
		bytes > SL_HOSTMEM_FILE_MAX || bytes % SL_HOSTMEM_GRAIN)
		return "a file of another size";
	if ((uint64_t)stat.st_blocks * 512 < bytes)
		return "a file without its pages";
	return NULL;
}

/* A file of this daemon: only the very same one is accepted. */
static bool is_same(const struct file *file, int fd, uint64_t bytes)
{
	struct stat stat;
	uint64_t key;

	return file->bytes == bytes && key_of(fd, &key, &stat) && key == file->inode;
}

static bool is_somebodys(const struct sl_hostpool *pool, int fd)
{
	struct stat stat;
	uint64_t key;

	return key_of(fd, &key, &stat) && sl_map_get(&pool->inodes, key);
}

static void take_held(struct sl_peer *peer, const struct sl_msg_store_held *msg, int *fd)
{
	struct sl_client *client = peer->client;
	struct sl_hostpool *pool = pool_of(client);
	struct file *file = find(client, msg->number);

	if (file && !file->told && is_same(file, *fd, msg->bytes)) {
		file->told = true;
		return;
	}
	if (file || client->known || !client->outlived || msg->number == 0 ||
		msg->number == UINT32_MAX) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"STORE_HELD of file %u, which was never given to it",
			msg->number);
		return;
	}
	if (is_somebodys(pool, *fd)) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL,
			"STORE_HELD of file %u, which somebody has already", msg->number);
		return;
	}
	/* The client tries again; other clients may have freed files by then. */
	if (pool->files + pool->making >= HELD_TIMES * pool->files_max ||
		!file_new(client, &(struct file){.number = msg->number,
					  .fd = *fd,
					  .bytes = msg->bytes,
					  .near = msg->near,
					  .huge = msg->flags & SL_STORE_HUGE})) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced has no descriptor or no memory left for file %u of what "
			"this process has on the host; raise its limit of descriptors "
			"(LimitNOFILE=) and restart it",
			msg->number);
		return;
	}
	*fd = -1;
	/* Huge pages are set aside, and never counted as available. */
	pool->found_bytes += msg->flags & SL_STORE_HUGE ? 0 : msg->bytes;
}

void sl_hostpool_on_store_held(struct sl_peer *peer, const struct sl_msg_store_held *msg,
	struct sl_wire_fds *fds)
{
	const char *fault;

	if (peer->client->state != SL_CLIENT_JOINED) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "STORE_HELD after REPORTED");
		return;
	}
	if (fds->missing || fds->count != 1) {
		sl_peer_reject(peer, SL_REJECT_FULL,
			"sluiced has no descriptor left for STORE_HELD; raise its limit "
			"of them (LimitNOFILE=)");
		return;
	}
	sl_step(D_STORE_HELD_TAKEN);
	fault = fault_of(fds->fd[0], msg->bytes);
	if (fault) {
		sl_peer_reject(peer, SL_REJECT_PROTOCOL, "STORE_HELD of file %u is %s",
			msg->number, fault);
		return;
	}
	take_held(peer, msg, &fds->fd[0]);
	if (fds->fd[0] < 0)
		fds->count = 0;
}

/* --- a client's life ------------------------------------------------------------------------ */

void sl_hostpool_reconnected(struct sl_client *client)
{
	sl_list_foreach (link, &client->host_files) {
		SL_LIST_ENTRY(link, struct file, link)->told = false;
	}
}

void sl_hostpool_reported(struct sl_client *client)
{
	sl_list_foreach_safe (link, &client->host_files) {
		struct file *file = SL_LIST_ENTRY(link, struct file, link);

		/* The client did not name this file. Either a STORE or STORE_BACK was lost with the
		 * connection: then closing our descriptor frees the pages. Or the program closed
		 * all its descriptors: then its mapping still needs the contents, so the file is
		 * not emptied. */
		if (file->told)
			continue;
		file_leave(client, file);
		sl_closep(&file->fd);
		free(file);
	}
	client->daemon->hostpool->configured_bytes = configured(client->daemon);
	judge_size(client->daemon, false);
	if (client->swaps)
		tell_store(client);
}

void sl_hostpool_gone(struct sl_client *client)
{
	struct sl_hostpool *pool = pool_of(client);

	if (!pool)
		return;
	if (client->host_making)
		sl_hostmem_cancel(pool->hostmem, client->id);
	pool->making -= client->host_making;
	pool->making_bytes -= client->host_making_bytes;
	client->host_making = 0;
	client->host_making_bytes = 0;
	sl_list_foreach_safe (link, &client->host_files) {
		file_drop(client, SL_LIST_ENTRY(link, struct file, link));
	}
}

void sl_hostpool_leave(struct sl_client *client)
{
	sl_list_foreach_safe (link, &client->host_files) {
		struct file *file = SL_LIST_ENTRY(link, struct file, link);

		sl_list_unlink(link);
		sl_closep(&file->fd);
		free(file);
	}
}

/* --- start and end -------------------------------------------------------------------------- */

bool sl_hostpool_swap_is_on(const struct sl_daemon *daemon)
{
	return sl_chain_has(daemon->config.resolvers, SL_RESOLVER_SWAP) &&
	       daemon->hostpool->configured_bytes > 0;
}

uint64_t sl_hostpool_configure(struct sl_daemon *daemon)
{
	struct sl_hostpool *pool = daemon->hostpool;

	pool->configured_bytes = configured(daemon);
	pool->pool_bytes = possible(pool);
	sl_timer_set(pool->timer, pool->pool_bytes < pool->configured_bytes
					  ? sl_clock_now() + SL_HOSTPOOL_LOOK_NS
					  : SL_NS_NEVER);
	return pool->pool_bytes;
}

int sl_hostpool_open(struct sl_daemon *daemon, const char *root,
	void (*ready)(struct sl_client *client, bool ok))
{
	struct sl_hostpool *pool = calloc(1, sizeof(*pool));
	int r;

	if (!pool)
		return sl_err_origin(-ENOMEM);
	daemon->hostpool = pool;
	pool->ready = ready;
	pool->files_max = files_max();
	if (sl_host_budget_read(root, &pool->at_start) < 0)
		sl_warning("how much memory this machine has cannot be read; nothing is "
			   "moved to it");
	pool->room = pool->at_start;
	r = sl_hostmem_new(root, &pool->hostmem);
	if (r == 0)
		r = sd_event_add_io(daemon->loop, &pool->io, sl_hostmem_fd(pool->hostmem),
			EPOLLIN, on_answer, daemon);
	if (r < 0)
		return r;
	(void)sd_event_source_set_priority(pool->io, SL_PRIORITY_MEASURE);
	return sl_timer_new(daemon, SL_PRIORITY_TIMER, on_timer, &pool->timer);
}

void sl_hostpool_close(struct sl_daemon *daemon)
{
	struct sl_hostpool *pool = daemon->hostpool;

	if (!pool)
		return;
	daemon->hostpool = NULL;
	pool->io = sd_event_source_disable_unref(pool->io);
	pool->timer = sd_event_source_disable_unref(pool->timer);
	pool->ahead_timer = sd_event_source_disable_unref(pool->ahead_timer);
	pool->hostmem = sl_hostmem_free(pool->hostmem);
	sl_map_fini(&pool->inodes);
	free(pool);
}
