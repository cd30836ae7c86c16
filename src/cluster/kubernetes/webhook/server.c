/*
 * server - reviews come in by the HTTP server's threads, and are answered in the event loop
 *
 * A thread hands its request to the loop by a list and an eventfd, and waits for the answer. The
 * certificate is looked up at each handshake, so a new one needs no restart; GnuTLS frees the copy
 * that it gets.
 */
#include "cluster/kubernetes/webhook/server.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/web/http.h"

/* Bytes of a body before more memory is allocated. */
#define FIRST_ROOM (16u << 10)

struct sl_webhook_server {
	sl_webhook_fn fn;
	void *context;
	struct sl_http http;
	int event_fd; /* calls wait for the loop */
	sd_event_source *io;
	pthread_mutex_t mutex;
	pthread_cond_t answered;
	/* under the mutex */
	bool ending;
	struct sl_link waiting;  /* calls that the loop has not taken yet */
	char *certificate, *key; /* NULL: nothing is served yet */
	size_t bodies_bytes;
};

/* A request from its head to its end. Its thread owns it, and the loop while it waits. */
struct sl_webhook_call {
	struct sl_link link;
	struct sl_webhook_server *server;
	char *body;
	size_t size, room;
	unsigned int refused; /* status if it is no review; 0: it may be one */
	bool is_health;
	bool is_cut;      /* the rest of the body was dropped */
	bool is_answered; /* under the mutex */
	unsigned int status;
	char *text;
};

/* --- certificates -------------------------------------------------------------------------- */

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
	int r;

	(void)pthread_mutex_lock(&serving->mutex);
	r = load(serving, pcert, privkey);
	(void)pthread_mutex_unlock(&serving->mutex);
	if (r < 0)
		return -1;
	*pcert_length = 1;
	*ocsp = NULL;
	*ocsp_length = 0;
	*flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return 0;
}

/* --- requests ------------------------------------------------------------------------------ */

static enum MHD_Result reply(
	struct MHD_Connection *connection, unsigned int status, const char *text)
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
	r = MHD_queue_response(connection, status, response);
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

/* Counts further bytes of bodies. False: there is no room for them. */
static bool count(struct sl_webhook_server *server, size_t before, size_t room)
{
	bool fits;

	(void)pthread_mutex_lock(&server->mutex);
	fits = room <= FIRST_ROOM ||
	       server->bodies_bytes - before + room <= SL_WEBHOOK_BODIES_MAX_BYTES;
	if (fits)
		server->bodies_bytes += room - before;
	(void)pthread_mutex_unlock(&server->mutex);
	return fits;
}

/* Makes space for that many bytes in all. Every connection has the first FIRST_ROOM bytes. */
static bool make_room(struct sl_webhook_call *call, size_t bytes)
{
	size_t room = sl_max_u64(call->room, FIRST_ROOM);
	char *body;

	while (room < bytes)
		room *= 2;
	room = sl_min_u64(room, SL_WEBHOOK_BODY_MAX_BYTES);
	if (room == call->room)
		return room >= bytes;
	if (room < bytes || !count(call->server, call->room, room))
		return false;
	body = realloc(call->body, room + 1);
	if (!body) {
		(void)count(call->server, room, call->room);
		return false;
	}
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
	(void)count(call->server, call->room, FIRST_ROOM);
	call->body = body;
	call->room = FIRST_ROOM;
}

/* A body that is too large is read to its end and dropped, since most clients ignore an earlier
 * answer. A client whose body does not end is cut off after SL_WEBHOOK_LIFE. */
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

static void wake(struct sl_webhook_server *server)
{
	uint64_t one = 1;

	if (write(server->event_fd, &one, sizeof(one)) < 0)
		sl_debug("http: the loop could not be woken: %s", strerror(errno));
}

/* The request is complete: hands it to the loop and waits for the answer. */
static enum MHD_Result ask_loop(
	struct sl_webhook_call *call, struct MHD_Connection *connection)
{
	struct sl_webhook_server *server = call->server;

	if (call->body)
		call->body[call->size] = '\0';
	sl_http_set_phase(&server->http, connection, SL_HTTP_WATCHING);
	(void)pthread_mutex_lock(&server->mutex);
	sl_list_push_tail(&server->waiting, &call->link);
	wake(server);
	while (!call->is_answered && !(server->ending && !sl_list_is_empty(&call->link)))
		(void)pthread_cond_wait(&server->answered, &server->mutex);
	sl_list_unlink(&call->link);
	(void)pthread_mutex_unlock(&server->mutex);
	sl_http_set_phase(&server->http, connection, SL_HTTP_ANSWERING);
	return call->is_answered
		       ? reply(connection, call->status, call->text ? call->text : "")
		       : MHD_NO;
}

static struct sl_webhook_call *take_call(struct sl_webhook_server *server)
{
	struct sl_webhook_call *call = NULL;

	(void)pthread_mutex_lock(&server->mutex);
	if (!sl_list_is_empty(&server->waiting)) {
		call = SL_LIST_ENTRY(server->waiting.next, struct sl_webhook_call, link);
		sl_list_unlink(&call->link);
	}
	(void)pthread_mutex_unlock(&server->mutex);
	return call;
}

