/*
 * http - libmicrohttpd's threads, and one that accepts connections and closes slow ones
 *
 * libmicrohttpd would accept connections until its table is full and refuse all others, even if one
 * client fills it. So a thread here accepts. It knows when each connection began to send its
 * request or to read its answer, and closes those that take too long, earlier if others wait. The
 * rest stay in the kernel's queue until there is room.
 */
#include "daemon/web/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* How long a connection may read an answer. */
#define ANSWERING_LIFE (60 * SL_S)
/* While the table is full: how long a connection may wait for or send a request; how long it may
 * read an answer if its asker has more than a quarter of the connections. */
#define GIVE_WAY_LIFE        (1 * SL_S)
#define GIVE_WAY_ANSWER_LIFE (5 * SL_S)
#define LOOK_ROUND_MS        500
/* Little is needed: names and rows are on the stack. */
#define STACK_BYTES (512u << 10)
/* The library's memory for a block of the answer, besides the head. */
#define BLOCK_BYTES (16u << 10)

/* --- the thread ------------------------------------------------------------------------------- */

/* Whether the connection's asker has more than a quarter. Under the mutex. */
static bool has_many(struct sl_http *http, const struct sl_http_connection *connection)
{
	unsigned int count = 0;

	sl_list_foreach (link, &http->connections) {
		const struct sl_http_connection *other =
			SL_LIST_ENTRY(link, struct sl_http_connection, link);

		count += other->asker.key == connection->asker.key &&
			 other->asker.known == connection->asker.known;
	}
	return count > http->site->connections / 4;
}

static sl_ns life_of(
	struct sl_http *http, const struct sl_http_connection *connection, bool full)
{
	switch (connection->phase) {
	case SL_HTTP_READING: return full ? GIVE_WAY_LIFE : http->site->reading_life;
	case SL_HTTP_IDLE: return full ? GIVE_WAY_LIFE : SL_NS_NEVER;
	case SL_HTTP_ANSWERING:
		return full && has_many(http, connection) ? GIVE_WAY_ANSWER_LIFE
							  : ANSWERING_LIFE;
	/* The library closes streams that are not read. */
	case SL_HTTP_WATCHING:
	default: return SL_NS_NEVER;
	}
}

/* Closes connections that take too long; while the table is full, only the oldest answer, since its
 * asker may not have too many without it. The library sees the closed socket like any hang-up. */
static void show_out(struct sl_http *http, bool full)
{
	sl_ns now = sl_clock_now();

	(void)pthread_mutex_lock(&http->mutex);
	sl_list_foreach (link, &http->connections) {
		struct sl_http_connection *connection =
			SL_LIST_ENTRY(link, struct sl_http_connection, link);
		sl_ns life = life_of(http, connection, full);

		if (life == SL_NS_NEVER || connection->since + life > now)
			continue;
		(void)shutdown(connection->fd, SHUT_RDWR);
		if (full && connection->phase == SL_HTTP_ANSWERING)
			break;
	}
	(void)pthread_mutex_unlock(&http->mutex);
}

static unsigned int count_of(struct sl_http *http)
{
	unsigned int count;

	(void)pthread_mutex_lock(&http->mutex);
	count = http->connection_count;
	(void)pthread_mutex_unlock(&http->mutex);
	return count;
}

static void let_in(struct sl_http *http)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	int fd = accept4(http->listener.fd, (struct sockaddr *)&address, &size,
		SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		/* Counted now, not when its thread begins. */
		(void)pthread_mutex_lock(&http->mutex);
		http->connection_count++;
		(void)pthread_mutex_unlock(&http->mutex);
		/* Takes the socket, even if it fails. */
		if (MHD_add_connection(http->server, fd, (struct sockaddr *)&address,
			    size) == MHD_YES)
			return;
		(void)pthread_mutex_lock(&http->mutex);
		http->connection_count--;
		(void)pthread_mutex_unlock(&http->mutex);
		sl_debug("%s: a connection could not be taken", http->site->name);
		return;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return;
	/* Pauses: the waiting connection stays in the queue and would wake this thread again at
	 * once. */
	sl_warning(
		"%s: no descriptors or memory are left; trying again", http->site->name);
	sl_clock_sleep(LOOK_ROUND_MS * SL_MS);
}

