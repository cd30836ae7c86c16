/*
 * scrape - a request asks the loop for a copy of the numbers, and waits for it
 *
 * The loop makes a copy when an eventfd says that a request has none fresh enough. Requests share
 * a copy, which lives until the last of their answers is sent.
 */
#include "daemon/web/scrape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/link/share.h"
#include "daemon/web/guard.h"
#include "daemon/web/http.h"
#include "daemon/web/metrics.h"

/* Lower than everything else: a demand for memory must not wait for metrics. */
#define PRIORITY    20
#define BLOCK_BYTES 8192

struct sl_scrape {
	struct sl_daemon *daemon;
	struct sl_http http;
	int event_fd; /* a request waits for a copy */
	sd_event_source *io;
	sl_ns start_unix_ns;
	/* One thread renders at a time, so that many readers use one core. */
	pthread_mutex_t rendering;
	pthread_mutex_t mutex;
	pthread_cond_t copied;
	/* under the mutex */
	bool ending;
	uint64_t scrapes, copies;
	struct sl_metrics_books *books; /* the latest copy, or NULL */
};

/* An answer being sent; block has text that was rendered and not sent yet. */
struct answer {
	struct sl_scrape *scrape;
	struct sl_metrics_books *books;
	struct sl_metrics_cursor cursor;
	size_t begin, end;
	char block[BLOCK_BYTES];
};

/* --- the copy --------------------------------------------------------------------------------- */

/* Under the mutex. */
static bool is_stale(const struct sl_scrape *scrape)
{
	return !scrape->books ||
	       sl_clock_now() - scrape->books->taken_at > SL_SCRAPE_FRESH_NS;
}

/* The loop's; under the mutex, which no thread holds for long. */
static void copy(struct sl_scrape *scrape)
{
	struct sl_metrics_books *books = sl_metrics_take(scrape->daemon);

	(void)sl_metrics_put(scrape->books);
	scrape->books = books;
	scrape->copies++;
	(void)pthread_cond_broadcast(&scrape->copied);
	if (!books)
		return;
	books->start_unix_ns = scrape->start_unix_ns;
	books->longest_turn = sl_share_longest_ns(scrape->daemon, SL_SHARE_METRICS);
	books->scrapes = scrape->scrapes;
}

static int on_asked(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct sl_scrape *scrape = context;
	struct sl_share_turn turn = sl_share_begin();
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		sl_debug("metrics: %s", strerror(errno));
	(void)pthread_mutex_lock(&scrape->mutex);
	if (is_stale(scrape))
		copy(scrape);
	(void)pthread_mutex_unlock(&scrape->mutex);
	sl_share_note(scrape->daemon, SL_SHARE_METRICS, &turn);
	return 0;
}

/* For a thread: a reference to a fresh copy. NULL: no memory, or the daemon is ending. */
static struct sl_metrics_books *fresh_books(struct sl_scrape *scrape)
{
	struct sl_metrics_books *books;
	uint64_t one = 1, before;

