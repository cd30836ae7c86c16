/*
 * projects - turns Project resources into projects of the machine
 *
 * Projects are added when the machine is made, parents first; a change of one rebuilds the machine.
 * A project with an error (a cycle, an unknown parent, a namespace of another project) is left out
 * with all below it, and its conditions have the reason. A namespace without a project belongs to
 * project default, which has no guarantee unless there is a Project of that name.
 *
 * KAI's Queues become projects, too, if the API server has them and no Project has the same name. A
 * pod names its Queue by a label.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/scheduler/queue.h"
#include "policy/quota/explain.h"
#include "wire/wire.h"

#define DEFAULT     "default"
#define WEIGHT_MOST 1000000

/* A namespace and the name of its project: that Project may be deleted before the next cycle. */
struct space {
	struct sl_ks_named named;
	char project[SL_FACTS_NAME];
};

/* --- Events of the watch. ----------------------------------------------------------------- */

static struct sl_ks_project *meet(struct sl_ks *ks, const char *name)
{
	struct sl_ks_project *project = calloc(1, sizeof(*project));

	if (!project)
		return NULL;
	project->named.key = strdup(name);
	if (!project->named.key || !sl_ks_put(&ks->projects_by_name, project)) {
		free(project->named.key);
		free(project);
		return NULL;
	}
	project->id = sl_ks_new_id(ks);
	project->ks = ks;
	sl_list_push_tail(&ks->projects, &project->link);
	return project;
}

static bool is_gone(const struct sl_ks_project *project)
{
	return !project->object && !project->queue;
}

/* Takes object; NULL: deleted. */
static void take(struct sl_ks *ks, const char *name, bool is_queue, json_t *object)
{
	struct sl_ks_project *project = sl_ks_find(&ks->projects_by_name, name);
	json_t **slot;

	if (!project && object)
		project = meet(ks, name);
	if (!project) {
		json_decref(object);
		return;
	}
	slot = is_queue ? &project->queue : &project->object;
	/* A change of its status decides nothing. */
	if (!*slot || !object ||
		!json_equal(json_object_get(*slot, "spec"),
			json_object_get(object, "spec"))) {
		ks->rebuild = true;
		sl_ks_awake(ks);
	}
	json_decref(*slot);
	*slot = object;
	if (is_gone(project))
		sl_ks_drop_project(ks, project);
}

void sl_ks_on_project(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	take(ks, sl_kube_text_at(object, "metadata", "name", NULL), false,
		kind == SL_KUBE_DELETED ? NULL : json_incref(object));
}

void sl_ks_on_queue(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	take(ks, sl_kube_text_at(object, "metadata", "name", NULL), true,
		kind == SL_KUBE_DELETED ? NULL : sl_queue_to_project(object));
}

/* The object that counts. */
static const json_t *object_of(const struct sl_ks_project *project)
{
	return project->object ? project->object : project->queue;
}

/* --- Messages. ----------------------------------------------------------------------------- */

static void SL_PRINTF(2, 3)
	complain(struct sl_ks_project *project, const char *format, ...)
{
	va_list args;

	if (project->trouble[0])
		return;
	va_start(args, format);
	(void)vsnprintf(project->trouble, sizeof(project->trouble), format, args);
	va_end(args);
	/* JSON needs whole characters. */
	sl_text_tame(project->trouble);
}

/* Thousandths of a GPU; absent: the value if the key is missing. */
static int64_t gpus_of(struct sl_ks_project *project, const char *key, int64_t absent)
{
	const json_t *value = sl_kube_at(object_of(project), "spec", key, NULL);
	uint64_t milli = 0;
	char text[32];

	if (!value)
		return absent;
	if (!project->object && json_integer_value(value) == -1)
		return SL_QUOTA_ALL;
	(void)snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
	if (sl_kube_quantity_parse_milli(
		    json_is_integer(value)
			    ? text
			    : (json_string_value(value) ? json_string_value(value) : ""),
		    &milli) &&
		milli <= SL_QUOTA_MOST)
		return (int64_t)milli;
	complain(project, "its %s is no number of GPUs; write one such as 4 or \"2.5\"",
		key);
	return absent;
}

