/*
 * wire - see the header
 *
 * One list of the fields serves both messages and both directions.
 */
#include "daemon/projects/wire.h"

#include <string.h>

#define NUMBERS(N, msg, row)                                 \
	N(msg->gpu_quota, row->quota.of[SL_RES_GPU])         \
	N(msg->gpu_limit, row->limit.of[SL_RES_GPU])         \
	N(msg->cpu_quota, row->quota.of[SL_RES_CPU])         \
	N(msg->cpu_limit, row->limit.of[SL_RES_CPU])         \
	N(msg->memory_quota, row->quota.of[SL_RES_MEMORY])   \
	N(msg->memory_limit, row->limit.of[SL_RES_MEMORY])   \
	N(msg->compute_quota, row->quota.of[SL_RES_COMPUTE]) \
	N(msg->compute_limit, row->limit.of[SL_RES_COMPUTE]) \
	N(msg->preempt_ns, row->preempt_min_runtime)         \
	N(msg->reclaim_ns, row->reclaim_min_runtime)         \
	N(msg->gpu_weight, row->weight[SL_RES_GPU])          \
	N(msg->cpu_weight, row->weight[SL_RES_CPU])          \
	N(msg->memory_weight, row->weight[SL_RES_MEMORY])    \
	N(msg->compute_weight, row->weight[SL_RES_COMPUTE])

#define TEXTS(T, msg, row)          \
	T(msg->name, row->name)     \
	T(msg->parent, row->parent) \
	T(msg->users, row->users)   \
	T(msg->groups, row->groups) \
	T(msg->pools, row->pools)

#define NUMBER_OUT(there, here) there = (__typeof__(there))here;
#define NUMBER_IN(there, here)  here = (__typeof__(here))there;
#define TEXT_OUT(there, here)   sl_wire_str(there, sizeof(there), here);
#define TEXT_IN(there, here)                                          \
	_Static_assert(sizeof(there) == sizeof(here), "cut in half"); \
	memcpy(here, there, sizeof(here));

#define TO(msg, row)                                                                    \
	do {                                                                            \
		NUMBERS(NUMBER_OUT, msg, row)                                           \
		TEXTS(TEXT_OUT, msg, row)                                               \
		msg->id = row->id;                                                      \
		msg->flags = row->no_swap ? SL_PROJECT_NO_SWAP : 0;                     \
		msg->priority_biased =                                                  \
			(uint32_t)((int64_t)row->priority + (int64_t)SL_PRIORITY_BIAS); \
	} while (0)
#define FROM(msg, row)                                                    \
	do {                                                              \
		*row = (struct sl_project_row){0};                        \
		NUMBERS(NUMBER_IN, msg, row)                              \
		TEXTS(TEXT_IN, msg, row)                                  \
		row->no_swap = msg->flags & SL_PROJECT_NO_SWAP;           \
		row->priority = (int32_t)((int64_t)msg->priority_biased - \
					  (int64_t)SL_PRIORITY_BIAS);     \
	} while (0)

void sl_project_to_put(const struct sl_project_row *row, struct sl_msg_project_put *msg)
{
	TO(msg, row);
}

void sl_project_to_row(const struct sl_project_row *row, struct sl_msg_project_row *msg)
{
	TO(msg, row);
}

void sl_project_from_put(const struct sl_msg_project_put *msg, struct sl_project_row *row)
{
	FROM(msg, row);
}

void sl_project_from_row(const struct sl_msg_project_row *msg, struct sl_project_row *row)
{
	FROM(msg, row);
	row->id = msg->id;
}
