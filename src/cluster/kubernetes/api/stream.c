/*
 * stream - see the header
 *
 * A client that went away is noticed at the next message, or when another client comes.
 */
#include "cluster/kubernetes/api/stream.h"

#include <stdlib.h>
#include <string.h>

static void send_all(struct sl_stream *stream)
{
	size_t kept = 0;

	for (size_t i = 0; i < stream->count; i++) {
		if (sl_grpc_send(stream->calls[i], stream->latest, stream->size))
			stream->calls[kept++] = stream->calls[i];
		else
			sl_grpc_end(stream->calls[i]);
	}
	stream->count = kept;
}

void sl_stream_add(struct sl_stream *stream, struct sl_grpc_call *call)
{
	if (stream->count == SL_STREAM_CALLS && stream->latest)
		send_all(stream);
	if (stream->count == SL_STREAM_CALLS) {
		sl_grpc_refuse(call, SL_GRPC_RESOURCE_EXHAUSTED,
			"there are too many that watch this");
		return;
	}
	stream->calls[stream->count++] = call;
	if (stream->latest && !sl_grpc_send(call, stream->latest, stream->size)) {
		stream->count--;
		sl_grpc_end(call);
	}
}

void sl_stream_tell(struct sl_stream *stream, const void *message, size_t size)
{
	uint8_t *latest = malloc(size + 1);

	/* The previous message stays; the next one follows soon. */
	if (!latest)
		return;
	if (size)
		memcpy(latest, message, size);
	free(stream->latest);
	stream->latest = latest;
	stream->size = size;
	send_all(stream);
}

void sl_stream_fini(struct sl_stream *stream)
{
	while (stream->count > 0)
		sl_grpc_end(stream->calls[--stream->count]);
	free(sl_steal(&stream->latest));
}
