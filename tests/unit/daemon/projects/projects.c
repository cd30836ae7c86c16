/* Files of projects good and bad, and sets that fit together or do not. */
#include "../../base/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/projects/projects.h"

static const char whole[] =
	"# of the lab\n"
	"projects:\n"
	"  vision:\n"
	"    parent: research\n"
	"    gpu: {quota: 2.5, limit: unlimited, over_quota_weight: 3}\n"
	"    cpu: {quota: 16, limit: 64.25}\n"
	"    memory:\n"
	"      quota: 64GiB\n"
	"      limit: 128Gi\n"
	"    compute: {quota: 0.5, limit: 1.25, over_quota_weight: 2}\n"
	"    priority: -5\n"
	"    users: [alice, _, \"1000\"]\n"
	"    groups: [ml, ops]\n"
	"    pools: [a100]\n"
	"    preempt_min_runtime: 90\n"
	"    reclaim_min_runtime: 10m\n"
	"    swap: no\n"
	"  research: {gpu: {quota: 8}}\n"
	"  idle:\n";

static void reads_every_field(void **state)
{
	struct sl_projects set = {0};
	const struct sl_project_row *row;
	struct sl_error err = {0};

	if (sl_projects_parse(whole, strlen(whole), "f.yaml", &set, &err) !=
		SL_PROJECTS_OK)
		fail_msg("%s", err.text);
	assert_int_equal(set.count, 3);
	row = sl_projects_find(&set, "vision");
	assert_string_equal(row->parent, "research");
	assert_int_equal(row->quota.of[SL_RES_GPU], 2500);
	assert_int_equal(row->limit.of[SL_RES_GPU], SL_QUOTA_ALL);
	assert_int_equal(row->weight[SL_RES_GPU], 3);
	assert_int_equal(row->quota.of[SL_RES_CPU], 16000);
	assert_int_equal(row->limit.of[SL_RES_CPU], 64250);
	assert_int_equal(row->quota.of[SL_RES_MEMORY], 64 << 10);
	assert_int_equal(row->limit.of[SL_RES_MEMORY], 128 << 10);
	assert_int_equal(row->quota.of[SL_RES_COMPUTE], 500);
	assert_int_equal(row->limit.of[SL_RES_COMPUTE], 1250);
	assert_int_equal(row->weight[SL_RES_COMPUTE], 2);
	assert_int_equal(row->priority, -5);
	assert_string_equal(row->users, "alice,_,1000");
	assert_string_equal(row->groups, "ml,ops");
	assert_string_equal(row->pools, "a100");
	assert_true(row->preempt_min_runtime == 90 * SL_S);
	assert_true(row->reclaim_min_runtime == 600 * SL_S);
	assert_true(row->no_swap);
	assert_int_equal(row->line, 3);
	row = sl_projects_find(&set, "idle");
	assert_string_equal(row->parent, "");
	assert_int_equal(row->quota.of[SL_RES_GPU], 0);
	assert_int_equal(row->quota.of[SL_RES_CPU], SL_QUOTA_ALL);
	assert_int_equal(row->quota.of[SL_RES_COMPUTE], SL_QUOTA_ALL);
	assert_int_equal(row->limit.of[SL_RES_GPU], SL_QUOTA_ALL);
	assert_int_equal(row->weight[SL_RES_MEMORY], 1);
	assert_false(row->no_swap);
	assert_int_equal(sl_projects_check(&set, NULL, &err), SL_PROJECTS_OK);
	sl_projects_sort(&set);
	assert_string_equal(set.rows[0].name, "idle");
	assert_string_equal(set.rows[1].name, "research");
	assert_string_equal(set.rows[2].name, "vision");
	sl_projects_fini(&set);
}

