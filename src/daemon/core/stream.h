/*
 * stream - an answer of many rows, made as the peer reads them
 *
 * A peer has one stream at a time, and nothing more is read from it until the stream has gone out.
 * Each kind has a function that makes the next row. Beyond its cursor a stream has one block of
 * memory, bounded by the kind and freed with the stream.
 */
#ifndef SL_DAEMON_CORE_STREAM_H
#define SL_DAEMON_CORE_STREAM_H

#include "wire/wire.h"

/* Rows made for one peer before other peers get their turn. */
#define SL_STREAM_TURN 32

enum sl_stream_kind {
	SL_STREAM_LIST = 0, /* rows.c */
	SL_STREAM_EVENTS,   /* events.c */
	SL_STREAM_WHY,      /* why.c */
	SL_STREAM_DUMP,     /* dump.c */
	SL_STREAMS
};

enum sl_stream_outcome {
	SL_STREAM_ROW = 0, /* *msg is the next row */
	SL_STREAM_END,
	SL_STREAM_AGAIN, /* no row yet, and this turn has done enough */
	SL_STREAM_WAIT,  /* no row until something happens */
};

#endif
