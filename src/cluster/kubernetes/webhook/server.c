/*
 * server - libmicrohttpd with GnuTLS inside sd-event
 *
 * The library waits in an epoll descriptor that the loop watches. A request whose answer comes
 * later is suspended. The certificate is looked up at each handshake, so a new one needs no
 * restart; GnuTLS frees the copy that it gets.
 */
#include "cluster/kubernetes/webhook/server.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"

/* The head of a request, and a block of the answer. */
#define POOL_BYTES (32u << 10)
/* Bytes of a body before more memory is allocated. */
#define FIRST_ROOM  (16u << 10)
#define ACCURACY_US 1000
/* Runs of the library in a row, before the rest of the loop gets its turn: each takes 16 KiB of a
 * body, and the timer costs 1 ms. */
#define RUNS_MAX 64

struct sl_webhook_server {
	sd_event *loop;
	sl_webhook_fn fn;
	void *context;
	int fd;
	struct MHD_Daemon *http; /* NULL: no certificates yet */
	char *certificate, *key;
	sd_event_source *io, *again, *life;
	struct sl_link connections; /* struct connection */
	unsigned int connection_count;
	size_t bodies_bytes;
};

struct connection {
	struct sl_link link;
	int fd;
	sl_ns since; /* time of its connection, of the begin of its request, or of the
			   * answer */
	bool has_request; /* a request is being received or answered */
	bool is_busy;     /* its request waits for the webhook's answer */
};

/* A request from its head to its end. */
struct sl_webhook_call {
	struct sl_webhook_server *server;
	struct MHD_Connection *http;
	char *body;
	size_t size, room;
	unsigned int refused; /* status if it is no review; 0: it may be one */
	bool is_cut;          /* the rest of the body was dropped */
	bool has_begun;       /* the function has been called */
	bool is_suspended;
	bool is_answered;
	unsigned int status;
	char *text;
};

/* --- certificates -------------------------------------------------------------------------- */

static int on_certificate(gnutls_session_t session,
	const struct gnutls_cert_retr_st *info, gnutls_pcert_st **pcert,
	unsigned int *pcert_length, gnutls_ocsp_data_st **ocsp, unsigned int *ocsp_length,
	gnutls_privkey_t *privkey, unsigned int *flags);

/* GnuTLS passes no context to its callback; a process has one server. */
static struct sl_webhook_server *serving;