/* place and what must both be in the error. */
static const struct {
	const char *name, *text, *place, *what;
} bad[] = {
	{"nothing", "", "f.yaml, line 1: ", "begin it with 'projects:'"},
	{"a list", "- a\n", "line 1: ", "begin it with 'projects:'"},
	{"another key", "projects: {}\nqueues: {}\n", "line 2: ", "'queues'"},
	{"projects twice", "projects: {}\nprojects: {}\n", "line 2: ", "line 1 already"},
	{"a list of projects", "projects:\n  - a\n", "line 2: ", "'NAME: {...}'"},
	{"a project twice", "projects:\n  a: {}\n  b: {}\n  a: {}\n",
		"line 4: ", "a stands in line 2 already; remove one"},
	{"a project that is a word", "projects:\n  a: 3\n",
		"line 2: ", "a mapping belongs here"},
	{"unknown field", "projects:\n  a:\n    qouta: 3\n", "line 3: project a: ",
		"unknown field 'qouta'; the fields are parent, gpu, cpu,"},
	{"unknown field below", "projects:\n  a:\n    gpu: {qouta: 3}\n",
		"line 3: project a: ",
		"gpu: unknown field 'qouta'; the fields are quota, limit and "
		"over_quota_weight"},
	{"a field twice", "projects:\n  a:\n    swap: no\n    swap: no\n",
		"line 4: ", "swap was set in line 3 already"},
	{"a field below twice", "projects:\n  a: {gpu: {quota: 1,\n quota: 2}}\n",
		"line 3: ", "gpu.quota was set in line 2 already"},
	{"negative", "projects:\n  a:\n    gpu:\n      quota: -3\n",
		"line 4: ", "gpu.quota: '-3' is negative; write 0 or more, or unlimited"},
	{"a little negative", "projects: {a: {gpu: {limit: -0.5}}}",
		"line 1: ", "is negative"},
	{"huge", "projects: {a: {gpu: {quota: 99999999999999999999}}}", "line 1: ",
		"gpu.quota: '99999999999999999999' is no number up to 1000000000"},
	{"one too many", "projects: {a: {cpu: {quota: 1000000000.001}}}", "",
		"no number up to"},
	{"four digits", "projects: {a: {gpu: {quota: 0.0005}}}", "", "three digits"},
	{"a point and nothing", "projects: {a: {gpu: {quota: 1.}}}", "", "three digits"},
	{"exponent", "projects: {a: {gpu: {quota: 1e3}}}", "", "three digits"},
	{"words", "projects: {a: {gpu: {quota: lots}}}", "", "'lots'"},
	{"a list for a number", "projects: {a: {gpu: {quota: [1]}}}", "", "gpu.quota"},
	{"memory without a unit", "projects: {a: {memory: {quota: 64}}}", "", "512GiB"},
	{"memory in bytes", "projects: {a: {memory: {quota: 3000000B}}}", "",
		"whole MiB"},
	{"memory beyond all", "projects: {a: {memory: {quota: 15Ei}}}", "",
		"up to 900PiB"},
	{"quota above limit", "projects:\n  a: {gpu: {quota: 4, limit: 3.5}}\n",
		"line 2: ", "gpu.quota 4 is above gpu.limit 3.5"},
	{"weight", "projects: {a: {gpu: {over_quota_weight: -1}}}", "",
		"gpu.over_quota_weight: '-1' is no whole number from 0 to 1000000"},
	{"half a weight", "projects: {a: {gpu: {over_quota_weight: 0.5}}}", "",
		"whole number"},
	{"priority", "projects: {a: {priority: 1001}}", "", "from -1000 to 1000"},
	{"no priority", "projects: {a: {priority: }}", "", "priority: ''"},
	{"time", "projects: {a: {reclaim_min_runtime: soon}}", "", "reclaim_min_runtime"},
	{"long", "projects: {a: {preempt_min_runtime: 9000000h}}", "",
		"preempt_min_runtime"},
	{"swap", "projects: {a: {swap: maybe}}", "", "swap: 'maybe' is neither"},
	{"a user with a space", "projects: {a: {users: [a b]}}", "",
		"users: 'a b' is no name"},
	{"a user twice", "projects: {a: {users: [x, x]}}", "", "x comes twice"},
	{"a word for a list", "projects: {a: {users: x}}", "",
		"users: a list belongs here"},
	{"a list in a list", "projects: {a: {users: [[x]]}}", "", "users: '?'"},
	{"a mapping for a word", "projects: {a: {parent: {}}}", "", "a single value"},
	{"parent", "projects: {a: {parent: ../b}}", "", "parent: '../b' is no name"},
	{"a path", "projects: {../a: {}}", "", "'../a' is no name of a project"},
	{"an option", "projects: {-a: {}}", "", "'-a' is no name"},
	{"a space", "projects: {'a b': {}}", "", "no name"},
	{"an escape", "projects: {\"a\\e[1m\": {}}", "", "'a?[1m' is no name"},
	{"a NUL", "projects: {\"a\\0b\": {}}", "", "'?' is no name"},
	{"letters of elsewhere", "projects: {z\xc3\xbcrich: {}}", "", "no name"},
	{"no name", "projects: {'': {}}", "", "'' is no name"},
	{"64 letters",
		"projects: "
		"{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {}}",
		"", "at most 63"},
	{"an open bracket", "projects:\n  a: {gpu: {quota: 2}\n  b: {}\n", "line ",
		"not YAML"},
	{"a tabulator", "projects:\n\ta: {}\n", "line 2", "not YAML"},
	{"no UTF-8", "projects:\n  \xff: {}\n", "byte 12", "UTF-8"},
	{"deep", "[[[[[[[[[[[[[[[[[[[[", "line 1: ", "nested too deep"},
	{"an alias", "projects: {a: &x {}, b: *x}", "line 1: ", "aliases"},
	{"two documents", "projects: {}\n---\nprojects: {}\n",
		"line 2: ", "second document"},
};

