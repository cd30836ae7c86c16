/*
 * fields - see the header
 */
#include "daemon/core/fields.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/amount.h"
#include "policy/node.h"

/* No GPU is larger than this; sums of a few stay far from 2^64. */
#define AMOUNT_MAX (1ull << 56)

/* Control characters would reach other users' terminals through `sluice ps`. In UTF-8 the second
 * range of them is C2 80 to C2 9F. */
static bool is_control(const char *c)
{
	unsigned char byte = (unsigned char)c[0], next = (unsigned char)c[1];

	return byte < 0x20 || byte == 0x7f ||
	       (byte == 0xc2 && next >= 0x80 && next < 0xa0);
}

static bool is_name(const char *text)
{
	for (const char *c = text; *c; c++) {
		if (*c == ' ' || is_control(c))
			return false;
	}
	return text[0] != '-';
}

/* Such a name would be taken for the number of another workload or job. */
static bool is_number(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789")];
}

bool sl_field_is_amount(uint32_t kind, uint64_t value)
{
	if (kind == SL_AMOUNT_FRACTION)
		return value >= 1 && value <= SL_AMOUNT_WHOLE;
	return kind == SL_AMOUNT_UNSET || value <= AMOUNT_MAX;
}

bool sl_field_is_priority(uint32_t biased)
{
	int64_t priority = (int64_t)biased - (int64_t)SL_PRIORITY_BIAS;

	return priority >= -SL_PRIORITY_MAX && priority <= SL_PRIORITY_MAX;
}

const char *sl_field_compute_mistake(uint32_t request_pm, uint32_t limit_pm)
{
	if (request_pm > 1000 || limit_pm > 1000)
		return "--compute-request and --compute-limit are shares of a GPU, up to "
		       "1";
	if (limit_pm && limit_pm < request_pm)
		return "--compute-limit must not be below --compute-request";
	return NULL;
}

/* The command line checks the same, but other programs can send a RUN, too. */
const char *sl_field_mistake(const struct sl_msg_run *run)
{
	if (run->gpu_count < 1 || run->gpu_count > SL_NODE_GPUS_MAX)
		return "--gpus must be from 1 to " SL_STRINGIFY(SL_NODE_GPUS_MAX);
	if (!sl_field_is_priority(run->priority_biased))
		return "--priority must be from -1000 to 1000";
	if (!is_name(run->name))
		return "--name must be printable, without spaces, and not begin with -";
	if (is_number(run->name))
		return "--name must not be a number, which would be taken for that of "
		       "another "
		       "workload or job; put a letter in it";
	if (!is_name(run->project))
		return "--project must be printable, without spaces, and not begin with "
		       "-";
	if (!sl_field_is_amount(run->request_kind, run->request_value))
		return "--request is no amount; write a fraction up to 1, or bytes like "
		       "8GiB";
	if (!sl_field_is_amount(run->limit_kind, run->limit_value))
		return "--limit is no amount; write a fraction up to 1, or bytes like "
		       "8GiB";
	if (run->flags & SL_RUN_OOM_FIRST && run->flags & SL_RUN_OOM_WAIT)
		return "--oom-first cannot be on and off at once";
	if (run->flags & SL_RUN_CHAIN &&
		!sl_chain_is_valid(run->flags >> SL_RUN_CHAIN_SHIFT))
		return "--on-collision is no chain of resolvers; write swap, wait, "
		       "priority or fail, or several of them";
	if (run->warm_after_ms > SL_FIELD_TIME_MAX_MS)
		return "--warm-after is too long; write at most 30d, or 0 for never";
	if (run->detach_after_ms > SL_FIELD_TIME_MAX_MS)
		return "--detach-after is too long; write at most 30d, or 0 for never";
	if (run->idle_grace_ms > SL_FIELD_TIME_MAX_MS)
		return "--idle-grace is too long; write at most 30d, or --keep-resident";
	return sl_field_compute_mistake(run->compute_request_pm, run->compute_limit_pm);
}

bool sl_field_chain_fits(uint32_t flags, uint32_t resolvers, struct sl_error *err)
{
	char own[SL_CHAIN_TEXT_MAX], all[SL_CHAIN_TEXT_MAX];

	for (uint32_t left = flags >> SL_RUN_CHAIN_SHIFT; left & 15; left >>= 4) {
		if ((left & 15) == SL_RESOLVER_FAIL || sl_chain_has(resolvers, left & 15))
			continue;
		sl_error_set(err,
			"--on-collision has %s, which is not among the resolvers of "
			"this node (resolvers of sluiced.conf: %s); leave it out, or ask "
			"the administrator",
			sl_chain_format(left & 15, own, sizeof(own)),
			sl_chain_format(resolvers, all, sizeof(all)));
		return false;
	}
	return true;
}

/* "python" from "/usr/bin/python train.py", in letters, digits and dots. */
void sl_field_make_name(const char *command, const char *mark, uint64_t id, char name[64])
{
	char word[40] = "";
	size_t used = 0, length = strcspn(command, " ");
	const char *begin = command;

	for (size_t i = 0; i < length; i++) {
		if (command[i] == '/')
			begin = command + i + 1;
	}
	for (; begin < command + length && used + 1 < sizeof(word); begin++) {
		if (isalnum((unsigned char)*begin) || strchr("._+", *begin))
			word[used++] = *begin;
	}
	(void)snprintf(name, 64, "%s-%s%" PRIu64, used ? word : "job", mark, id);
}

void sl_field_tame(char *text)
{
	for (char *c = text; *c; c++) {
		if (is_control(c))
			*c = '?';
	}
}
