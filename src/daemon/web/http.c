/*
 * http - libmicrohttpd within the loop
 *
 * The library has its own epoll descriptor, which is a source of the loop. It also wants a call
 * when nothing is readable but work is left (an answer half sent to a fast client): a timer gives
 * it that. Between two such calls the loop serves whatever is more urgent. This file accepts
 * connections itself and hands their sockets to the library. So it controls a full table or a lack
 * of descriptors, and knows each connection's age.
 */
#include "daemon/web/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/link/share.h"
#include "daemon/state/timer.h"
#include "daemon/web/http_socket.h"
#include "daemon/web/metrics.h"

/* Lower than everything else: a demand for memory must not wait for metrics. */
#define PRIORITY 20
/* Text per turn and connection: some sixty lines. */
#define BLOCK_BYTES 8192
/* Most connections accepted per turn. */
#define ACCEPT_BUDGET 8
/* A connection's memory in the library: the request, and a block of the answer. */
#define POOL_BYTES (SL_HTTP_REQUEST_BYTES + 2 * BLOCK_BYTES)

struct connection {
	struct sl_link link; /* sl_http.connections, oldest first */
	int fd;
	sl_ns since;
};

struct sl_http {
	struct sl_daemon *daemon;
	struct sl_http_socket listener;
	struct MHD_Daemon *server;
	sd_event_source *listen_io, *server_io, *again_timer, *life_timer;
	struct sl_link connections;
	unsigned int connection_count;
	struct sl_metrics_books *books; /* the latest copy, or NULL */
	sl_ns start_unix_ns;
	bool copies_ahead; /* the next turn only copies the numbers, if the copy is stale */
	sl_ns starved_until; /* out of descriptors until then; 0: not */
	uint64_t scrapes;
};

/* An answer being sent; block has text that was rendered and not sent yet. */
struct answer {
	struct sl_http *http;
	struct sl_metrics_books *books;
	struct sl_metrics_cursor cursor;
	size_t begin, end;
	char block[BLOCK_BYTES];
};

/* --- which hosts -------------------------------------------------------------------------- */

/* "", or ":" and digits. */
static bool is_port(const char *text)
{
	if (text[0] == '\0')
		return true;
	return text[0] == ':' && text[1] &&
	       text[1 + strspn(text + 1, "0123456789")] == '\0';
}