static struct sl_project_rules rules_of(struct sl_ks_project *project)
{
	const json_t *weight = sl_kube_at(object_of(project), "spec", "weight", NULL);
	const json_int_t given = weight ? json_integer_value(weight) : 1;
	struct sl_project_rules rules = {0};

	if (given < 0 || given > WEIGHT_MOST)
		complain(project, "its weight is not between 0 and %d", WEIGHT_MOST);
	for (int r = 0; r < SL_RESOURCES; r++) {
		rules.quota.of[r] = rules.limit.of[r] = SL_QUOTA_ALL;
		rules.weight[r] = (uint32_t)given;
	}
	rules.quota.of[SL_RES_GPU] = gpus_of(project, "quota", 0);
	rules.limit.of[SL_RES_GPU] = gpus_of(project, "limit", SL_QUOTA_ALL);
	if (!project->object)
		rules.priority = (int32_t)json_integer_value(
			sl_kube_at(project->queue, "spec", "priority", NULL));
	return rules;
}

static void put(struct sl_ks *ks, uint64_t id, uint64_t parent,
	const struct sl_project_rules *rules)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};

	event.project_put.project = id;
	event.project_put.parent = parent;
	event.project_put.rules = *rules;
	sl_ks_step(ks, &event);
}

/* Queues may be guaranteed more than their parent; then they share the parent's quota. */
static void fit_quota(struct sl_ks_project *project, struct sl_ks_project *parent,
	struct sl_project_rules *rules)
{
	int64_t *quota = &rules->quota.of[SL_RES_GPU];

	if (parent && parent->left != SL_QUOTA_ALL) {
		if (!project->object && *quota > parent->left)
			*quota = parent->left;
		if (*quota > 0)
			parent->left -= *quota < parent->left ? *quota : parent->left;
	}
	project->left = *quota;
}

/* Adds its ancestors first. */
static void put_project(struct sl_ks *ks, struct sl_ks_project *project)
{
	const char *above = sl_kube_text_at(object_of(project), "spec", "parent", NULL);
	struct sl_ks_project *parent =
		above[0] ? sl_ks_find(&ks->projects_by_name, above) : NULL;
	struct sl_project_rules rules;

	if (project->visited)
		return;
	project->visited = 1;
	rules = rules_of(project);
	if (above[0] && !parent)
		complain(project, "its parent, Project %.63s, does not exist", above);
	if (parent && parent->visited == 1)
		complain(project, "it is its own ancestor: its parent %.63s is below it",
			above);
	else if (parent)
		put_project(ks, parent);
	if (parent && parent->visited == 2 && parent->trouble[0])
		complain(project, "its parent %.63s is refused: %.120s", above,
			parent->trouble);
	project->visited = 2;
	if (project->trouble[0])
		return;
	fit_quota(project, parent, &rules);
	ks->putting = project;
	put(ks, project->id, parent ? parent->id : 0, &rules);
	ks->putting = NULL;
}

void sl_ks_refuse_project(struct sl_ks *ks, uint64_t id, uint32_t outcome)
{
	if (ks->putting && ks->putting->id == id)
		complain(ks->putting, "%s", sl_tree_outcome_text(outcome));
}

/* --- Owners of namespaces. ---------------------------------------------------------------- */

static void free_space(void *at)
{
	struct space *space = at;

	free(space->named.key);
	free(space);
}

void sl_ks_free_spaces(struct sl_ks *ks)
{
	tdestroy(sl_steal(&ks->spaces_by_name), free_space);
}