static void says_what_is_wrong_and_where(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++) {
		struct sl_projects set = {0};
		struct sl_error err = {0};

		if (sl_projects_parse(bad[i].text, strlen(bad[i].text), "f.yaml", &set,
			    &err) == SL_PROJECTS_OK)
			fail_msg("row '%s' was taken", bad[i].name);
		assert_row_contains(bad[i].name, err.text, "f.yaml");
		assert_row_contains(bad[i].name, err.text, bad[i].place);
		assert_row_contains(bad[i].name, err.text, bad[i].what);
		assert_row_u64(bad[i].name, set.count, 0);
		assert_null(set.rows);
	}
}

static void files_that_cannot_be_read(void **state)
{
	struct sl_projects set = {0};
	struct sl_error err = {0};
	char path[] = "/tmp/sl-projects-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	for (size_t i = 0; i <= SL_PROJECTS_FILE_MAX / 16; i++)
		fputs("################", file);
	fclose(file);
	assert_int_equal(
		sl_projects_load("/nowhere/f.yaml", &set, &err), SL_PROJECTS_BAD);
	assert_row_contains(
		"missing", err.text, "cannot read /nowhere/f.yaml: No such file");
	assert_int_equal(sl_projects_load("/", &set, &err), SL_PROJECTS_BAD);
	assert_row_contains("a folder", err.text, "Is a directory");
	assert_int_equal(sl_projects_load(path, &set, &err), SL_PROJECTS_BAD);
	assert_row_contains("too large", err.text, "split it");
	remove(path);
}

/* Sets of which each row is fine by itself. culprit: the project that the error names. */
static const struct {
	const char *name, *text, *culprit, *what;
} sets[] = {
	{"fine", "projects: {a: {gpu: {quota: 3}}, b: {parent: a, gpu: {quota: 3}}}",
		NULL, NULL},
	{"all of a parent's is no sum",
		"projects: {a: {gpu: {quota: 3}}, b: {parent: a, gpu: {quota: "
		"unlimited}}}",
		NULL, NULL},
	{"no parent", "projects: {a: {parent: z}}", "a", "there is no project z"},
	{"itself", "projects: {a: {parent: a}}", "a",
		"project a stands above itself: it is below a; take the parent away"},
	{"a cycle of three", "projects: {a: {parent: b}, b: {parent: c}, c: {parent: a}}",
		"a",
		"project a stands above itself: it is below b, which is below c, which "
		"is below a"},
	{"below a cycle", "projects: {a: {parent: b}, b: {parent: c}, c: {parent: b}}",
		"b", "project b stands above itself"},
	{"children above their parent",
		"projects: {a: {gpu: {quota: 3}}, b: {parent: a, gpu: {quota: 2}},"
		" c: {parent: a, gpu: {quota: 1.5}}}",
		"a",
		"project a: its children have gpu.quota 3.5 together, and it has 3; "
		"raise its "
		"quota, or lower theirs"},
	{"of memory",
		"projects: {a: {memory: {quota: 1GiB}}, b: {parent: a, memory: {quota: "
		"2GiB}}}",
		"a", "memory.quota 2GiB together, and it has 1GiB"},
};