/* A copy of the certificate, for GnuTLS to free. 0 or its code. */
static int load(const struct sl_webhook_server *server, gnutls_pcert_st **pcert,
	gnutls_privkey_t *privkey)
{
	gnutls_datum_t certificate = {(unsigned char *)server->certificate,
		(unsigned int)strlen(server->certificate)};
	gnutls_datum_t key = {
		(unsigned char *)server->key, (unsigned int)strlen(server->key)};
	gnutls_pcert_st *made = gnutls_calloc(1, sizeof(*made));
	int r = made ? gnutls_pcert_import_x509_raw(
			       made, &certificate, GNUTLS_X509_FMT_PEM, 0)
		     : GNUTLS_E_MEMORY_ERROR;

	*privkey = NULL;
	if (r < 0) {
		gnutls_free(made);
		return r;
	}
	r = gnutls_privkey_init(privkey);
	if (r == 0)
		r = gnutls_privkey_import_x509_raw(
			*privkey, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (r == 0) {
		*pcert = made;
		return 0;
	}
	if (*privkey)
		gnutls_privkey_deinit(*privkey);
	gnutls_pcert_deinit(made);
	gnutls_free(made);
	return r;
}

static int on_certificate(gnutls_session_t session,
	const struct gnutls_cert_retr_st *info, gnutls_pcert_st **pcert,
	unsigned int *pcert_length, gnutls_ocsp_data_st **ocsp, unsigned int *ocsp_length,
	gnutls_privkey_t *privkey, unsigned int *flags)
{
	if (!serving || load(serving, pcert, privkey) < 0)
		return -1;
	*pcert_length = 1;
	*ocsp = NULL;
	*ocsp_length = 0;
	*flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return 0;
}

/* --- turns --------------------------------------------------------------------------------- */

static void set_timer(sd_event_source *timer, sl_ns span)
{
	(void)sd_event_source_set_time_relative(timer, span / SL_US);
	(void)sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Runs the library, and asks to be called again for the rest. */
static void run(struct sl_webhook_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;
	unsigned int runs = 0;
	bool waits;

	if (!server->http)
		return;
	do {
		(void)MHD_run(server->http);
		waits = MHD_get_timeout(server->http, &wait_ms) == MHD_YES;
	} while (waits && wait_ms == 0 && ++runs < RUNS_MAX);
	if (waits)
		set_timer(server->again, wait_ms * SL_MS);
	else
		(void)sd_event_source_set_enabled(server->again, SD_EVENT_OFF);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	run(context);
	return 0;
}

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	run(context);
	return 0;
}

/* An idle connection keeps its slot until others need it: its client may send a request at any
 * moment, and would be cut off just then. */
static bool is_too_slow(const struct connection *connection, bool is_full, sl_ns now)
{
	sl_ns life = is_full ? SL_WEBHOOK_GIVE_WAY : SL_WEBHOOK_LIFE;

	return !connection->is_busy && (connection->has_request || is_full) &&
	       connection->since + life <= now;
}

/* Ends connections that send too slowly or nothing. The library sees a hang-up. */
static int on_life(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_webhook_server *server = context;
	bool is_full = server->connection_count >= SL_WEBHOOK_CONNECTIONS;
	sl_ns now = sl_clock_now();

	sl_list_foreach (link, &server->connections) {
		struct connection *connection =
			SL_LIST_ENTRY(link, struct connection, link);

		if (is_too_slow(connection, is_full, now))
			(void)shutdown(connection->fd, SHUT_RDWR);
	}
	set_timer(server->life, SL_WEBHOOK_GIVE_WAY);
	run(server);
	return 0;
}

static struct connection *connection_of(struct MHD_Connection *http)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void note_request(struct MHD_Connection *http, bool has_request)
{
	struct connection *connection = connection_of(http);

	if (!connection)
		return;
	connection->has_request = has_request;
	connection->is_busy = false;
	connection->since = sl_clock_now();
}

static void on_notify(void *context, struct MHD_Connection *http, void **socket_context,
	enum MHD_ConnectionNotificationCode code)
{
	struct sl_webhook_server *server = context;
	struct connection *connection = *socket_context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (!connection)
			return;
		sl_list_unlink(&connection->link);
		server->connection_count--;
		free(connection);
		*socket_context = NULL;
		return;
	}
	info = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
	connection = calloc(1, sizeof(*connection));
	if (!connection || !info) {
		free(connection);
		return;
	}
	connection->fd = info->connect_fd;
	connection->since = sl_clock_now();
	sl_list_push_tail(&server->connections, &connection->link);
	server->connection_count++;
	*socket_context = connection;
}

/* --- requests ------------------------------------------------------------------------------ */

static enum MHD_Result reply(
	struct MHD_Connection *http, unsigned int status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type",
		status == MHD_HTTP_OK ? "application/json" : "text/plain");
	if (status != MHD_HTTP_OK)
		(void)MHD_add_response_header(response, "Connection", "close");
	r = MHD_queue_response(http, status, response);
	MHD_destroy_response(response);
	return r;
}

static const char *words_of(unsigned int status)
{
	return status == MHD_HTTP_NOT_FOUND ? "There is only /review and /healthz here.\n"
					    : "/review takes POST alone.\n";
}

static unsigned int check_head(const char *url, const char *method)
{
	if (strcmp(url, "/review") != 0)
		return MHD_HTTP_NOT_FOUND;
	if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	return 0;
}

static void drop_body(struct sl_webhook_call *call)
{
	call->server->bodies_bytes -= call->room;
	free(sl_steal(&call->body));
	call->size = call->room = 0;
}

/* Makes space for that many bytes in all. Every connection has the first FIRST_ROOM bytes. */
static bool make_room(struct sl_webhook_call *call, size_t bytes)
{
	struct sl_webhook_server *server = call->server;
	size_t room = sl_max_u64(call->room, FIRST_ROOM);
	char *body;

	while (room < bytes)
		room *= 2;
	room = sl_min_u64(room, SL_WEBHOOK_BODY_MAX_BYTES);
	if (room == call->room)
		return room >= bytes;
	if (room < bytes ||
		(room > FIRST_ROOM && server->bodies_bytes - call->room + room >
					      SL_WEBHOOK_BODIES_MAX_BYTES))
		return false;
	body = realloc(call->body, room + 1);
	if (!body)
		return false;
	server->bodies_bytes += room - call->room;
	call->body = body;
	call->room = room;
	return true;
}