static void assign(struct sl_ks *ks, struct sl_ks_project *project, const char *name)
{
	struct space *space = sl_ks_find(&ks->spaces_by_name, name);

	if (space) {
		complain(project, "namespace %.63s belongs to Project %.63s already",
			name, space->project);
		return;
	}
	space = calloc(1, sizeof(*space));
	if (!space)
		return;
	sl_wire_str(space->project, sizeof(space->project), project->named.key);
	space->named.key = strdup(name);
	if (!space->named.key || !sl_ks_put(&ks->spaces_by_name, space))
		free_space(space);
}

/* The oldest project has the namespace; at equal age the first by name. */
static int by_age(const void *a, const void *b)
{
	const struct sl_ks_project *left = *(struct sl_ks_project *const *)a;
	const struct sl_ks_project *right = *(struct sl_ks_project *const *)b;
	int r = strcmp(
		sl_kube_text_at(object_of(left), "metadata", "creationTimestamp", NULL),
		sl_kube_text_at(object_of(right), "metadata", "creationTimestamp", NULL));

	return r ? r : strcmp(left->named.key, right->named.key);
}

static void assign_all(struct sl_ks *ks, struct sl_ks_project *project)
{
	const json_t *name;
	size_t i;

	json_array_foreach(
		sl_kube_at(project->object, "spec", "namespaces", NULL), i, name)
	{
		if (json_string_value(name))
			assign(ks, project, json_string_value(name));
	}
}

static void warn_of_quota(struct sl_ks *ks, struct sl_ks_project *project)
{
	int64_t quota = gpus_of(project, "quota", 0), there = 0;
	char has[48], wants[48];

	project->warning[0] = '\0';
	sl_list_foreach (link, &ks->nodes) {
		const struct sl_ks_node *node =
			SL_LIST_ENTRY(link, struct sl_ks_node, link);

		there += node->is_there ? (int64_t)node->gpus * SL_FIT_WHOLE : 0;
	}
	if (quota <= there)
		return;
	(void)snprintf(project->warning, sizeof(project->warning),
		"its quota is %s, and the cluster has %s",
		sl_resource_format(SL_RES_GPU, quota, wants, sizeof(wants)),
		sl_resource_format(SL_RES_GPU, there, has, sizeof(has)));
}

void sl_ks_add_projects(struct sl_ks *ks)
{
	struct sl_project_rules nothing = {.weight = {1, 1, 1, 1}},
				all = {.weight = {1, 1, 1, 1}};
	sl_cleanup(sl_freep) struct sl_ks_project **projects = NULL;
	size_t count = 0;

	for (int r = 0; r < SL_RESOURCES; r++)
		nothing.limit.of[r] = all.quota.of[r] = all.limit.of[r] = SL_QUOTA_ALL;
	nothing.quota = all.quota;
	nothing.quota.of[SL_RES_GPU] = 0;
	put(ks, ks->others, 0, &all);
	put(ks, ks->nameless.id, 0, &nothing);
	sl_ks_free_spaces(ks);
	sl_list_foreach (link, &ks->projects)
		count++;
	projects = calloc(count + 1, sizeof(struct sl_ks_project *));
	if (!projects)
		return;
	count = 0;
	sl_list_foreach (link, &ks->projects) {
		projects[count] = SL_LIST_ENTRY(link, struct sl_ks_project, link);
		projects[count]->visited = 0;
		projects[count++]->trouble[0] = '\0';
	}
	qsort(projects, count, sizeof(projects[0]), by_age);
	for (size_t i = 0; i < count; i++)
		assign_all(ks, projects[i]);
	for (size_t i = 0; i < count; i++)
		put_project(ks, projects[i]);
	for (size_t i = 0; i < count; i++) {
		warn_of_quota(ks, projects[i]);
		/* KAI writes the status of its Queues. */
		if (!projects[i]->object && projects[i]->trouble[0])
			sl_info("Queue %s is refused: %s", projects[i]->named.key,
				projects[i]->trouble);
	}
}

/* Is there such a Queue of KAI? Without Queues its label means nothing. */
static bool has_queue(struct sl_ks *ks, const char *name)
{
	const struct sl_ks_project *project =
		name[0] ? sl_ks_find(&ks->projects_by_name, name) : NULL;

	return project && project->queue;
}

