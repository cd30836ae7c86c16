/*
 * reason - why a decision fell as it did: one number, name, kind and sentence each (reason.def)
 *
 * Shared by verdicts, node and everything that shows a decision. No state. Thread-safe.
 */
#ifndef SL_POLICY_WORDS_REASON_H
#define SL_POLICY_WORDS_REASON_H

#include "base/clock.h"

enum sl_reason {
#define SL_REASON(NAME, kind, text)       SL_REASON_##NAME,
#define SL_NOTE(NAME, level, about, text) SL_REASON_##NAME,
#include "policy/words/reason.def"
#undef SL_REASON
#undef SL_NOTE
	SL_REASONS
};

enum sl_reason_kind {
	SL_REASON_KIND_DENY = 0,
	SL_REASON_KIND_EXCEPT,
	SL_REASON_KIND_REFUSE,
	SL_REASON_KIND_WAIT,
	SL_REASON_KIND_STOP,
	SL_REASON_KIND_NOTE,
	SL_REASON_KINDS
};

/* The state of a process. */
enum sl_client_condition {
	SL_CONDITION_RUNNING = 0,
	SL_CONDITION_STOPPED, /* state T: SIGSTOP, or the freezer */
	SL_CONDITION_TRACED,  /* state t: a debugger */
	SL_CONDITION_SILENT,  /* its agent does not answer */
	SL_CONDITIONS
};

const char *sl_reason_name(uint32_t reason); /* "OVER_LIMIT"; "?" if out of range */
uint32_t sl_reason_named(const char *name); /* SL_REASONS if there is none of this name */
enum sl_reason_kind sl_reason_kind(uint32_t reason);       /* NOTE if out of range */
const char *sl_reason_kind_name(enum sl_reason_kind kind); /* "deny" */
/* What sl_reason_kinds_read() takes: "deny, except, ...". */
extern const char sl_reason_kinds_known[];
/* "stop,deny" into bits of enum sl_reason_kind; NULL and "" give none. False: a word is no kind. */
SL_MUST_CHECK bool sl_reason_kinds_read(const char *text, uint32_t *out);
/* The template; "?" if out of range. For people use sl_reason_sentence. */
const char *sl_reason_text(uint32_t reason);

/* Of its line in the daemon's log: enum sl_log_level; a warning if out of range. */
int sl_reason_level(uint32_t reason);
/* A person changed a workload. */
bool sl_reason_is_change(uint32_t reason);
/* An event of this reason tells a workload's owner how the workload came to its present state;
 * events of its start and end do not. */
bool sl_reason_explains(uint32_t reason);

/* What fills a template's places. Names may be NULL or "". */
struct sl_reason_facts {
	uint32_t reason, gpu;
	const char *name, *other;
	uint64_t bytes, available_bytes, other_bytes;
	sl_ns span;
	uint32_t pid; /* 0: written as "(unknown)" */
};

/* The sentence, without final stop, cut to size; returns buf. 512 bytes hold the longest with
 * names of 63 bytes. Deterministic, no locale. */
const char *sl_reason_sentence(
	const struct sl_reason_facts *facts, char *buf, size_t size);

#endif
