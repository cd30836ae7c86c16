/* Which workload or job a NAME means: the user's own first, ids never mistaken for names. */
#include "../../base/test.h"

#include "cli/conn/named.h"

/* Users without a name on any machine. */
#define ME   3000000000u
#define SHE  3000000007u
#define HE   3000000008u
#define THEY 3000000009u

static const struct {
	uint64_t workload;
	uint32_t uid, gpu;
	const char *name;
} uses[] = {
	{1, ME, 0, "srv"},
	{1, ME, 1, "srv"}, /* on two GPUs */
	{2, SHE, 0, "srv"},
	{3, SHE, 0, "train"},
	{4, HE, 0, "train"},
	{5, HE, 0, "3"}, /* a name that looks like an id */
	{6, THEY, 0, "note\x1b[2J"},
	{7, HE, 0, "both"},
	{8, THEY, 0, "both"},
	{9, ME, 0, "both"},
};

static const struct {
	const char *name;
	uint64_t workload; /* 0: none */
	const char *says;
} rows[] = {
	{"srv", 1, NULL},
	{"2", 2, NULL},
	{"3", 5, NULL},
	{"4", 4, NULL},
	{"both", 9, NULL},
	{"train", 0,
		"several users have a workload 'train'; write USER/NAME or the ID: "
		"3000000007/train (3), 3000000008/train (4)"},
	{"3000000007/train", 3, NULL},
	{"3000000008/train", 4, NULL},
	{"3000000008/srv", 0, "no workload '3000000008/srv'"},
	{"/train", 0, "no workload '/train'"},
	{"no such user/train", 0, "no workload 'no such user/train'"},
	{"trian", 0, "no workload 'trian'; did you mean 'train'?"},
	{"nohow", 0, "no workload 'nohow'; see: sluice ps"},
	{"99", 0, "no workload '99'"},
	{"", 0, "no workload ''"},
	{"-1", 0, "no workload '-1'"},
	{"2x", 0, "no workload '2x'"},
	{"note", 0, "did you mean 'note?[2J'?"},
};

static void test_rows(void **state)
{
	union sl_msg all[SL_ARRAY_LEN(uses)];
	struct sl_rows list = {.all = all, .count = SL_ARRAY_LEN(uses)};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(uses); i++) {
		sl_wire_init(&all[i], SL_MSG_USE_ROW);
		all[i].use_row.workload = uses[i].workload;
		all[i].use_row.uid = uses[i].uid;
		all[i].use_row.gpu = uses[i].gpu;
		sl_wire_str(
			all[i].use_row.name, sizeof(all[i].use_row.name), uses[i].name);
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_msg_use_row *row = &all[0].use_row;
		struct sl_error err = {0};
		int outcome = sl_named_find(&list, rows[i].name, ME, &row, &err);

		assert_row_u64(
			rows[i].name, outcome == SL_NAMED_OK, rows[i].workload != 0);
		assert_row_u64(rows[i].name, row ? row->workload : 0, rows[i].workload);
		if (rows[i].says)
			assert_row_contains(rows[i].name, err.text, rows[i].says);
	}
}

/* Rows of both lists. job: else a workload. own_workload: of a job that runs. */
static const struct {
	bool job;
	uint64_t id, own_workload;
	uint32_t uid, state;
	const char *name;
} both[] = {
	{false, 21, 0, ME, 0, "srv"},
	{false, 22, 0, ME, 0, "train"},
	{false, 23, 0, SHE, 0, "nightly"},
	{false, 9, 0, ME, 0, "other"},
	{true, 9 | SL_JOB_FOREGROUND, 9, ME, SL_JOB_RUNNING, "other"},
	{true, 11, 0, ME, SL_JOB_QUEUED, "sweep"},
	{true, 2, 22, ME, SL_JOB_RUNNING, "train"},
	{true, 3, 0, ME, SL_JOB_DONE, "old"},
	{true, 4, 0, ME, SL_JOB_FAILED, "old"},
	{true, 5, 0, ME, SL_JOB_DONE, "srv"},
	{true, 6, 0, SHE, SL_JOB_RUNNING, "old"},
	{true, 7, 0, SHE, SL_JOB_RUNNING, "shared"},
	{true, 8, 0, HE, SL_JOB_RUNNING, "shared"},
};

static const struct {
	const char *name;
	uint64_t id; /* 0: none */
	bool job;
	const char *says;
} meant[] = {
	{"sweep", 11, true, NULL},
	{"train", 2, true, NULL}, /* the job, not its workload */
	{"srv", 21, false, NULL}, /* what lives before what ended */
	{"old", 4, true, NULL},   /* the user's own, and of those the last */
	{"nightly", 23, false, NULL},
	{"8", 8, true, NULL},
	{"21", 21, false, NULL},
	{"11", 11, true, NULL},
	{"9", 9, true, NULL}, /* in the foreground: one number of both */
	{"shared", 0, false,
		"several users have a thing 'shared'; write USER/NAME or the ID: "
		"3000000007/shared (7), 3000000008/shared (8)"},
	{"seep", 0, false, "there is no thing 'seep'; did you mean 'sweep'?"},
};

static void test_both(void **state)
{
	union sl_msg all[SL_ARRAY_LEN(both)];
	struct sl_rows list = {.all = all, .count = SL_ARRAY_LEN(both)};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(both); i++) {
		struct sl_msg_job_row *job = &all[i].job_row;
		struct sl_msg_use_row *use = &all[i].use_row;

		if (both[i].job) {
			sl_wire_init(&all[i], SL_MSG_JOB_ROW);
			job->job = both[i].id;
			job->workload = both[i].own_workload;
			job->uid = both[i].uid;
			job->state = both[i].state;
			sl_wire_str(job->name, sizeof(job->name), both[i].name);
		} else {
			sl_wire_init(&all[i], SL_MSG_USE_ROW);
			use->workload = both[i].id;
			use->uid = both[i].uid;
			sl_wire_str(use->name, sizeof(use->name), both[i].name);
		}
	}
	/* In whichever order the lists come. */
	for (size_t i = 0; i < 2 * SL_ARRAY_LEN(meant); i++) {
		const size_t n = i % SL_ARRAY_LEN(meant);
		const union sl_msg *row = NULL;
		struct sl_error err = {0};
		uint64_t id = 0;

		for (size_t a = 0, b = list.count - 1; i == SL_ARRAY_LEN(meant) && a < b;
			a++, b--) {
			union sl_msg other = all[a];

			all[a] = all[b];
			all[b] = other;
		}
		(void)!sl_named_find_any(&list, "thing", meant[n].name, ME, &row, &err);
		if (row)
			id = row->head.type == SL_MSG_JOB_ROW
				     ? row->job_row.job & ~SL_JOB_FOREGROUND
				     : row->use_row.workload;
		assert_row_u64(meant[n].name, id, meant[n].id);
		if (row)
			assert_row_u64(meant[n].name, row->head.type == SL_MSG_JOB_ROW,
				meant[n].job);
		if (meant[n].says && i < SL_ARRAY_LEN(meant))
			assert_row_contains(meant[n].name, err.text, meant[n].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