static void sets_that_fit_together_or_not(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(sets); i++) {
		const struct sl_project_row *culprit = NULL;
		struct sl_projects set = {0};
		struct sl_error err = {0};
		int r;

		if (sl_projects_parse(sets[i].text, strlen(sets[i].text), "f", &set,
			    &err) != SL_PROJECTS_OK)
			fail_msg("row '%s': %s", sets[i].name, err.text);
		r = sl_projects_check(&set, &culprit, &err);
		if (!sets[i].what) {
			assert_row_text(sets[i].name, err.text, "");
			assert_int_equal(r, SL_PROJECTS_OK);
			assert_null(culprit);
		} else {
			assert_int_equal(r, SL_PROJECTS_BAD);
			assert_row_contains(sets[i].name, err.text, sets[i].what);
			assert_row_text(sets[i].name, culprit->name, sets[i].culprit);
		}
		sl_projects_fini(&set);
	}
}

static void as_deep_as_may_be(void **state)
{
	struct sl_projects set = {0};
	struct sl_project_row row;
	struct sl_error err = {0};
	char name[16], last[16] = "";

	for (int i = 0; i <= SL_PROJECT_DEEP; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		sl_project_defaults(&row, name);
		(void)snprintf(row.parent, sizeof(row.parent), "%s", last);
		(void)snprintf(last, sizeof(last), "%s", name);
		assert_int_equal(sl_projects_put(&set, &row), 0);
		assert_int_equal(sl_projects_check(&set, NULL, &err),
			i < SL_PROJECT_DEEP ? SL_PROJECTS_OK : SL_PROJECTS_BAD);
	}
	assert_row_contains("too deep", err.text, "project p16 stands 17 levels deep");
	sl_projects_fini(&set);
}

static void rows_come_and_go(void **state)
{
	struct sl_projects set = {0}, copy = {0};
	struct sl_project_row row;
	char name[16];

	for (int i = 0; i < SL_PROJECTS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		sl_project_defaults(&row, name);
		row.id = (uint64_t)i + 1;
		assert_int_equal(sl_projects_put(&set, &row), 0);
	}
	sl_project_defaults(&row, "more");
	assert_int_equal(sl_projects_put(&set, &row), -ENOSPC);
	/* A change keeps the number that the policy knows it by. */
	sl_project_defaults(&row, "p7");
	row.priority = 9;
	assert_int_equal(sl_projects_put(&set, &row), 0);
	assert_int_equal(sl_projects_find(&set, "p7")->id, 8);
	assert_int_equal(sl_projects_find(&set, "p7")->priority, 9);
	sl_projects_drop(&set, "p7");
	sl_projects_drop(&set, "p7");
	assert_null(sl_projects_find(&set, "p7"));
	assert_int_equal(set.count, SL_PROJECTS_MAX - 1);
	assert_int_equal(sl_projects_copy(&copy, &set), 0);
	assert_int_equal(copy.count, set.count);
	assert_int_equal(sl_projects_check(&copy, NULL, NULL), SL_PROJECTS_OK);
	sl_projects_fini(&set);
	sl_projects_fini(&copy);
	assert_int_equal(sl_projects_copy(&copy, &set), 0);
	sl_projects_fini(&copy);
}

