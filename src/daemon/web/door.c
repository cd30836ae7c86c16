/*
 * door - accepts connections, and closes slow ones
 *
 * libmicrohttpd would accept connections until its table is full and refuse all others, even if one
 * client fills it. So a thread here accepts. It knows when each connection began to send its
 * request or to read its answer, and closes those that take too long, earlier if others wait. The
 * rest stay in the kernel's queue until there is room.
 */
#include "daemon/web/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/core/identity.h"
#include "daemon/link/pids.h"
#include "daemon/web/page.h"

/* How long a connection may wait for or send a request; how long it may read an answer. */
#define READING_LIFE   (15 * SL_S)
#define ANSWERING_LIFE (60 * SL_S)
/* The same while the table is full. The second applies to an asker with more than SHARE
 * connections. */
#define GIVE_WAY_LIFE        (1 * SL_S)
#define GIVE_WAY_ANSWER_LIFE (5 * SL_S)
#define SHARE                (SL_PAGE_CONNECTIONS / 4)
#define LOOK_ROUND_MS        500

/* --- the thread ------------------------------------------------------------------------------- */

/* Whether the connection's asker has more than SHARE. Under the page's mutex. */
static bool has_many(struct sl_page *page, const struct sl_page_connection *connection)
{
	unsigned int count = 0;

	sl_list_foreach (link, &page->connections) {
		const struct sl_page_connection *other =
			SL_LIST_ENTRY(link, struct sl_page_connection, link);

		count += other->asker.key == connection->asker.key &&
			 other->asker.known == connection->asker.known;
	}
	return count > SHARE;
}

static sl_ns life_of(
	struct sl_page *page, const struct sl_page_connection *connection, bool full)
{
	switch (connection->phase) {
	case SL_PAGE_READING: return full ? GIVE_WAY_LIFE : READING_LIFE;
	case SL_PAGE_ANSWERING:
		return full && has_many(page, connection) ? GIVE_WAY_ANSWER_LIFE
							  : ANSWERING_LIFE;
	/* The library closes streams that are not read. */
	case SL_PAGE_WATCHING:
	default: return SL_NS_NEVER;
	}
}

/* Closes connections that take too long; while the table is full, only the oldest of them. The
 * library sees the closed socket like any hang-up. */
static void show_out(struct sl_page *page, bool full)
{
	sl_ns now = sl_clock_now();

	(void)pthread_mutex_lock(&page->mutex);
	sl_list_foreach (link, &page->connections) {
		struct sl_page_connection *connection =
			SL_LIST_ENTRY(link, struct sl_page_connection, link);
		sl_ns life = life_of(page, connection, full);

		if (life == SL_NS_NEVER || connection->since + life > now)
			continue;
		(void)shutdown(connection->fd, SHUT_RDWR);
		if (full)
			break;
	}
	(void)pthread_mutex_unlock(&page->mutex);
}

static unsigned int count_of(struct sl_page *page)
{
	unsigned int count;

	(void)pthread_mutex_lock(&page->mutex);
	count = page->connection_count;
	(void)pthread_mutex_unlock(&page->mutex);
	return count;
}

static void let_in(struct sl_page *page)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	int fd = accept4(page->listener.fd, (struct sockaddr *)&address, &size,
		SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		/* Counted now, not when its thread begins. */
		(void)pthread_mutex_lock(&page->mutex);
		page->connection_count++;
		(void)pthread_mutex_unlock(&page->mutex);
		/* Takes the socket, even if it fails. */
		if (MHD_add_connection(page->server, fd, (struct sockaddr *)&address,
			    size) == MHD_YES)
			return;
		(void)pthread_mutex_lock(&page->mutex);
		page->connection_count--;
		(void)pthread_mutex_unlock(&page->mutex);
		sl_debug("page: a connection could not be taken");
		return;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return;
	/* Pauses: the waiting connection stays in the queue and would wake this thread again at
	 * once. */
	sl_warning("page: no descriptors or memory are left; trying again");
	sl_clock_sleep(LOOK_ROUND_MS * SL_MS);
}

