/*
 * store - see the header
 */
#include "daemon/projects/store.h"

#include <string.h>

#include "daemon/store/record.h"
#include "wire/wire.h"

/* clang-format off */
#define QUANTITY(r, name, member)                                                    \
	{name, SL_FIELD_U64, offsetof(struct sl_project_row, member.of[r]), 0, 0, 0}
#define WEIGHT(r, name)                                                              \
	{name, SL_FIELD_U32, offsetof(struct sl_project_row, weight[r]), 0, 0,       \
		SL_PROJECT_WEIGHT}
/* clang-format on */
#define FIELD(what, member, least, most) \
	SL_FIELD_AT(sl_project_row, what, member, least, most)

static const struct sl_field fields[] = {
	FIELD(TEXT, name, 0, 0),
	FIELD(TEXT, parent, 0, 0),
	QUANTITY(SL_RES_GPU, "gpu_quota_milli", quota),
	QUANTITY(SL_RES_GPU, "gpu_limit_milli", limit),
	WEIGHT(SL_RES_GPU, "gpu_weight"),
	QUANTITY(SL_RES_CPU, "cpu_quota_milli", quota),
	QUANTITY(SL_RES_CPU, "cpu_limit_milli", limit),
	WEIGHT(SL_RES_CPU, "cpu_weight"),
	QUANTITY(SL_RES_MEMORY, "memory_quota_mib", quota),
	QUANTITY(SL_RES_MEMORY, "memory_limit_mib", limit),
	WEIGHT(SL_RES_MEMORY, "memory_weight"),
	QUANTITY(SL_RES_COMPUTE, "compute_quota_milli", quota),
	QUANTITY(SL_RES_COMPUTE, "compute_limit_milli", limit),
	WEIGHT(SL_RES_COMPUTE, "compute_weight"),
	FIELD(I32, priority, -SL_PRIORITY_MAX, SL_PRIORITY_MAX),
	FIELD(U64, preempt_min_runtime, 0, 0),
	FIELD(U64, reclaim_min_runtime, 0, 0),
	FIELD(YES, no_swap, 0, 0),
	FIELD(TEXT, users, 0, 0),
	FIELD(TEXT, groups, 0, 0),
	FIELD(TEXT, pools, 0, 0),
};

static bool take_row(
	void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_projects_stored *out = context;
	struct sl_project_row row = {.id = number};

	if (!sl_record_read(fields, SL_ARRAY_LEN(fields), text, &row, why) ||
		sl_project_check(&row, why) != SL_PROJECTS_OK)
		return false;
	if (sl_projects_find(&out->set, row.name)) {
		sl_error_set(why, "its name comes twice");
		return false;
	}
	out->next_id = sl_max_u64(out->next_id, number + 1);
	if (sl_projects_put(&out->set, &row) == 0)
		return true;
	sl_error_set(why, "there are too many");
	return false;
}

static void lift_orphans(struct sl_projects *set)
{
	for (size_t i = 0; i < set->count; i++) {
		if (!sl_projects_find(set, set->rows[i].parent))
			set->rows[i].parent[0] = '\0';
	}
}

int sl_projects_store_load(
	struct sl_store *store, struct sl_projects_stored *out, struct sl_error *err)
{
	struct sl_error why = {0};
	int numbers = sl_store_load_number(store, SL_KIND_PROJECT, &out->next_id, err);
	int r = sl_store_load(store, SL_KIND_PROJECT, take_row, out, err);

	if (r == SL_STORE_PARTLY)
		lift_orphans(&out->set);
	else if (r == SL_STORE_OK)
		r = numbers;
	if (r != SL_STORE_BAD &&
		sl_projects_check(&out->set, NULL, &why) != SL_PROJECTS_OK) {
		sl_error_set(err, "the projects in %.180s do not fit together: %.250s",
			sl_store_path(store, SL_KIND_PROJECT), why.text);
		r = SL_STORE_BAD;
	}
	if (r == SL_STORE_BAD) {
		sl_projects_fini(&out->set);
		out->next_id = 0;
	}
	return r;
}

void sl_projects_store_put(struct sl_store_change *change,
	const struct sl_project_row *row, uint64_t next_id)
{
	sl_store_put_object(change, SL_KIND_PROJECT, row->id, fields,
		SL_ARRAY_LEN(fields), row, sizeof(*row));
	sl_store_put_number(change, SL_KIND_PROJECT, next_id);
}
