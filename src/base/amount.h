/*
 * amount - "0.25", "10GiB", "512Mi", "10G": how users write GPU memory, and how Sluice prints it
 *
 * An amount is a fraction of what a GPU can share (0 < f <= 1, kept in millionths) or bytes.
 * Suffixes are those of Kubernetes: Ki Mi Gi Ti Pi Ei (powers of 1024) and k M G T P E (powers of
 * 1000). A B may follow ("GiB", "GB"), or stand alone ("4096B"). Plain digits of 1048576 and more
 * are bytes. Pure; no locks; locale-independent.
 */
#ifndef SL_BASE_AMOUNT_H
#define SL_BASE_AMOUNT_H

#include "base/clock.h"
#include "base/error.h"

enum sl_amount_kind {
	SL_AMOUNT_UNSET = 0,
	SL_AMOUNT_FRACTION, /* value in millionths, 1..1,000,000 */
	SL_AMOUNT_BYTES,
	SL_AMOUNT_KINDS
};

#define SL_AMOUNT_WHOLE 1000000u

struct sl_amount {
	uint32_t kind; /* enum sl_amount_kind */
	uint32_t pad;
	uint64_t value;
};

enum { SL_AMOUNT_OK = 0, SL_AMOUNT_BAD /* err says why and what to write instead */ };

/* Parses text into *out. "1" and "1.0" are the whole GPU, "0" is zero bytes. Whole numbers from 2
 * to 1048575 are refused with "did you mean 8GiB?", and so are fractions above 1. Fractions are
 * rounded down to millionths; one that would become 0 is refused. */
SL_MUST_CHECK int sl_amount_parse(
	const char *text, struct sl_amount *out, struct sl_error *err);

/* Does a request fit under a limit, as far as that is known before a GPU is? Outcomes as
 * sl_amount_parse. request_is_limit: a request alone is also the limit. */
SL_MUST_CHECK int sl_amount_check(const struct sl_amount *request,
	const struct sl_amount *limit, bool request_is_limit, struct sl_error *err);

/* Bytes of amount on a GPU with shareable_bytes: fractions round down to 2 MiB, bytes are returned
 * unchanged, UNSET gives unset_bytes. */
uint64_t sl_amount_resolve(
	const struct sl_amount *amount, uint64_t shareable_bytes, uint64_t unset_bytes);

/* "0.25" or "10GiB", which parses to the same amount; returns buf. 32 bytes always suffice. */
const char *sl_amount_format(const struct sl_amount *amount, char *buf, size_t size);

/* For sentences: "3.25 GiB", "1.5 GiB", "17 B", at most two decimals; returns buf. 32 bytes always
 * suffice. */
const char *sl_bytes_format(uint64_t bytes, char *buf, size_t size);
/* For tables, and legal as an amount: "1.5GiB", three digits. Returns buf; 16 bytes suffice. */
const char *sl_bytes_short(uint64_t bytes, char *buf, size_t size);

/* A measured time: "850ms", "1.5s", "59m", "26h", "7d"; returns buf. 32 bytes always suffice. */
const char *sl_span_format(sl_ns span, char *buf, size_t size);
/* A setting, exactly: "250ms", "90s"; sl_duration_parse() takes it. As sl_span_format(). */
const char *sl_duration_format(sl_ns span, char *buf, size_t size);

/* "250ms", "2s", "10m", "1h", "90" (seconds) into *out. Outcomes as sl_amount_parse. */
SL_MUST_CHECK int sl_duration_parse(const char *text, sl_ns *out, struct sl_error *err);

#endif