/* Runs until http->doorman is told. */
static void *keep_door(void *context)
{
	struct sl_http *http = context;

	while (true) {
		unsigned int count = count_of(http);
		bool full = count >= http->site->connections;
		struct pollfd fds[2] = {{.fd = http->doorman.event_fd, .events = POLLIN},
			{.fd = full ? -1 : http->listener.fd, .events = POLLIN}};

		(void)poll(fds, 2,
			!count ? -1
			: full ? LOOK_ROUND_MS / 5
			       : LOOK_ROUND_MS);
		if (fds[0].revents)
			return NULL;
		if (fds[1].revents)
			let_in(http);
		show_out(http, full);
	}
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

struct sl_http_connection *sl_http_connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void begin_connection(
	struct sl_http *http, struct MHD_Connection *mhd, void **socket_context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sl_http_connection *connection = calloc(1, sizeof(*connection));

	*socket_context = connection;
	if (!connection)
		return;
	sl_list_init(&connection->link);
	if (!info)
		return;
	connection->fd = info->connect_fd;
	connection->since = sl_clock_now();
	connection->key = key_of(mhd);
	if (http->site->greet)
		connection->guest = http->site->greet(http, connection->fd);
	connection->asker.key = connection->key;
	(void)pthread_mutex_lock(&http->mutex);
	sl_list_push_tail(&http->connections, &connection->link);
	(void)pthread_mutex_unlock(&http->mutex);
}

static void on_connection(void *context, struct MHD_Connection *mhd,
	void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct sl_http *http = context;
	struct sl_http_connection *connection = *socket_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(http, mhd, socket_context);
		return;
	}
	(void)pthread_mutex_lock(&http->mutex);
	if (connection)
		sl_list_unlink(&connection->link);
	http->connection_count--;
	(void)pthread_mutex_unlock(&http->mutex);
	if (connection && http->site->see_off)
		http->site->see_off(connection->guest);
	free(connection);
	*socket_context = NULL;
}

void sl_http_set_asker(
	struct sl_http *http, struct MHD_Connection *mhd, struct sl_page_asker asker)
{
	struct sl_http_connection *connection = sl_http_connection_of(mhd);

	if (!connection)
		return;
	(void)pthread_mutex_lock(&http->mutex);
	connection->asker = asker;
	(void)pthread_mutex_unlock(&http->mutex);
}

void sl_http_set_phase(
	struct sl_http *http, struct MHD_Connection *mhd, enum sl_http_phase phase)
{
	struct sl_http_connection *connection = sl_http_connection_of(mhd);

	if (!connection)
		return;
	(void)pthread_mutex_lock(&http->mutex);
	if (connection->phase != phase) {
		connection->phase = phase;
		connection->since = sl_clock_now();
		/* The list is sorted by `since`. */
		sl_list_unlink(&connection->link);
		sl_list_push_tail(&http->connections, &connection->link);
	}
	(void)pthread_mutex_unlock(&http->mutex);
}

/* --- start and end ---------------------------------------------------------------------------- */

static void log_debug(void *name, const char *format, va_list args)
{
	char text[256];

	if (!sl_log_on(SL_LOG_DEBUG))
		return;
	(void)vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	sl_debug("%s: %s", (const char *)name, text);
}

static struct MHD_Daemon *start_server(
	struct sl_http *http, const char *certificate, const char *key)
{
	const struct sl_http_site *site = http->site;
	bool has_tls = certificate || site->on_certificate;
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD |
			     MHD_USE_THREAD_PER_CONNECTION | MHD_USE_NO_LISTEN_SOCKET |
			     MHD_USE_ITC | MHD_USE_POLL | MHD_USE_ERROR_LOG |
			     (has_tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{has_tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, 0,
			(void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
		{MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, site->on_certificate},
		{certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0,
			(void *)(uintptr_t)certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
		{MHD_OPTION_END, 0, NULL}};
	sigset_t all, before;
	struct MHD_Daemon *server;

	/* The loop handles signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	server = MHD_start_daemon(flags, 0, NULL, NULL, site->on_request, http->context,
		MHD_OPTION_EXTERNAL_LOGGER, log_debug, (void *)(uintptr_t)site->name,
		MHD_OPTION_CONNECTION_LIMIT, site->connections + 1,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, site->head_max_bytes + BLOCK_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, site->still_s,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_NOTIFY_COMPLETED, site->on_completed, http->context,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return server;
}

int sl_http_listen(struct sl_http *http, const struct sl_http_site *site,
	const struct sl_config_address *address, unsigned int mode, uint32_t group,
	struct sl_error *err)
{
	int r;

	http->site = site;
	sl_list_init(&http->connections);
	(void)pthread_mutex_init(&http->mutex, NULL);
	r = sl_http_socket_open(&http->listener, site->name, address, err);
	return r < 0 ? r : sl_http_socket_permit(&http->listener, mode, group, err);
}

int sl_http_start(
	struct sl_http *http, void *context, const char *certificate, const char *key)
{
	int r;

	http->context = context;
	http->server = start_server(http, certificate, key);
	if (!http->server)
		return sl_err_origin(-ENOTSUP);
	r = sl_worker_start(&http->doorman, keep_door, http);
	if (r < 0)
		MHD_stop_daemon(sl_steal(&http->server));
	return r;
}

void sl_http_close(struct sl_http *http)
{
	if (http->server) {
		sl_worker_tell(&http->doorman);
		sl_worker_end(&http->doorman);
		MHD_stop_daemon(sl_steal(&http->server));
	}
	sl_http_socket_close(&http->listener);
	(void)pthread_mutex_destroy(&http->mutex);
}