void *sl_page_door_keep(void *context)
{
	struct sl_page *page = context;

	while (!atomic_load(&page->ending)) {
		unsigned int count = count_of(page);
		bool full = count >= SL_PAGE_CONNECTIONS;
		struct pollfd fds[2] = {{.fd = page->stop_fd, .events = POLLIN},
			{.fd = full ? -1 : page->listener.fd, .events = POLLIN}};

		if (poll(fds, 2,
			    count ? (full ? LOOK_ROUND_MS / 5 : LOOK_ROUND_MS) : -1) <
				0 &&
			errno != EINTR)
			break;
		if (fds[1].revents)
			let_in(page);
		show_out(page, full);
	}
	return NULL;
}

/* --- connections ------------------------------------------------------------------------------ */

static uint64_t key_of(const struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		(struct MHD_Connection *)connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info ? info->client_addr : NULL;
	uint64_t key = 0;

	if (address && address->sa_family == AF_INET)
		key = ((const struct sockaddr_in *)(const void *)address)
			      ->sin_addr.s_addr;
	/* One user has a whole network of 64 bits. */
	if (address && address->sa_family == AF_INET6)
		memcpy(&key,
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
			sizeof(key));
	return key;
}

struct sl_page_connection *sl_page_connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* The user who opened the connection, as a token would stand for the user. HTTP has no place for a
 * nonce (identity.h). So on kernels that do not report the process, it counts as one in a container
 * with unknown rights. */
static struct sl_user *who_connects(int fd)
{
	struct sl_user *who = sl_user_of_socket(fd);
	struct sl_identity identity;

	if (!who)
		return NULL;
	who->contained = SL_PIDS_CONTAINED;
	if (sl_identity_of_socket(fd, &identity) != SL_IDENTITY_OK)
		return who;
	if (identity.proven) {
		sl_user_ask_rights(who, identity.pid, identity.pidfd);
		who->contained = sl_pids_apart(identity.pid, identity.start_ticks);
	}
	sl_closep(&identity.pidfd);
	return who;
}

static void begin_connection(
	struct sl_page *page, struct MHD_Connection *mhd, void **socket_context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sl_page_connection *connection = calloc(1, sizeof(*connection));

	*socket_context = connection;
	if (!connection || !info)
		return;
	connection->fd = info->connect_fd;
	connection->since = sl_clock_now();
	sl_list_init(&connection->link);
	connection->key = key_of(mhd);
	if (page->rules.is_socket) {
		connection->who = who_connects(connection->fd);
		connection->key = connection->who ? connection->who->uid : 0;
	}
	connection->asker.key = connection->key;
	(void)pthread_mutex_lock(&page->mutex);
	sl_list_push_tail(&page->connections, &connection->link);
	(void)pthread_mutex_unlock(&page->mutex);
}

void sl_page_door_notify(void *context, struct MHD_Connection *mhd, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct sl_page *page = context;
	struct sl_page_connection *connection = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(page, mhd, socket_context);
		return;
	}
	(void)pthread_mutex_lock(&page->mutex);
	if (connection)
		sl_list_unlink(&connection->link);
	page->connection_count--;
	(void)pthread_mutex_unlock(&page->mutex);
	if (connection)
		(void)sl_user_free(connection->who);
	free(connection);
	*socket_context = NULL;
}

void sl_page_door_asker(
	struct sl_page *page, struct MHD_Connection *mhd, struct sl_page_asker asker)
{
	struct sl_page_connection *connection = sl_page_connection_of(mhd);

	if (!connection)
		return;
	(void)pthread_mutex_lock(&page->mutex);
	connection->asker = asker;
	(void)pthread_mutex_unlock(&page->mutex);
}

void sl_page_door_phase(
	struct sl_page *page, struct MHD_Connection *mhd, enum sl_page_phase phase)
{
	struct sl_page_connection *connection = sl_page_connection_of(mhd);

	if (!connection)
		return;
	(void)pthread_mutex_lock(&page->mutex);
	if (connection->phase != phase) {
		connection->phase = phase;
		connection->since = sl_clock_now();
		/* The list is sorted by `since`. */
		sl_list_unlink(&connection->link);
		sl_list_push_tail(&page->connections, &connection->link);
	}
	(void)pthread_mutex_unlock(&page->mutex);
}