/* Cuts the body to its beginning, which identifies the review. */
static void cut_body(struct sl_webhook_call *call)
{
	char *body = call->room > FIRST_ROOM ? realloc(call->body, FIRST_ROOM + 1) : NULL;

	call->is_cut = true;
	call->size = sl_min_u64(call->size, FIRST_ROOM);
	if (!body)
		return;
	call->server->bodies_bytes -= call->room - FIRST_ROOM;
	call->body = body;
	call->room = FIRST_ROOM;
}

/* A body that is too large is read to its end and dropped, since most clients ignore an earlier
 * answer. A client that sends without an end is cut off after its time. */
static void gather(struct sl_webhook_call *call, const char *data, size_t size)
{
	if (call->refused || call->is_cut)
		return;
	if (!make_room(call, call->size + size)) {
		cut_body(call);
		if (!make_room(call, FIRST_ROOM))
			return;
		size = sl_min_u64(size, FIRST_ROOM - call->size);
	}
	memcpy(call->body + call->size, data, size);
	call->size += size;
}

/* The body is complete: calls the function, whose answer comes now or later. */
static enum MHD_Result begin(struct sl_webhook_call *call)
{
	struct connection *connection = connection_of(call->http);

	call->has_begun = true;
	if (connection)
		connection->is_busy = true;
	if (call->body)
		call->body[call->size] = '\0';
	call->server->fn(call->server->context, call, call->body ? call->body : "",
		call->size, call->is_cut);
	if (call->is_answered)
		return reply(call->http, call->status, call->text ? call->text : "");
	call->is_suspended = true;
	MHD_suspend_connection(call->http);
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *http,
	const char *url, const char *method, const char *version, const char *data,
	size_t *size, void **state)
{
	struct sl_webhook_server *server = context;
	struct sl_webhook_call *call = *state;

	if (!call) {
		if (strcmp(url, "/healthz") == 0)
			return reply(http, MHD_HTTP_OK, "\"ok\"\n");
		*state = call = calloc(1, sizeof(*call));
		if (!call)
			return MHD_NO;
		call->server = server;
		call->http = http;
		call->refused = check_head(url, method);
		note_request(http, true);
		return MHD_YES;
	}
	if (*size) {
		gather(call, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (call->refused)
		return reply(http, call->refused, words_of(call->refused));
	if (call->is_answered)
		return reply(http, call->status, call->text ? call->text : "");
	return begin(call);
}

static void on_completed(void *context, struct MHD_Connection *http, void **state,
	enum MHD_RequestTerminationCode how)
{
	struct sl_webhook_call *call = *state;

	note_request(http, false);
	if (!call)
		return;
	drop_body(call);
	free(call->text);
	free(call);
	*state = NULL;
}

void sl_webhook_answer(struct sl_webhook_call *call, unsigned int status, char *text)
{
	struct sl_webhook_server *server = call->server;

	call->is_answered = true;
	call->status = text ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
	call->text = text;
	if (!call->is_suspended)
		return;
	call->is_suspended = false;
	MHD_resume_connection(call->http);
	set_timer(server->again, 0);
}

/* --- start and end ------------------------------------------------------------------------- */

/* "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT". */
static int look_up(const char *address, struct addrinfo **out)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	const char *colon = strrchr(address, ':');
	char host[64] = "";

	if (!colon)
		return getaddrinfo(NULL, address, &hints, out);
	if (address[0] == '[' && colon > address + 1 && colon[-1] == ']')
		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address - 2),
			address + 1);
	else
		(void)snprintf(
			host, sizeof(host), "%.*s", (int)(colon - address), address);
	return getaddrinfo(host, colon + 1, &hints, out);
}

static int listen_at(const char *address, struct sl_error *err)
{
	struct addrinfo *found = NULL;
	sl_cleanup(sl_closep) int fd = -1;
	int one = 1;

	if (look_up(address, &found) != 0) {
		sl_error_set(err,
			"--listen %.100s: write PORT, ADDRESS:PORT or [ADDRESS]:PORT",
			address);
		return sl_err_origin(-EINVAL);
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) < 0 ||
		listen(fd, SOMAXCONN) < 0) {
		int r = -errno;

		freeaddrinfo(found);
		sl_error_set(err,
			"cannot listen at %.100s: %s; choose another with "
			"--listen",
			address, strerror(-r));
		return sl_err_origin(r);
	}
	freeaddrinfo(found);
	return sl_steal_fd(&fd);
}