bool sl_http_is_local_host(const char *host)
{
	char name[16] = "";
	struct in_addr address;
	size_t length;

	if (strncmp(host, "[::1]", 5) == 0)
		return is_port(host + 5);
	length = strcspn(host, ":");
	if (length >= sizeof(name) || !is_port(host + length))
		return false;
	memcpy(name, host, length);
	if (strcasecmp(name, "localhost") == 0)
		return true;
	return inet_pton(AF_INET, name, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == 127;
}

static enum MHD_Result check_host(
	void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
	bool *is_local = context;

	if (strcasecmp(key, "Host") == 0 && (!value || !sl_http_is_local_host(value)))
		*is_local = false;
	return MHD_YES;
}

/* --- answers ------------------------------------------------------------------------------ */

static enum MHD_Result reply(
	struct MHD_Connection *connection, unsigned int status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", "text/plain");
	(void)MHD_add_response_header(response, "Connection", "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, "Allow", "GET, HEAD");
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static bool is_stale(const struct sl_http *http)
{
	return !http->books || sl_clock_now() - http->books->taken_at > SL_HTTP_FRESH_NS;
}

/* The copy of the numbers for an answer that begins now. */
static struct sl_metrics_books *fresh_books(struct sl_http *http)
{
	struct sl_metrics_books *books = http->books;

	if (is_stale(http)) {
		http->books = sl_metrics_put(books);
		books = sl_metrics_take(http->daemon);
		if (!books)
			return NULL;
		books->start_unix_ns = http->start_unix_ns;
		books->longest_turn = sl_share_longest_ns(http->daemon, SL_SHARE_METRICS);
		books->scrapes = http->scrapes;
		http->books = books;
	}
	books->users++;
	return books;
}

static ssize_t read_answer(void *context, uint64_t position, char *buf, size_t room)
{
	struct answer *answer = context;
	size_t bytes;

	if (!answer->books) {
		answer->http->scrapes++;
		answer->books = fresh_books(answer->http);
		if (!answer->books)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (answer->begin == answer->end) {
		answer->begin = 0;
		answer->end = sl_metrics_render(answer->books, &answer->cursor,
			answer->block, sizeof(answer->block));
		if (!answer->end)
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	bytes = (size_t)sl_min_u64(room, answer->end - answer->begin);
	memcpy(buf, answer->block + answer->begin, bytes);
	answer->begin += bytes;
	return (ssize_t)bytes;
}

static void free_answer(void *context)
{
	struct answer *answer = context;

	(void)sl_metrics_put(answer->books);
	free(answer);
}

static enum MHD_Result reply_metrics(
	struct sl_http *http, struct MHD_Connection *connection)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	struct MHD_Response *response = NULL;
	enum MHD_Result r;

	if (answer) {
		answer->http = http;
		response = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_answer, answer, free_answer);
	}
	if (!response) {
		free(answer);
		return MHD_NO;
	}
	(void)MHD_add_response_header(
		response, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	(void)MHD_add_response_header(response, "Connection", "close");
	r = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload_data,
	size_t *upload_data_size, void **request_context)
{
	struct sl_http *http = context;
	bool is_local = true;

	if (http->listener.address.kind != SL_CONFIG_SOCKET &&
		sl_http_socket_is_loopback(&http->listener.address))
		(void)MHD_get_connection_values(
			connection, MHD_HEADER_KIND, check_host, &is_local);
	if (!is_local)
		return reply(connection, MHD_HTTP_FORBIDDEN,
			"Ask for localhost or the loopback address.\n");
	if (strcmp(url, "/metrics") != 0)
		return reply(
			connection, MHD_HTTP_NOT_FOUND, "There is only /metrics here.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"Only GET and HEAD are understood.\n");
	return reply_metrics(http, connection);
}

/* --- turns -------------------------------------------------------------------------------- */

/* Lets the library do what is ready, and sets the timer for what it left. */
static void run(struct sl_http *http)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;

	(void)MHD_run(http->server);
	sl_timer_set(http->again_timer, MHD_get_timeout(http->server, &wait_ms) == MHD_YES
						? sl_clock_now() + wait_ms * SL_MS
						: SL_NS_NEVER);
}

/* How long a connection may last: less if others wait for its place. */
static sl_ns life_of(const struct sl_http *http)
{
	return http->connection_count < SL_HTTP_CONNECTIONS ? SL_HTTP_LIFE_NS
							    : SL_HTTP_GIVE_WAY_NS;
}

/* Sets when to check connections next, and whether to accept more. */
static void arm(struct sl_http *http)
{
	bool has_room =
		http->connection_count < SL_HTTP_CONNECTIONS && !http->starved_until;
	sl_ns at = http->starved_until ? http->starved_until : SL_NS_NEVER;

	if (!sl_list_is_empty(&http->connections)) {
		struct connection *oldest =
			SL_LIST_ENTRY(http->connections.next, struct connection, link);

		at = sl_min_u64(at, oldest->since + life_of(http));
	}
	sl_timer_set(http->life_timer, at);
	(void)sd_event_source_set_enabled(
		http->listen_io, has_room ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Begin of a turn, and the CPU time of this thread until then. */
struct turn {
	sl_ns begin, on_core;
	long taken_away; /* involuntary context switches */
};

static sl_ns time_on_core(void)
{
	struct timespec time = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * SL_S + (uint64_t)time.tv_nsec;
}

static struct turn begin_turn(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_THREAD, &usage);
	return (struct turn){sl_clock_now(), time_on_core(), usage.ru_nivcsw};
}

/* Elapsed time, because nothing here may block. If the kernel ran other threads meanwhile, only CPU
 * time counts: that delay is not caused by metrics. */
static sl_ns turn_took(const struct turn *turn)
{
	struct turn now = begin_turn();

	return now.taken_away == turn->taken_away ? now.begin - turn->begin
						  : now.on_core - turn->on_core;
}

static void count_turn(struct sl_http *http, const struct turn *turn)
{
	sl_share_note_ns(http->daemon, SL_SHARE_METRICS, turn_took(turn));
}

static void end_turn(struct sl_http *http, const struct turn *turn)
{
	run(http);
	arm(http);
	count_turn(http, turn);
}

/*
 * After a connection was accepted, one turn copies the numbers and does nothing else. Accepting,
 * copying the numbers of a thousand workloads and sending the first block in one turn would hold
 * the loop too long. A request that comes after SL_HTTP_FRESH_NS needs another copy.
 */
static void copy_ahead(struct sl_http *http)
{
	struct turn turn = begin_turn();

	http->copies_ahead = false;
	(void)sl_metrics_put(fresh_books(http));
	sl_timer_set(http->again_timer, turn.begin);
	count_turn(http, &turn);
}

static int on_server(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_http *http = ((struct sl_daemon *)context)->http;
	struct turn turn = begin_turn();

	if (http->copies_ahead && is_stale(http)) {
		copy_ahead(http);
		return 0;
	}
	http->copies_ahead = false;
	end_turn(http, &turn);
	return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	return on_server(source, -1, 0, context);
}

/*
 * Closes connections that lasted too long, the oldest first; if others wait, only one at a time.
 * The library sees the closed socket like any hang-up. While all connections are young, others wait
 * in the kernel's queue.
 */
static int on_life(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_http *http = ((struct sl_daemon *)context)->http;
	struct turn turn = begin_turn();
	sl_ns now = turn.begin, life = life_of(http);

	if (http->starved_until <= now)
		http->starved_until = 0;
	sl_list_foreach (link, &http->connections) {
		struct connection *connection =
			SL_LIST_ENTRY(link, struct connection, link);

		if (connection->since + life > now)
			break;
		(void)shutdown(connection->fd, SHUT_RDWR);
		if (life == SL_HTTP_GIVE_WAY_NS)
			break;
	}
	end_turn(http, &turn);
	return 0;
}

/* --- connections -------------------------------------------------------------------------- */

static void on_notify(void *context, struct MHD_Connection *mhd_connection,
	void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct sl_http *http = context;
	struct connection *connection = *socket_context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (!connection)
			return;
		sl_list_unlink(&connection->link);
		http->connection_count--;
		free(connection);
		*socket_context = NULL;
		return;
	}
	info = MHD_get_connection_info(mhd_connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	connection = calloc(1, sizeof(*connection));
	if (!connection || !info) {
		free(connection);
		return;
	}
	connection->fd = info->connect_fd;
	connection->since = sl_clock_now();
	sl_list_push_tail(&http->connections, &connection->link);
	http->connection_count++;
	*socket_context = connection;
}

/* False: no connection waits, or none can be accepted now. */
static bool accept_one(struct sl_http *http)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	int fd = accept4(http->listener.fd, (struct sockaddr *)&address, &size,
		SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		/* Takes the socket, even if it fails. */
		if (MHD_add_connection(http->server, fd, (struct sockaddr *)&address,
			    size) != MHD_YES)
			sl_debug("metrics: a connection could not be taken");
		return true;
	}
	if (errno == EMFILE || errno == ENFILE) {
		/* Pauses: the waiting connection stays in the queue and would wake the loop again
		 * at once. */
		http->starved_until = sl_clock_now() + SL_HTTP_GIVE_WAY_NS;
		sl_warning("metrics: no descriptors are left; trying again in a second");
		return false;
	}
	return errno == ECONNABORTED || errno == EINTR;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_http *http = ((struct sl_daemon *)context)->http;
	struct turn turn = begin_turn();
	bool more = true;

	for (int i = 0;
		more && i < ACCEPT_BUDGET && http->connection_count < SL_HTTP_CONNECTIONS;
		i++)
		more = accept_one(http);
	/* Requests are served in later turns. */
	http->copies_ahead = true;
	sl_timer_set(http->again_timer, turn.begin);
	arm(http);
	count_turn(http, &turn);
	return 0;
}

/* --- start and end ------------------------------------------------------------------------ */

static struct MHD_Daemon *start_server(struct sl_http *http)
{
	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL,
		NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, sl_http_log,
		(void *)(uintptr_t) "metrics", MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)SL_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)POOL_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_notify, http,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

static int add_sources(struct sl_http *http)
{
	struct sl_daemon *daemon = http->daemon;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->server, MHD_DAEMON_INFO_EPOLL_FD);
	int r;

	if (!info || info->epoll_fd < 0)
		return sl_err_origin(-ENOTSUP);
	r = sd_event_add_io(daemon->loop, &http->server_io, info->epoll_fd, EPOLLIN,
		on_server, daemon);
	if (r >= 0)
		r = sd_event_add_io(daemon->loop, &http->listen_io, http->listener.fd,
			EPOLLIN, on_connection, daemon);
	if (r >= 0)
		r = sl_timer_new(daemon, PRIORITY, on_again, &http->again_timer);
	if (r >= 0)
		r = sl_timer_new(daemon, PRIORITY, on_life, &http->life_timer);
	if (r < 0)
		return sl_err_origin(r);
	(void)sd_event_source_set_priority(http->server_io, PRIORITY);
	(void)sd_event_source_set_priority(http->listen_io, PRIORITY);
	return 0;
}

/* The daemon's start by the real-time clock; computed once, so that it never changes. */
static sl_ns start_by_wall_clock(const struct sl_daemon *daemon)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SL_S + (uint64_t)now.tv_nsec -
	       (sl_clock_now() - daemon->started);
}

int sl_http_permit(const struct sl_daemon *daemon, struct sl_error *err)
{
	if (!daemon->http)
		return 0;
	return sl_http_socket_permit(&daemon->http->listener, daemon->config.socket_mode,
		daemon->config.socket_group, err);
}

int sl_http_open(struct sl_daemon *daemon, struct sl_error *err)
{
	struct sl_http *http;
	int r;

	if (daemon->config.metrics.kind == SL_CONFIG_NOWHERE)
		return 0;
	http = calloc(1, sizeof(*http));
	if (!http)
		return sl_err_origin(-ENOMEM);
	daemon->http = http;
	http->daemon = daemon;
	http->start_unix_ns = start_by_wall_clock(daemon);
	sl_list_init(&http->connections);
	r = sl_http_socket_open(&http->listener, "metrics", &daemon->config.metrics, err);
	if (r == 0)
		r = sl_http_permit(daemon, err);
	if (r < 0)
		return r;
	http->server = start_server(http);
	r = http->server ? add_sources(http) : sl_err_origin(-ENOTSUP);
	if (r < 0) {
		sl_error_set(
			err, "metrics: libmicrohttpd does not start: %s", strerror(-r));
		return r;
	}
	sl_info("metrics on %s", daemon->config.metrics.text);
	return 0;
}

void sl_http_close(struct sl_daemon *daemon)
{
	struct sl_http *http = sl_steal(&daemon->http);
	sd_event_source **sources[4];

	if (!http)
		return;
	sources[0] = &http->listen_io;
	sources[1] = &http->server_io;
	sources[2] = &http->again_timer;
	sources[3] = &http->life_timer;
	for (size_t i = 0; i < SL_ARRAY_LEN(sources); i++)
		*sources[i] = sd_event_source_disable_unref(*sources[i]);
	if (http->server)
		MHD_stop_daemon(http->server);
	sl_http_socket_close(&http->listener);
	(void)sl_metrics_put(http->books);
	free(http);
}
