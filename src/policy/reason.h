/*
 * reason - why a decision fell as it did: one number, name and sentence each (reason.def)
 *
 * Shared by verdicts, node and everybody who shows a decision. No state.
 */
#ifndef SL_POLICY_REASON_H
#define SL_POLICY_REASON_H

#include "base/sl.h"

enum sl_reason {
#define SL_REASON(NAME, kind, text) SL_REASON_##NAME,
#include "policy/reason.def"
#undef SL_REASON
	SL_REASONS
};

const char *sl_reason_name(uint32_t reason); /* "OVER_LIMIT"; "?" if out of range */
const char *sl_reason_text(uint32_t reason);

#endif
