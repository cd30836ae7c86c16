/*
 * stream - an answer of many rows, made as the peer reads them
 *
 * One at a time per peer; while it is going out nothing more is read from that peer. Each kind
 * has a function that makes the next row. What a stream needs beyond its cursor is one block of
 * memory, bounded by the kind, freed with it.
 */
#ifndef SL_DAEMON_CORE_STREAM_H
#define SL_DAEMON_CORE_STREAM_H

#include "wire/wire.h"

/* Rows made for one peer before others get their turn. */
#define SL_STREAM_TURN 32

enum sl_stream_kind {
	SL_STREAM_LIST = 0, /* rows.c */
	SL_STREAM_EVENTS,   /* events.c */
	SL_STREAM_WHY,      /* why.c */
	SL_STREAM_DUMP,     /* dump.c */
	SL_STREAMS
};

enum sl_stream_outcome {
	SL_STREAM_ROW = 0, /* *msg is the next one */
	SL_STREAM_END,
	SL_STREAM_AGAIN, /* nothing yet, and enough done for this turn */
	SL_STREAM_WAIT,  /* nothing until something happens */
};

#endif
