/*
 * server - libmicrohttpd, certificates of gnutls, and streams that a test fills
 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/list.h"

#define PEM_MAX 8192

struct stream {
	struct sl_link link; /* server.streams */
	struct MHD_Connection *connection;
	char *text;
	size_t used, sent;
	bool is_over, is_broken, is_suspended;
};

struct request {
	char *body;
	size_t used;
};

static struct {
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock;
	serve_fn serve;
	char folder[64], url[64];
	char *log;
	struct sl_link streams; /* also those of which the client's end is gone */
	struct stream *stream;  /* the latest */
	struct MHD_Connection *hung[64];
	unsigned int hung_count;
	char key[PEM_MAX], certificate[PEM_MAX], client[PEM_MAX];
	char *paths[32];
	unsigned int path_count;
} server;

char *text(const char *format, ...)
{
	char *out = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&out, format, args) >= 0);
	va_end(args);
	return out;
}

void server_lock(void)
{
	(void)pthread_mutex_lock(&server.lock);
}

void server_unlock(void)
{
	(void)pthread_mutex_unlock(&server.lock);
}

/* --- certificates -------------------------------------------------------------------------- */

static void make_pair(const char *name, char certificate[PEM_MAX], char key[PEM_MAX])
{
	const unsigned char address[4] = {127, 0, 0, 1};
	gnutls_x509_privkey_t private_key;
	gnutls_x509_crt_t crt;
	size_t size = PEM_MAX - 1;

	assert_int_equal(gnutls_x509_privkey_init(&private_key), 0);
	assert_int_equal(gnutls_x509_privkey_generate(private_key, GNUTLS_PK_ECDSA,
				 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		0);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, name, strlen(name)), 0);
	assert_int_equal(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME,
				 0, name, (unsigned int)strlen(name)),
		0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600), 0);
	assert_int_equal(gnutls_x509_crt_set_basic_constraints(crt, 1, -1), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, private_key), 0);
	assert_int_equal(gnutls_x509_crt_set_subject_alt_name(
				 crt, GNUTLS_SAN_IPADDRESS, address, 4, 0),
		0);
	assert_int_equal(
		gnutls_x509_crt_sign2(crt, crt, private_key, GNUTLS_DIG_SHA256, 0), 0);
	assert_int_equal(
		gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, certificate, &size), 0);
	certificate[size] = '\0';
	size = PEM_MAX - 1;
	assert_int_equal(
		gnutls_x509_privkey_export(private_key, GNUTLS_X509_FMT_PEM, key, &size),
		0);
	key[size] = '\0';
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(private_key);
}

const char *server_path(const char *name)
{
	assert_true(server.path_count < 32);
	server.paths[server.path_count] = text("%s/%s", server.folder, name);
	return server.paths[server.path_count++];
}

const char *server_file(const char *name, const char *content)
{
	const char *path = server_path(name);

	assert_int_equal(sl_file_replace(path, content, strlen(content), false), 0);
	return path;
}

static void make_certificates(void)
{
	char certificate[PEM_MAX], key[PEM_MAX];

	make_pair("api", server.certificate, server.key);
	(void)server_file("server.pem", server.certificate);
	make_pair("stranger", certificate, key);
	(void)server_file("stranger.pem", certificate);
	make_pair("client", server.client, key);
	(void)server_file("client.pem", server.client);
	(void)server_file("client.key", key);
}

/* --- streams ------------------------------------------------------------------------------- */

static void stream_wake(struct stream *stream)
{
	if (stream->is_suspended)
		MHD_resume_connection(stream->connection);
	stream->is_suspended = false;
}

void stream_push(const char *more)
{
	struct stream *stream = server.stream;
	size_t size = strlen(more);

	if (!stream)
		return;
	stream->text = realloc(stream->text, stream->used + size + 1);
	assert_non_null(stream->text);
	memcpy(stream->text + stream->used, more, size + 1);
	stream->used += size;
	stream_wake(stream);
}

static void end(struct stream *stream, bool is_broken)
{
	stream->is_over = true;
	stream->is_broken = is_broken;
	stream_wake(stream);
}

void stream_end(bool is_broken)
{
	if (server.stream)
		end(server.stream, is_broken);
	server.stream = NULL;
}

static ssize_t stream_read(void *context, uint64_t at, char *buf, size_t max)
{
	struct stream *stream = context;
	size_t n;

	server_lock();
	n = stream->used - stream->sent < max ? stream->used - stream->sent : max;
	memcpy(buf, stream->text + stream->sent, n);
	stream->sent += n;
	if (n == 0 && !stream->is_over && !stream->is_suspended) {
		stream->is_suspended = true;
		MHD_suspend_connection(stream->connection);
	}
	server_unlock();
	if (n == 0 && stream->is_over)
		return stream->is_broken ? MHD_CONTENT_READER_END_WITH_ERROR
					 : MHD_CONTENT_READER_END_OF_STREAM;
	return (ssize_t)n;
}

static void stream_free(void *context)
{
	struct stream *stream = context;

	server_lock();
	if (server.stream == stream)
		server.stream = NULL;
	sl_list_unlink(&stream->link);
	server_unlock();
	free(stream->text);
	free(stream);
}

/* --- requests ------------------------------------------------------------------------------ */

const char *query(struct exchange *exchange, const char *key)
{
	return MHD_lookup_connection_value(
		exchange->connection, MHD_GET_ARGUMENT_KIND, key);
}

static bool has_certificate(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned int count = 0;

	return info && gnutls_certificate_get_peers(info->tls_session, &count) && count;
}

static struct MHD_Response *response_of(struct exchange *exchange)
{
	struct stream *stream;