	(void)pthread_mutex_lock(&scrape->mutex);
	scrape->scrapes++;
	before = scrape->copies;
	if (is_stale(scrape)) {
		if (write(scrape->event_fd, &one, sizeof(one)) < 0)
			sl_debug("metrics: %s", strerror(errno));
		while (!scrape->ending && scrape->copies == before)
			(void)pthread_cond_wait(&scrape->copied, &scrape->mutex);
	}
	books = scrape->ending ? NULL : sl_metrics_ref(scrape->books);
	(void)pthread_mutex_unlock(&scrape->mutex);
	return books;
}

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned int status,
	struct MHD_Response *response, const char *type)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", type);
	(void)MHD_add_response_header(response, "Cache-Control", "no-store");
	(void)MHD_add_response_header(response, "Connection", "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, "Allow", "GET, HEAD");
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result refuse(
	struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return reply(connection, status,
		MHD_create_response_from_buffer(
			strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT),
		"text/plain");
}

static ssize_t read_answer(void *context, uint64_t position, char *buf, size_t room)
{
	struct answer *answer = context;
	size_t bytes;

	if (answer->begin == answer->end) {
		answer->begin = 0;
		(void)pthread_mutex_lock(&answer->scrape->rendering);
		answer->end = sl_metrics_render(answer->books, &answer->cursor,
			answer->block, sizeof(answer->block));
		(void)pthread_mutex_unlock(&answer->scrape->rendering);
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

static enum MHD_Result send_metrics(
	struct sl_scrape *scrape, struct MHD_Connection *connection)
{
	struct sl_metrics_books *books = fresh_books(scrape);
	struct answer *answer = books ? calloc(1, sizeof(*answer)) : NULL;
	struct MHD_Response *response;

	if (!answer) {
		(void)sl_metrics_put(books);
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"sluiced is ending, or out of memory.\n");
	}
	answer->scrape = scrape;
	answer->books = books;
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_answer, answer, free_answer);
	if (!response)
		free_answer(answer);
	return reply(connection, MHD_HTTP_OK, response,
		"text/plain; version=0.0.4; charset=utf-8");
}

static enum MHD_Result check_host(
	void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
	bool *is_local = context;

	if (strcasecmp(key, "Host") == 0 && (!value || !sl_page_is_local_host(value)))
		*is_local = false;
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
	const char *url, const char *method, const char *version, const char *upload_data,
	size_t *upload_data_size, void **request_context)
{
	struct sl_scrape *scrape = context;
	const struct sl_config_address *address = &scrape->http.listener.address;
	bool is_local = true;

	if (address->kind != SL_CONFIG_SOCKET && sl_http_socket_is_loopback(address))
		(void)MHD_get_connection_values(
			connection, MHD_HEADER_KIND, check_host, &is_local);
	if (!is_local)
		return refuse(connection, MHD_HTTP_FORBIDDEN,
			"Ask for localhost or the loopback address.\n");
	if (strcmp(url, "/metrics") != 0)
		return refuse(
			connection, MHD_HTTP_NOT_FOUND, "There is only /metrics here.\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"Only GET and HEAD are understood.\n");
	return send_metrics(scrape, connection);
}

/* --- start and end ---------------------------------------------------------------------------- */

/* The daemon's start by the real-time clock; computed once, so that it never changes. */
static sl_ns start_by_wall_clock(const struct sl_daemon *daemon)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SL_S + (uint64_t)now.tv_nsec -
	       (sl_clock_now() - daemon->started);
}

static int start(struct sl_scrape *scrape, struct sl_error *err)
{
	/* A connection stays in its first phase, so this is the life of all of it. */
	static const struct sl_http_site site = {
		.name = "metrics",
		.connections = 16,
		.head_max_bytes = 8u << 10,
		.reading_life = 10 * SL_S,
		.on_request = on_request,
	};
	const struct sl_config *config = &scrape->daemon->config;
	int r = sl_http_listen(&scrape->http, &site, &config->metrics,
		config->socket_mode, config->socket_group, err);

	if (r < 0)
		return r;
	scrape->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = scrape->event_fd < 0 ? -errno
				 : sd_event_add_io(scrape->daemon->loop, &scrape->io,
					   scrape->event_fd, EPOLLIN, on_asked, scrape);
	if (r >= 0)
		r = sd_event_source_set_priority(scrape->io, PRIORITY);
	if (r < 0)
		return sl_err_origin(r);
	return sl_http_start(&scrape->http, scrape, NULL, NULL);
}

int sl_scrape_open(struct sl_daemon *daemon, struct sl_error *err)
{
	struct sl_scrape *scrape;
	int r;

	if (daemon->config.metrics.kind == SL_CONFIG_NOWHERE)
		return 0;
	daemon->scrape = scrape = calloc(1, sizeof(*scrape));
	if (!scrape)
		return sl_err_origin(-ENOMEM);
	scrape->daemon = daemon;
	scrape->http.listener.fd = scrape->event_fd = -1;
	scrape->start_unix_ns = start_by_wall_clock(daemon);
	(void)pthread_mutex_init(&scrape->rendering, NULL);
	(void)pthread_mutex_init(&scrape->mutex, NULL);
	(void)pthread_cond_init(&scrape->copied, NULL);
	r = start(scrape, err);
	if (r == 0)
		sl_info("metrics on %s", daemon->config.metrics.text);
	else if (!err->text[0])
		sl_error_set(err, "metrics: they cannot be served: %s", strerror(-r));
	return r;
}

int sl_scrape_permit(const struct sl_daemon *daemon, struct sl_error *err)
{
	if (!daemon->scrape)
		return 0;
	return sl_http_socket_permit(&daemon->scrape->http.listener,
		daemon->config.socket_mode, daemon->config.socket_group, err);
}

void sl_scrape_close(struct sl_daemon *daemon)
{
	struct sl_scrape *scrape = sl_steal(&daemon->scrape);

	if (!scrape)
		return;
	(void)pthread_mutex_lock(&scrape->mutex);
	scrape->ending = true;
	(void)pthread_cond_broadcast(&scrape->copied);
	(void)pthread_mutex_unlock(&scrape->mutex);
	sl_http_close(&scrape->http);
	scrape->io = sd_event_source_disable_unref(scrape->io);
	sl_closep(&scrape->event_fd);
	(void)sl_metrics_put(scrape->books);
	(void)pthread_cond_destroy(&scrape->copied);
	(void)pthread_mutex_destroy(&scrape->mutex);
	(void)pthread_mutex_destroy(&scrape->rendering);
	free(scrape);
}