static void rows_that_no_file_could_hold(void **state)
{
	struct sl_project_row row;
	struct sl_error err = {0};

	sl_project_defaults(&row, "a");
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_OK);
	memset(row.name, 'a', sizeof(row.name));
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	sl_project_defaults(&row, "a");
	memset(row.users, 'a', sizeof(row.users));
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	sl_project_defaults(&row, "a");
	(void)strcpy(row.groups, "a,,b");
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	(void)strcpy(row.groups, "a,b,");
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	(void)strcpy(row.groups, "a,b");
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_OK);
	row.quota.of[SL_RES_GPU] = -2;
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	row.quota.of[SL_RES_GPU] = INT64_MAX;
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
	row.quota.of[SL_RES_GPU] = 0;
	row.priority = INT32_MIN;
	assert_int_equal(sl_project_check(&row, &err), SL_PROJECTS_BAD);
}

/* A written row is read as the same row. */
static void rows_are_written_as_they_are_read(void **state)
{
	struct sl_projects set = {0}, again = {0};
	struct sl_error err = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(
		sl_projects_parse(whole, strlen(whole), "f", &set, &err), SL_PROJECTS_OK);
	set.rows[0].preempt_min_runtime = 1500 * SL_MS;
	(void)strcpy(set.rows[1].users, "yes,on,1,_");
	fputs("projects:\n", out);
	for (size_t i = 0; i < set.count; i++)
		sl_project_write(out, &set.rows[i]);
	(void)fclose(out);
	if (sl_projects_parse(text, size, "f", &again, &err) != SL_PROJECTS_OK)
		fail_msg("%s in %s", err.text, text);
	assert_int_equal(again.count, set.count);
	for (size_t i = 0; i < set.count; i++) {
		again.rows[i].line = set.rows[i].line;
		if (memcmp(&again.rows[i], &set.rows[i], sizeof(set.rows[i])) != 0)
			fail_msg("%s is another one in %s", set.rows[i].name, text);
	}
	free(text);
	sl_projects_fini(&set);
	sl_projects_fini(&again);
}

static int bit_of(void *context, const char *name)
{
	return name[0] == 'a' ? 0 : name[0] == 'b' ? 5 : -1;
}

static void names_of_pools_become_bits(void **state)
{
	static const struct {
		const char *pools;
		uint64_t bits;
	} rows[] = {
		{"", 0},
		{"a", 1},
		{"a,b", 33},
		{"a,c", 1},
		/* Not all of them, where none exists. */
		{"c", 1ull << 63},
	};
	struct sl_project_row row;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		sl_project_defaults(&row, "x");
		(void)strcpy(row.pools, rows[i].pools);
		assert_row_u64(rows[i].pools,
			sl_project_rules_of(&row, bit_of, NULL).pools, rows[i].bits);
	}
	assert_true(sl_project_lists("alice,bob", "bob"));
	assert_false(sl_project_lists("alice,bob", "bo"));
	assert_false(sl_project_lists("alice,bob", "alice,bob"));
	assert_false(sl_project_lists("", ""));
}

static void amounts_are_written_as_they_are_read(void **state)
{
	static const struct {
		enum sl_resource resource;
		int64_t amount;
		const char *text;
	} rows[] = {
		{SL_RES_GPU, 0, "0"},
		{SL_RES_GPU, 500, "0.5"},
		{SL_RES_GPU, 10000, "10"},
		{SL_RES_CPU, 1001, "1.001"},
		{SL_RES_CPU, SL_QUOTA_ALL, "unlimited"},
		{SL_RES_MEMORY, 65536, "64GiB"},
		{SL_RES_MEMORY, 65537, "65537MiB"},
	};
	char text[32];

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_text(rows[i].text,
			sl_project_amount(
				rows[i].resource, rows[i].amount, text, sizeof(text)),
			rows[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_field),
		cmocka_unit_test(says_what_is_wrong_and_where),
		cmocka_unit_test(files_that_cannot_be_read),
		cmocka_unit_test(sets_that_fit_together_or_not),
		cmocka_unit_test(as_deep_as_may_be),
		cmocka_unit_test(rows_come_and_go),
		cmocka_unit_test(rows_that_no_file_could_hold),
		cmocka_unit_test(rows_are_written_as_they_are_read),
		cmocka_unit_test(names_of_pools_become_bits),
		cmocka_unit_test(amounts_are_written_as_they_are_read),
	};

	return cmocka_run_group_tests_name("projects", tests, NULL, NULL);
}
