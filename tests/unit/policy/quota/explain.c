#include "../../base/test.h"

#include "policy/cluster.h"
#include "policy/quota/explain.h"

static const char *name_of(void *context, uint64_t id)
{
	return id == 1 ? "vision" : id == 2 ? "text" : id == 3 ? "a\nb\x1b[1m" : context;
}

static const struct {
	enum sl_resource resource;
	int64_t amount;
	const char *text;
} amounts[] = {
	{SL_RES_GPU, 2500, "2.5 GPUs"},
	{SL_RES_GPU, 1000, "1 GPU"},
	{SL_RES_GPU, 0, "0 GPUs"},
	{SL_RES_GPU, 1, "0.001 GPUs"},
	{SL_RES_GPU, 10050, "10.05 GPUs"},
	{SL_RES_GPU, -5, "0 GPUs"},
	{SL_RES_GPU, SL_QUOTA_ALL, "any number of GPUs"},
	{SL_RES_GPU, SL_QUOTA_MOST, "9007199254740.992 GPUs"},
	{SL_RES_CPU, 1000, "1 core"},
	{SL_RES_CPU, 64500, "64.5 cores"},
	{SL_RES_CPU, SL_QUOTA_ALL, "any number of cores"},
	{SL_RES_COMPUTE, 300, "0.3 GPUs of compute"},
	{SL_RES_COMPUTE, 1000, "1 GPU of compute"},
	{SL_RES_COMPUTE, SL_QUOTA_ALL, "any number of GPUs of compute"},
	{SL_RES_MEMORY, 1536, "1.5 GiB of memory"},
	{SL_RES_MEMORY, SL_QUOTA_ALL, "any amount of memory"},
};

static void amounts_in_words(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(amounts); i++) {
		char text[48];

		(void)sl_resource_format(
			amounts[i].resource, amounts[i].amount, text, sizeof(text));
		assert_row_text(amounts[i].text, text, amounts[i].text);
	}
}

static const struct {
	struct sl_pending_because because;
	const char *text;
} sentences[] = {
	{{.reason = SL_PENDING_LIMIT, .project = 1, .wanted = 2000, .available = 500},
		"it wants 2 GPUs, but the limit of project vision leaves 0.5 GPUs; it "
		"runs when jobs of that project end, or with a higher limit"},
	{{.reason = SL_PENDING_QUOTA,
		 .project = 1,
		 .resource = SL_RES_CPU,
		 .wanted = 8000,
		 .available = 0},
		"it cannot be preempted and wants 8 cores, but the quota of project "
		"vision leaves 0 cores to such jobs; it runs when one of them ends, "
		"with a higher quota, or if it may be preempted (job: "
		"--preemptible=yes; run: without --swap off)"},
	{{.reason = SL_PENDING_SHARE,
		 .project = 1,
		 .wanted = 1000,
		 .available = 0,
		 .ahead = 1},
		"it wants 1 GPU, more than is free, and project vision has 0 GPUs left "
		"of its fair share, so nothing is reclaimed for it; it runs when jobs "
		"end, or with a larger quota or weight"},
	{{.reason = SL_PENDING_NO_ROOM,
		 .wanted = 2500,
		 .available = 1000,
		 .would_reclaim = true,
		 .other = 2},
		"it wants 2.5 GPUs, but the nodes that it may use have only 1 GPU "
		"free for it; it runs when enough jobs there have ended; reclaiming what "
		"project text has above its fair share would be enough"},
	{{.reason = SL_PENDING_FRAGMENTS,
		 .wanted = 2000,
		 .available = 3200,
		 .would_reclaim = true},
		"it wants 2 GPUs together, but the 3.2 GPUs that are free are spread "
		"over several GPUs or nodes; it runs when jobs end or are moved "
		"together; reclaiming what others have above their fair shares would "
		"be enough"},
	{{.reason = SL_PENDING_GANG, .wanted = 4, .available = 1},
		"4 tasks must run together, and there is room for 1 task; it runs when "
		"all of them fit, or with a smaller --min"},
	{{.reason = SL_PENDING_PRIORITY, .project = 2, .ahead = 3},
		"3 jobs of higher priority in project text came before it; it runs after "
		"them, or "
		"with a higher priority"},
	{{.reason = SL_PENDING_POOL, .wanted = 20480, .available = 512},
		"20 GiB of other jobs would have to move to host memory for it, but "
		"512 MiB is left; it runs when jobs end, or when they may be "
		"terminated instead (--on-reclaim=terminate)"},
	{{.reason = SL_PENDING_RESUME_WAIT, .wanted = 12500000000},
		"it was stopped a moment ago, and may displace others in 12.5s; it "
		"runs as soon as there is room"},
	{{.reason = SL_PENDING_OVER_LIMIT,
		 .project = 1,
		 .wanted = 4000,
		 .available = 3000},
		"it wants 4 GPUs, but the limit of project vision is 3 GPUs; it runs "
		"with a higher limit, or if it asks for less"},
	{{.reason = SL_PENDING_BACK_OFF, .wanted = 4000000000},
		"it failed, and is retried in 4s"},
	{{.reason = SL_PENDING_NEVER, .wanted = 9000, .available = 8000},
		"one task wants 9 GPUs, but no node that it may use has more than 8 "
		"GPUs for it, even when empty; it runs if it asks for less, or may use "
		"other nodes or GPUs"},
	{{.reason = SL_PENDING_NO_PROJECT, .project = 77},
		"there is no project 77; create it with `sluice project apply`, or "
		"name another one"},
	{{.reason = SL_PENDING_PRIORITY, .project = 3},
		"no job of higher priority in project a?b?[1m came before it; it runs "
		"after them, "
		"or with a higher priority"},
	{{.reason = SL_PENDING_REASONS}, "?"},
};

