/*
 * live - server-sent events, for as long as the client reads
 *
 * The library asks for text in the connection's thread, which waits for news of the snapshot
 * thread. A message is a head, shared text, and a tail, so only the library's buffer gets a copy. A
 * slow client holds one text and skips states; its stream ends if it reads nothing at all.
 */
#include "daemon/web/internal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/web/page.h"

/* A comment keeps proxies from closing the connection, and tells the client that the server is
 * there. */
#define COMMENT_EACH (5 * SL_S)
#define BLOCK_BYTES  (16u << 10)
/* How often to check whether the client is still there: without writing, nothing else would
 * tell. */
#define GLANCE_EACH (1 * SL_S)

struct piece {
	const char *text;
	size_t size;
};

struct stream {
	struct sl_page *page;
	int fd; /* the connection's; it outlives the stream */
	struct sl_page_watch watch;
	struct sl_page_asker asker;
	char token[SL_PAGE_TOKEN_ROOM]; /* "": none */
	struct sl_page_text *text;
	char *me;
	struct piece pieces[4];
	size_t piece, offset; /* the next byte to send */
	size_t count;
	bool ended;
};

static void add(struct stream *stream, const char *text, size_t size)
{
	stream->pieces[stream->count++] = (struct piece){text, size};
}

/* Whether the client hung up, or closed its sending side: then it needs no stream either. */
static bool is_gone(const struct stream *stream)
{
	struct pollfd at = {.fd = stream->fd, .events = POLLRDHUP};

	return poll(&at, 1, 0) > 0;
}

static enum sl_page_news wait_for_news(struct stream *stream)
{
	enum sl_page_news news = SL_PAGE_NEWS_NONE;

	for (sl_ns waited = 0; news == SL_PAGE_NEWS_NONE && waited < COMMENT_EACH;
		waited += GLANCE_EACH) {
		news = sl_page_snapshot_next(
			stream->page->look, &stream->watch, GLANCE_EACH, &stream->text);
		if (news == SL_PAGE_NEWS_NONE && is_gone(stream))
			news = SL_PAGE_NEWS_END;
	}
	return news;
}

/* Whether a token that was valid when the stream began has ended. */
static bool has_lost_token(const struct stream *stream)
{
	struct sl_user *who;

	if (!stream->token[0])
		return false;
	who = sl_page_tokens_find(stream->page->tokens, stream->token, sl_clock_now());
	(void)sl_user_free(who);
	return !who;
}

/* Waits for the next message, and lays it out in pieces. */
static void fill(struct stream *stream)
{
	enum sl_page_news news;

	stream->text = sl_page_text_unref(stream->text);
	stream->piece = stream->offset = stream->count = 0;
	news = wait_for_news(stream);
	if (has_lost_token(stream))
		news = SL_PAGE_NEWS_END;
	switch (news) {
	case SL_PAGE_NEWS_STATE:
		add(stream, "event: state\ndata: ", strlen("event: state\ndata: "));
		add(stream, stream->me, strlen(stream->me));
		add(stream, stream->text->text, stream->text->size);
		add(stream, "\n\n", 2);
		break;
	case SL_PAGE_NEWS_EVENT:
		add(stream, "event: event\ndata: ", strlen("event: event\ndata: "));
		add(stream, stream->text->text, stream->text->size);
		add(stream, "\n\n", 2);
		break;
	case SL_PAGE_NEWS_NONE: add(stream, ": still here\n\n", 14); break;
	case SL_PAGE_NEWS_END:
	default: stream->ended = true; break;
	}
}

static ssize_t read_stream(void *context, uint64_t position, char *buf, size_t room)
{
	struct stream *stream = context;
	size_t used = 0;

	if (stream->piece == stream->count)
		fill(stream);
	if (stream->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	while (used < room && stream->piece < stream->count) {
		const struct piece *piece = &stream->pieces[stream->piece];
		size_t bytes = sl_min_u64(room - used, piece->size - stream->offset);

		memcpy(buf + used, piece->text + stream->offset, bytes);
		used += bytes;
		stream->offset += bytes;
		if (stream->offset == piece->size) {
			stream->piece++;
			stream->offset = 0;
		}
	}
	return (ssize_t)used;
}

static void end_stream(void *context)
{
	struct stream *stream = context;

	sl_page_snapshot_unwatch(stream->page->look, &stream->watch);
	sl_page_share_give(stream->page->share, stream->asker, SL_PAGE_STREAMS, 1);
	(void)sl_page_text_unref(stream->text);
	memset(stream->token, 0, sizeof(stream->token));
	free(stream->me);
	free(stream);
}

static struct stream *begin_stream(struct sl_page_request *request)
{
	const struct sl_http_connection *connection =
		sl_http_connection_of(request->connection);
	struct stream *stream = calloc(1, sizeof(*stream));
	char *me = sl_page_me(request);

	if (!stream || !me) {
		free(stream);
		free(me);
		sl_page_share_give(
			request->page->share, request->asker, SL_PAGE_STREAMS, 1);
		return NULL;
	}
	stream->page = request->page;
	stream->asker = request->asker;
	sl_wire_str(stream->token, sizeof(stream->token), sl_page_token(request));
	stream->fd = connection ? connection->fd : -1;
	stream->me = me;
	sl_page_snapshot_watch(request->page->look, &stream->watch);
	return stream;
}

enum MHD_Result sl_page_live(struct sl_page_request *request)
{
	static const char *const refusals[] = {
		[SL_PAGE_OWN_FULL] =
			"you have the page open in as many places as one may; close some",
		[SL_PAGE_UNKNOWN_FULL] =
			"the page is open in as many places as it may without a token; "
			"`sluice page` prints an address with one",
		[SL_PAGE_ALL_FULL] =
			"the page is open in as many places as it may; close some"};
	struct MHD_Response *response;
	struct stream *stream;
	enum MHD_Result r;
	int taken;

	taken = sl_page_share_take(
		request->page->share, request->asker, SL_PAGE_STREAMS, 1);
	if (taken != SL_PAGE_TAKEN)
		return sl_page_refuse(request, 503, "%s", refusals[taken]);
	stream = begin_stream(request);
	if (!stream)
		return MHD_NO;
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, stream, end_stream);
	if (!response) {
		end_stream(stream);
		return MHD_NO;
	}
	/* A proxy must not buffer events. */
	(void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
	r = sl_page_send(request, 200, response, "text/event-stream");
	sl_http_set_phase(&request->page->http, request->connection, SL_HTTP_WATCHING);
	return r;
}
