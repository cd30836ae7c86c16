/* Which workload a NAME means: one's own first, ids never mistaken for names. */
#include "../base/test.h"

#include "cli/named.h"

#define ME 1000

static const struct {
	uint64_t workload;
	uint32_t uid, gpu;
	const char *name;
} uses[] = {
	{1, ME, 0, "srv"},
	{1, ME, 1, "srv"}, /* on two GPUs */
	{2, 7, 0, "srv"},
	{3, 7, 0, "train"},
	{4, 8, 0, "train"},
	{5, 8, 0, "3"}, /* a name that looks like an id */
	{6, 9, 0, "note\x1b[2J"},
	{7, 8, 0, "both"},
	{8, 9, 0, "both"},
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
		"several users have a workload 'train'; give its id instead: 3 (user 7), "
		"4 (user 8)"},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