static void sentences_with_their_numbers(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(sentences); i++) {
		char text[SL_EXPLAIN_MAX];

		assert_ptr_equal(sl_pending_text(&sentences[i].because, name_of, NULL,
					 text, sizeof(text)),
			text);
		assert_row_text("sentence", text, sentences[i].text);
	}
}

/* Every row, with everything as long as it gets and with nothing known. */
static void every_row_is_a_sentence(void **state)
{
	char name[256];

	memset(name, 'W', 255);
	name[255] = '\0';
	for (uint32_t i = 0; i < 2 * SL_PENDING_REASONS; i++) {
		struct sl_pending_because most = {.reason = i / 2,
			.project = UINT64_MAX,
			.other = UINT64_MAX,
			.resource = SL_RES_MEMORY,
			.wanted = INT64_MAX,
			.available = INT64_MAX,
			.ahead = UINT32_MAX,
			.would_reclaim = true};
		struct sl_pending_because none = {.reason = i / 2};
		char text[4 * SL_EXPLAIN_MAX], small[9];
		size_t length;

		(void)sl_pending_text(i % 2 ? &most : &none, i % 2 ? name_of : NULL, name,
			text, sizeof(text));
		length = strlen(text);
		if (strpbrk(text, "{}") || strchr(text, '\n') || strstr(text, "  "))
			fail_msg("reason %u: %s", i / 2, text);
		if (length >= SL_EXPLAIN_MAX || strchr(".!?, ", text[length - 1]))
			fail_msg("reason %u: %zu bytes: %s", i / 2, length, text);
		(void)sl_pending_text(&none, NULL, NULL, small, sizeof(small));
		assert_row_u64("a small buffer", strlen(small), 8);
		(void)sl_pending_text(&none, NULL, NULL, NULL, 0);
	}
}

static void what_reclaim_would_do(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_project_rules rules = {
		.quota = {{2000, -1, -1}}, .limit = {{-1, -1, -1}}};
	struct sl_quantity wants = {{2000, 4000, 0}}, has = {{1500, 0, 0}};
	struct sl_tree tree;
	uint32_t above, project;
	char text[SL_EXPLAIN_MAX];

	sl_tree_init(&tree, arena, 4);
	assert_int_equal(
		sl_tree_put(&tree, 1, SL_PROJECT_NONE, &rules, 0, &above), SL_TREE_OK);
	assert_int_equal(sl_tree_put(&tree, 2, above, &rules, 0, &project), SL_TREE_OK);
	(void)sl_reclaim_text(
		&tree, project, &wants, true, true, name_of, NULL, text, sizeof(text));
	assert_row_text("within", text,
		"other projects reclaim nothing from it: it is within the quota of "
		"project text");
	sl_tree_book(&tree, above, 1, &has, NULL, &has);
	(void)sl_reclaim_text(
		&tree, project, &wants, true, true, name_of, NULL, text, sizeof(text));
	assert_row_text("above, of the parent", text,
		"1.5 GPUs of it would be above the quota of project vision: when a "
		"project under its fair share wants them, it is parked, and resumes by "
		"itself");
	wants.of[SL_RES_GPU] = 4000;
	(void)sl_reclaim_text(
		&tree, project, &wants, true, false, name_of, NULL, text, sizeof(text));
	assert_row_text("above, its own", text,
		"2 GPUs of it would be above the quota of project text: when a project "
		"under its fair share wants them, it is terminated and queued again, "
		"to start from the beginning");
	(void)sl_reclaim_text(
		&tree, project, &wants, false, true, name_of, NULL, text, sizeof(text));
	assert_row_contains("never", text, "nothing is reclaimed from it");
	sl_arena_free(arena);
}