static int on_waiting(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_webhook_server *server = context;
	struct sl_webhook_call *call;
	uint64_t calls;

	if (read(fd, &calls, sizeof(calls)) < 0)
		sl_debug("http: %s", strerror(errno));
	while ((call = take_call(server))) {
		if (call->is_health)
			sl_webhook_answer(call, MHD_HTTP_OK, strdup("\"ok\"\n"));
		else
			server->fn(server->context, call, call->body ? call->body : "",
				call->size, call->is_cut);
	}
	return 0;
}

void sl_webhook_answer(struct sl_webhook_call *call, unsigned int status, char *text)
{
	struct sl_webhook_server *server = call->server;

	(void)pthread_mutex_lock(&server->mutex);
	call->is_answered = true;
	call->status = text ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
	call->text = text;
	(void)pthread_cond_broadcast(&server->answered);
	(void)pthread_mutex_unlock(&server->mutex);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *data,
	size_t *size, void **state)
{
	struct sl_webhook_server *server = context;
	struct sl_webhook_call *call = *state;

	if (!call) {
		*state = call = calloc(1, sizeof(*call));
		if (!call)
			return MHD_NO;
		call->server = server;
		sl_list_init(&call->link);
		call->is_health = strcmp(url, "/healthz") == 0;
		call->refused = call->is_health ? 0 : check_head(url, method);
		sl_http_set_phase(&server->http, connection, SL_HTTP_READING);
		return MHD_YES;
	}
	if (*size) {
		gather(call, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (call->refused)
		return reply(connection, call->refused, words_of(call->refused));
	return ask_loop(call, connection);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode how)
{
	struct sl_webhook_server *server = context;
	struct sl_webhook_call *call = *state;

	sl_http_set_phase(&server->http, connection, SL_HTTP_IDLE);
	if (!call)
		return;
	(void)count(server, call->room, 0);
	free(call->body);
	free(call->text);
	free(call);
	*state = NULL;
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

static int listen_at(
	struct sl_webhook_server *server, const char *text, struct sl_error *err)
{
	static const struct sl_http_site site = {
		.name = "--listen",
		.connections = SL_WEBHOOK_CONNECTIONS,
		.head_max_bytes = 16u << 10,
		.reading_life = SL_WEBHOOK_LIFE,
		.on_certificate = on_certificate,
		.on_request = on_request,
		.on_completed = on_completed,
	};
	struct sl_config_address address = {.kind = SL_CONFIG_IPV4};
	struct addrinfo *found = NULL;

	if (look_up(text, &found) != 0) {
		sl_error_set(err,
			"--listen %.100s: write PORT, ADDRESS:PORT or [ADDRESS]:PORT",
			text);
		return sl_err_origin(-EINVAL);
	}
	(void)snprintf(address.text, sizeof(address.text), "%s", text);
	if (found->ai_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)found->ai_addr;

		address.kind = SL_CONFIG_IPV6;
		address.port = ntohs(in->sin6_port);
		memcpy(address.host, &in->sin6_addr, sizeof(in->sin6_addr));
	} else {
		const struct sockaddr_in *in = (const void *)found->ai_addr;

		address.port = ntohs(in->sin_port);
		memcpy(address.host, &in->sin_addr, sizeof(in->sin_addr));
	}
	freeaddrinfo(found);
	return sl_http_listen(
		&server->http, &site, &address, 0, SL_CONFIG_GROUP_NONE, err);
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
	(void)pthread_mutex_lock(&server->mutex);
	free(server->certificate);
	free(server->key);
	server->certificate = next.certificate;
	server->key = next.key;
	(void)pthread_mutex_unlock(&server->mutex);
	if (server->http.server)
		return 0;
	serving = server;
	r = sl_http_start(&server->http, server, NULL, NULL);
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
	server->fn = fn;
	server->context = context;
	server->http.listener.fd = -1;
	sl_list_init(&server->waiting);
	(void)pthread_mutex_init(&server->mutex, NULL);
	(void)pthread_cond_init(&server->answered, NULL);
	server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = server->event_fd < 0 ? sl_err_origin(-errno)
				 : listen_at(server, address, err);
	if (r >= 0)
		r = sd_event_add_io(
			loop, &server->io, server->event_fd, EPOLLIN, on_waiting, server);
	if (r < 0)
		server = sl_webhook_server_free(server);
	*out = server;
	return r < 0 ? r : 0;
}

uint16_t sl_webhook_server_port(const struct sl_webhook_server *server)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	(void)getsockname(server->http.listener.fd, (struct sockaddr *)&address, &size);
	return ntohs(address.ss_family == AF_INET6
			     ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
			     : ((struct sockaddr_in *)(void *)&address)->sin_port);
}

struct sl_webhook_server *sl_webhook_server_free(struct sl_webhook_server *server)
{
	if (!server)
		return NULL;
	server->io = sd_event_source_disable_unref(server->io);
	(void)pthread_mutex_lock(&server->mutex);
	server->ending = true;
	(void)pthread_cond_broadcast(&server->answered);
	(void)pthread_mutex_unlock(&server->mutex);
	sl_http_close(&server->http);
	sl_closep(&server->event_fd);
	(void)pthread_cond_destroy(&server->answered);
	(void)pthread_mutex_destroy(&server->mutex);
	free(server->certificate);
	if (server->key)
		explicit_bzero(server->key, strlen(server->key));
	free(server->key);
	free(server);
	return NULL;
}
