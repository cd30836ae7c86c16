/*
 * explain - see the header
 */
#include "policy/quota/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/amount.h"

const char *sl_resource_name(uint32_t resource)
{
	static const char *const names[SL_RESOURCES] = {
		"gpu", "cpu", "memory", "compute"};

	return resource < SL_RESOURCES ? names[resource] : "?";
}

const char *sl_tree_outcome_text(uint32_t outcome)
{
	switch (outcome) {
	case SL_TREE_OK: return "it is correct";
	case SL_TREE_FULL:
		return "the most projects that the scheduler can hold exist already";
	case SL_TREE_PARENT: return "its parent does not exist";
	case SL_TREE_CYCLE: return "its parent is one of its descendants";
	case SL_TREE_DEEP:
		return "it would lie deeper than " SL_STRINGIFY(
			SL_PROJECT_DEEP) " levels";
	case SL_TREE_SUM:
		return "the quotas of the children would add up to more than their "
		       "parent's";
	case SL_TREE_VALUE:
		return "a number is negative or too large, or a quota above its limit";
	case SL_TREE_IN_USE: return "it has children or jobs";
	default: return "?";
	}
}

/* "2.5", "3", "0.001". */
static void format_milli(int64_t milli, char text[32])
{
	int digits = 3;
	int64_t part = milli % 1000;

	for (; digits && part % 10 == 0; digits--)
		part /= 10;
	if (digits)
		(void)snprintf(
			text, 32, "%" PRId64 ".%0*" PRId64, milli / 1000, digits, part);
	else
		(void)snprintf(text, 32, "%" PRId64, milli / 1000);
}

const char *sl_resource_format(
	enum sl_resource resource, int64_t amount, char *buf, size_t size)
{
	static const char *const units[SL_RESOURCES][2] = {[SL_RES_GPU] = {"GPU", "GPUs"},
		[SL_RES_CPU] = {"core", "cores"},
		[SL_RES_COMPUTE] = {"GPU of compute", "GPUs of compute"}};
	char text[32];

	if (amount == SL_QUOTA_ALL && resource == SL_RES_MEMORY) {
		(void)snprintf(buf, size, "any amount of memory");
		return buf;
	}
	if (amount == SL_QUOTA_ALL) {
		(void)snprintf(buf, size, "any number of %s", units[resource][1]);
		return buf;
	}
	if (amount < 0)
		amount = 0;
	if (resource == SL_RES_MEMORY) {
		uint64_t most = UINT64_MAX / SL_MIB;
		uint64_t bytes = sl_min_u64((uint64_t)amount, most) * SL_MIB;

		(void)snprintf(buf, size, "%s of memory",
			sl_bytes_format(bytes, text, sizeof(text)));
		return buf;
	}
	format_milli(amount, text);
	(void)snprintf(buf, size, "%s %s", text, units[resource][amount != 1000]);
	return buf;
}

int64_t sl_tree_above_quota(const struct sl_tree *tree, uint32_t project,
	const struct sl_quantity *wants, uint32_t *at, enum sl_resource *which)
{
	for (; project != SL_PROJECT_NONE; project = tree->all[project].parent) {
		const struct sl_project *level = &tree->all[project];

		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t quota = level->rules.quota.of[r];
			int64_t above = level->has.of[r] + wants->of[r] - quota;

			if (quota == SL_QUOTA_ALL || !wants->of[r] || above <= 0)
				continue;
			*at = project;
			*which = (enum sl_resource)r;
			return above < wants->of[r] ? above : wants->of[r];
		}
	}
	return 0;
}