static void on_log(void *context, const char *format, va_list args)
{
	char text[256];

	(void)vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	sl_debug("http: %s", text);
}

static int start(struct sl_webhook_server *server)
{
	const union MHD_DaemonInfo *info;

	serving = server;
	server->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TLS |
						MHD_ALLOW_SUSPEND_RESUME |
						MHD_USE_ERROR_LOG,
		0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log,
		NULL, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)server->fd,
		MHD_OPTION_HTTPS_CERT_CALLBACK2, on_certificate,
		MHD_OPTION_HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2",
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)SL_WEBHOOK_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_notify, server,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_END);
	info = server->http ? MHD_get_daemon_info(server->http, MHD_DAEMON_INFO_EPOLL_FD)
			    : NULL;
	if (!info || info->epoll_fd < 0 ||
		sd_event_add_io(server->loop, &server->io, info->epoll_fd, EPOLLIN, on_io,
			server) < 0)
		return sl_err_origin(-ENOTSUP);
	set_timer(server->life, SL_WEBHOOK_GIVE_WAY);
	run(server);
	return 0;
}

int sl_webhook_server_set_certs(struct sl_webhook_server *server,
	const struct sl_webhook_certs *certs, struct sl_error *err)
{
	struct sl_webhook_server next = {
		.certificate = strdup(certs->certificate), .key = strdup(certs->key)};
	gnutls_pcert_st *pcert = NULL;
	gnutls_privkey_t privkey = NULL;
	int r = next.certificate && next.key ? load(&next, &pcert, &privkey)
					     : GNUTLS_E_MEMORY_ERROR;

	if (r < 0) {
		free(next.certificate);
		free(next.key);
		sl_error_set(
			err, "the certificate cannot be served: %s", gnutls_strerror(r));
		return sl_err_origin(-EINVAL);
	}
	gnutls_privkey_deinit(privkey);
	gnutls_pcert_deinit(pcert);
	gnutls_free(pcert);
	free(server->certificate);
	free(server->key);
	server->certificate = next.certificate;
	server->key = next.key;
	if (server->http)
		return 0;
	r = start(server);
	if (r < 0)
		sl_error_set(err, "libmicrohttpd does not start: is it built with TLS?");
	return r;
}

int sl_webhook_server_new(struct sl_webhook_server **out, sd_event *loop,
	const char *address, sl_webhook_fn fn, void *context, struct sl_error *err)
{
	struct sl_webhook_server *server = calloc(1, sizeof(*server));
	int r;

	*out = NULL;
	if (!server)
		return sl_err_origin(-ENOMEM);
	server->loop = sd_event_ref(loop);
	server->fn = fn;
	server->context = context;
	sl_list_init(&server->connections);
	server->fd = r = listen_at(address, err);
	if (r >= 0)
		r = sd_event_add_time_relative(loop, &server->again, CLOCK_MONOTONIC, 0,
			ACCURACY_US, on_again, server);
	if (r >= 0)
		r = sd_event_source_set_enabled(server->again, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_time_relative(loop, &server->life, CLOCK_MONOTONIC, 0,
			ACCURACY_US, on_life, server);
	if (r >= 0)
		r = sd_event_source_set_enabled(server->life, SD_EVENT_OFF);
	if (r < 0)
		server = sl_webhook_server_free(server);
	*out = server;
	return r < 0 ? r : 0;
}

uint16_t sl_webhook_server_port(const struct sl_webhook_server *server)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	(void)getsockname(server->fd, (struct sockaddr *)&address, &size);
	return ntohs(address.ss_family == AF_INET6
			     ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
			     : ((struct sockaddr_in *)(void *)&address)->sin_port);
}

struct sl_webhook_server *sl_webhook_server_free(struct sl_webhook_server *server)
{
	if (!server)
		return NULL;
	server->io = sd_event_source_disable_unref(server->io);
	server->again = sd_event_source_disable_unref(server->again);
	server->life = sd_event_source_disable_unref(server->life);
	/* Also closes the socket that it was given. */
	if (server->http)
		MHD_stop_daemon(server->http);
	else if (server->fd >= 0)
		(void)close(server->fd);
	if (serving == server)
		serving = NULL;
	free(server->certificate);
	if (server->key)
		explicit_bzero(server->key, strlen(server->key));
	free(server->key);
	sd_event_unref(server->loop);
	free(server);
	return NULL;
}