static const char *named_by(struct sl_ks *ks, const struct sl_facts_pod *pod)
{
	const struct space *space;

	if (pod->project[0])
		return pod->project;
	if (has_queue(ks, pod->queue))
		return pod->queue;
	space = sl_ks_find(&ks->spaces_by_name, pod->namespace);
	return space ? space->project : "";
}

struct sl_ks_project *sl_ks_project_of(
	struct sl_ks *ks, const struct sl_facts_pod *pod, bool *is_assigned)
{
	struct sl_ks_project *project =
		sl_ks_find(&ks->projects_by_name, named_by(ks, pod));

	*is_assigned = true;
	if (project && !project->trouble[0])
		return project;
	*is_assigned = false;
	project = sl_ks_find(&ks->projects_by_name, DEFAULT);
	return project && !project->trouble[0] ? project : &ks->nameless;
}

const char *sl_ks_project_name(void *context, uint64_t id)
{
	struct sl_ks *ks = context;

	sl_list_foreach (link, &ks->projects) {
		const struct sl_ks_project *project =
			SL_LIST_ENTRY(link, struct sl_ks_project, link);

		if (project->id == id)
			return project->named.key;
	}
	return id == ks->others ? "of other schedulers" : DEFAULT;
}

/* --- Conditions. -------------------------------------------------------------------------- */

static void on_told(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_project *project = context;

	if (answer->error[0])
		sl_info("Project %s: %s", project->named.key, answer->error);
}

static json_t *condition(
	const char *type, bool is_true, const char *reason, const char *text)
{
	char when[32];
	time_t now = time(NULL);
	struct tm utc = {0};

	(void)gmtime_r(&now, &utc);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_pack("{ss ss ss ss ss}", "type", type, "status",
		is_true ? "True" : "False", "reason", reason, "message", text,
		"lastTransitionTime", when);
}

/* Does its condition have that text already? */
static bool says(const struct sl_ks_project *project, const char *type, const char *text)
{
	const json_t *one;
	size_t i;

	json_array_foreach(
		sl_kube_at(project->object, "status", "conditions", NULL), i, one)
	{
		if (strcmp(sl_kube_text_at(one, "type", NULL), type) == 0)
			return strcmp(sl_kube_text_at(one, "message", NULL), text) == 0;
	}
	return false;
}

static void tell_project(struct sl_ks *ks, struct sl_ks_project *project)
{
	const char *taken =
		project->trouble[0] ? project->trouble : "it is as it should be";
	const char *kept =
		project->warning[0] ? project->warning : "the cluster has that many GPUs";
	json_t *body;
	char path[400];

	if (project->call ||
		(says(project, "Accepted", taken) && says(project, "Satisfiable", kept)))
		return;
	(void)snprintf(path, sizeof(path), "/apis/sluice.dev/v1/projects/%s/status",
		project->named.key);
	body = json_pack("{s{s[oo]}}", "status", "conditions",
		condition("Accepted", !project->trouble[0],
			project->trouble[0] ? "Invalid" : "Valid", taken),
		condition("Satisfiable", !project->warning[0],
			project->warning[0] ? "QuotaAboveCluster" : "QuotaFits", kept));
	if (sl_kube_call(ks->kube,
		    &(struct sl_kube_request){.verb = SL_KUBE_MERGE,
			    .path = path,
			    .body = body,
			    .done = on_told,
			    .context = project},
		    &project->call) < 0)
		sl_info("the status of Project %s cannot be written", project->named.key);
	json_decref(body);
}

void sl_ks_tell_projects(struct sl_ks *ks)
{
	if (!ks->cluster)
		return;
	sl_list_foreach (link, &ks->projects) {
		struct sl_ks_project *project =
			SL_LIST_ENTRY(link, struct sl_ks_project, link);

		if (!project->object)
			continue;
		warn_of_quota(ks, project);
		tell_project(ks, project);
	}
}