	if (exchange->how == WHOLE)
		return MHD_create_response_from_buffer(
			strlen(exchange->text), exchange->text, MHD_RESPMEM_MUST_FREE);
	stream = calloc(1, sizeof(*stream));
	assert_non_null(stream);
	stream->connection = exchange->connection;
	stream->text = exchange->text;
	stream->used = strlen(exchange->text);
	stream->is_over = stream->is_broken = exchange->how == BREAK;
	sl_list_push_tail(&server.streams, &stream->link);
	if (exchange->how == STREAM)
		server.stream = stream;
	return MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, 65536, stream_read, stream, stream_free);
}

static enum MHD_Result answer(
	struct MHD_Connection *connection, struct exchange *exchange)
{
	struct MHD_Response *response;
	enum MHD_Result r;
	char number[16];

	if (exchange->how == HANG) {
		free(exchange->text);
		server.hung[server.hung_count++ % 64] = connection;
		MHD_suspend_connection(connection);
		return MHD_YES;
	}
	if (!exchange->text)
		exchange->text = text("{}");
	response = response_of(exchange);
	if (exchange->retry_after_s) {
		(void)snprintf(number, sizeof(number), "%u", exchange->retry_after_s);
		(void)MHD_add_response_header(response, "Retry-After", number);
	}
	r = MHD_queue_response(connection, exchange->status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
	const char *path, const char *method, const char *version, const char *data,
	size_t *size, void **state)
{
	struct request *request = *state;
	struct exchange exchange = {
		.method = method, .path = path, .status = 200, .connection = connection};
	enum MHD_Result r;
	char *log;

	if (!request) {
		*state = calloc(1, sizeof(*request));
		return *state ? MHD_YES : MHD_NO;
	}
	if (*size) {
		request->body = realloc(request->body, request->used + *size + 1);
		memcpy(request->body + request->used, data, *size);
		request->used += *size;
		request->body[request->used] = '\0';
		*size = 0;
		return MHD_YES;
	}
	exchange.body = request->body ? request->body : "";
	exchange.authorization =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
	exchange.content_type =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type");
	exchange.has_certificate = has_certificate(connection);
	server_lock();
	log = text("%s%s %s\n", server.log, method, path);
	free(server.log);
	server.log = log;
	server.serve(&exchange);
	r = answer(connection, &exchange);
	server_unlock();
	return r;
}

static void on_end(void *context, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code)
{
	struct request *request = *state;

	if (request)
		free(request->body);
	free(request);
	*state = NULL;
}

/* --- start and stop ------------------------------------------------------------------------ */

void server_start(serve_fn serve)
{
	const union MHD_DaemonInfo *info;

	(void)pthread_mutex_init(&server.lock, NULL);
	server.serve = serve;
	server.log = text("%s", "");
	server.stream = NULL;
	sl_list_init(&server.streams);
	server.hung_count = 0;
	(void)snprintf(server.folder, sizeof(server.folder), "/tmp/kube-unit.XXXXXX");
	assert_non_null(mkdtemp(server.folder));
	make_certificates();
	server.daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS |
						 MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME,
		0, NULL, NULL, on_request, NULL, MHD_OPTION_HTTPS_MEM_KEY, server.key,
		MHD_OPTION_HTTPS_MEM_CERT, server.certificate, MHD_OPTION_HTTPS_MEM_TRUST,
		server.client, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
	assert_non_null(server.daemon);
	info = MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT);
	(void)snprintf(
		server.url, sizeof(server.url), "https://127.0.0.1:%u", info->port);
}

void server_stop(void)
{
	char command[128];

	server_lock();
	sl_list_foreach (link, &server.streams)
		end(SL_LIST_ENTRY(link, struct stream, link), true);
	for (unsigned int i = 0; i < server.hung_count && i < 64; i++)
		MHD_resume_connection(server.hung[i]);
	server_unlock();
	MHD_stop_daemon(server.daemon);
	server.daemon = NULL;
	(void)snprintf(command, sizeof(command), "rm -rf %s", server.folder);
	assert_int_equal(system(command), 0);
	for (unsigned int i = 0; i < server.path_count; i++)
		free(server.paths[i]);
	server.path_count = 0;
	free(server.log);
	server.log = NULL;
	(void)pthread_mutex_destroy(&server.lock);
}

char *server_log(void)
{
	char *copy;

	server_lock();
	copy = text("%s", server.log);
	server_unlock();
	return copy;
}

unsigned int server_count(const char *method, const char *path)
{
	char *log = server_log(), *line = text("%s %s\n", method, path);
	unsigned int count = 0;

	for (const char *at = log; (at = strstr(at, line)); at++)
		if (at == log || at[-1] == '\n')
			count++;
	free(log);
	free(line);
	return count;
}

const char *server_url(void)
{
	return server.url;
}

struct sl_kube_config server_config(void)
{
	return (struct sl_kube_config){.server = text("%s", server.url),
		.path = {[SL_KUBE_CA] = text("%s", server_path("server.pem"))},
		.token = text("secret"),
		.is_inside = true};
}

static bool is_set(void *context)
{
	return *(const bool *)context;
}

bool run_while(
	sd_event *event, bool (*is_done)(void *context), void *context, sl_ns limit)
{
	sl_ns end = sl_clock_now() + limit;

	while (!is_done(context) && sl_clock_now() < end)
		assert_true(sd_event_run(event, 20000) >= 0);
	return is_done(context);
}

bool run_until(sd_event *event, const bool *done, sl_ns limit)
{
	return run_while(event, is_set, (void *)done, limit);
}
