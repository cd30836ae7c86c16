/*
 * explain - amounts and outcomes of quotas in words
 *
 * Pure; no memory.
 */
#ifndef SL_POLICY_QUOTA_EXPLAIN_H
#define SL_POLICY_QUOTA_EXPLAIN_H

#include "policy/quota/tree.h"

/* Fits any sentence of this module, with names of up to 255 bytes. */
#define SL_EXPLAIN_MAX 1024

/* "2.5 GPUs", "1 core", "1.5 GiB of memory", "any number of GPUs" (SL_QUOTA_ALL); returns buf. 48
 * bytes suffice. Negative amounts are shown as 0. */
const char *sl_resource_format(
	enum sl_resource resource, int64_t amount, char *buf, size_t size);

/* Returns how much of wants is above quota at the first project, from this one up, where any is; 0:
 * nothing. *at gets that project, *which the resource. */
int64_t sl_tree_above_quota(const struct sl_tree *tree, uint32_t project,
	const struct sl_quantity *wants, uint32_t *at, enum sl_resource *which);

/* "gpu", "cpu", "memory", as in project files. "?" if out of range. */
const char *sl_resource_name(uint32_t resource);

/* Why sl_tree_put refused, in words: "its parent does not exist". */
const char *sl_tree_outcome_text(uint32_t outcome);

#endif