/* --- Jobs that no node could ever run. --- */

static struct sl_pending_because refused;

static void note(void *context, const struct sl_cluster_action *action)
{
	if (action->type == SL_CLUSTER_ACTION_REFUSE_JOB)
		refused = (struct sl_pending_because){.reason = action->refuse_job.reason,
			.resource = (enum sl_resource)action->refuse_job.resource,
			.wanted = action->refuse_job.wanted,
			.available = action->refuse_job.available};
}

static const struct {
	const char *name;
	struct sl_need need;
	enum sl_pending_reason reason;
	enum sl_resource resource;
	int64_t wanted, available;
} nevers[] = {
	{"fits", {.gpus = 4, .gpu_milli = 1000}, SL_PENDING_NONE, SL_RES_GPU, 0, 0},
	{"too many GPUs", {.gpus = 9, .gpu_milli = 1000}, SL_PENDING_NEVER, SL_RES_GPU,
		9000, 4000},
	{"parts of too many", {.gpus = 6, .gpu_milli = 100}, SL_PENDING_NEVER, SL_RES_GPU,
		600, 400},
	{"memory of more than one", {.gpus = 1, .gpu_mib = 1500}, SL_PENDING_NEVER,
		SL_RES_GPU, 1500, 1000},
	{"another model", {.gpus = 1, .gpu_milli = 500, .models = 4}, SL_PENDING_NEVER,
		SL_RES_GPU, 500, 0},
	/* The node without GPUs has that many cores, but it is not there that it can run. */
	{"cores beside its GPU", {.cpu_milli = 20000, .gpus = 1, .gpu_milli = 10},
		SL_PENDING_NEVER, SL_RES_CPU, 20000, 8000},
	{"host memory", {.cpu_milli = 9000, .memory_mib = 4096}, SL_PENDING_NEVER,
		SL_RES_MEMORY, 4096, 1024},
	{"nothing", {0}, SL_PENDING_VALUE, SL_RES_GPU, 0, 0},
};

static struct sl_cluster *two_nodes(struct sl_arena *arena)
{
	struct sl_cluster *cluster = sl_cluster_new(arena, 4, 4);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = 1;
	event.node_put.cpu_milli = 8000;
	event.node_put.memory_mib = 2048;
	event.node_put.gpus = 4;
	event.node_put.gpu_mib = 1000;
	sl_cluster_step(cluster, 1, &event, note, NULL);
	event.node_put.node = 2;
	event.node_put.cpu_milli = 32000;
	event.node_put.memory_mib = 1024;
	event.node_put.gpus = 0;
	sl_cluster_step(cluster, 1, &event, note, NULL);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	event.project_put.project = 1;
	event.project_put.rules.limit = (struct sl_quantity){{-1, -1, -1}};
	sl_cluster_step(cluster, 1, &event, note, NULL);
	return cluster;
}

static void what_never_runs_is_told_what_is_missing(void **state)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_cluster *cluster = two_nodes(arena);

	for (size_t i = 0; i < SL_ARRAY_LEN(nevers); i++) {
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

		refused = (struct sl_pending_because){0};
		event.job_add.job = 10 + i;
		event.job_add.project = 1;
		event.job_add.tasks = 1;
		event.job_add.need = nevers[i].need;
		sl_cluster_step(cluster, 2, &event, note, NULL);
		assert_row_u64(nevers[i].name, refused.reason, nevers[i].reason);
		assert_row_u64(nevers[i].name, refused.resource, nevers[i].resource);
		assert_row_u64(nevers[i].name, (uint64_t)refused.wanted,
			(uint64_t)nevers[i].wanted);
		assert_row_u64(nevers[i].name, (uint64_t)refused.available,
			(uint64_t)nevers[i].available);
	}
	sl_arena_free(arena);
}

static void outcomes_in_words(void **state)
{
	for (uint32_t i = 0; i <= SL_TREE_IN_USE; i++)
		assert_string_not_equal(sl_tree_outcome_text(i), "?");
	assert_string_equal(sl_tree_outcome_text(SL_TREE_IN_USE + 1), "?");
	assert_string_equal(sl_resource_name(SL_RES_CPU), "cpu");
	assert_string_equal(sl_resource_name(SL_RESOURCES), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_in_words),
		cmocka_unit_test(sentences_with_their_numbers),
		cmocka_unit_test(every_row_is_a_sentence),
		cmocka_unit_test(what_reclaim_would_do),
		cmocka_unit_test(what_never_runs_is_told_what_is_missing),
		cmocka_unit_test(outcomes_in_words),
	};

	return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
