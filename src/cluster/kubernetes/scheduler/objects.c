/*
 * objects - maps by name, and the objects in them
 *
 * glibc's search trees suffice: they are red-black, and 20,000 names need 15 comparisons.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/match.h"

static int compare(const void *a, const void *b)
{
	const struct sl_ks_named *left = a, *right = b;

	return strcmp(left->key, right->key);
}

void *sl_ks_find(void *const *map, const char *key)
{
	struct sl_ks_named named = {(char *)key};
	void *found = tfind(&named, map, compare);

	return found ? *(void **)found : NULL;
}

bool sl_ks_put(void **map, void *object)
{
	return tsearch(object, map, compare);
}

void sl_ks_take(void **map, void *object)
{
	(void)tdelete(object, map, compare);
}

bool sl_ks_retire(void **map, void *object, const char *uid)
{
	struct sl_ks_named *named = object;
	char *key = NULL;

	/* No key of a present object has a blank. */
	if (asprintf(&key, "%s %s", named->key, uid) < 0)
		return false;
	sl_ks_take(map, named);
	free(named->key);
	named->key = key;
	return true;
}

const char *sl_ks_key(char buf[SL_KS_NAME_MAX], const char *namespace, const char *name)
{
	(void)snprintf(buf, SL_KS_NAME_MAX, "%s/%s", namespace, name);
	return buf;
}

const char *sl_ks_key_of(char buf[SL_KS_NAME_MAX], const json_t *object)
{
	return sl_ks_key(buf, sl_kube_text_at(object, "metadata", "namespace", NULL),
		sl_kube_text_at(object, "metadata", "name", NULL));
}

/* A zeroed object of that key in the map. */
static void *make(void **map, const char *key, size_t size)
{
	struct sl_ks_named *named = calloc(1, size);

	if (!named)
		return NULL;
	named->key = strdup(key);
	if (named->key && sl_ks_put(map, named))
		return named;
	free(named->key);
	free(named);
	return NULL;
}

static void unmake(void **map, struct sl_ks_named *named)
{
	sl_ks_take(map, named);
	free(named->key);
	free(named);
}

struct sl_ks_node *sl_ks_node_of(struct sl_ks *ks, const char *name)
{
	struct sl_ks_node *node = sl_ks_find(&ks->nodes_by_name, name);

	if (node)
		return node;
	node = make(&ks->nodes_by_name, name, sizeof(*node));
	if (!node)
		return NULL;
	node->id = sl_ks_new_id(ks);
	sl_list_push_tail(&ks->nodes, &node->link);
	return node;
}

struct sl_ks_claim *sl_ks_claim_of(struct sl_ks *ks, const char *key)
{
	struct sl_ks_claim *claim = sl_ks_find(&ks->claims_by_name, key);

	if (claim)
		return claim;
	claim = make(&ks->claims_by_name, key, sizeof(*claim));
	if (!claim)
		return NULL;
	sl_list_init(&claim->changed);
	sl_list_push_tail(&ks->claims, &claim->link);
	return claim;
}

struct sl_ks_pod *sl_ks_pod_of(struct sl_ks *ks, const char *key)
{
	struct sl_ks_pod *pod = sl_ks_find(&ks->pods_by_name, key);

	if (pod)
		return pod;
	pod = make(&ks->pods_by_name, key, sizeof(*pod));
	if (!pod)
		return NULL;
	pod->ks = ks;
	sl_list_init(&pod->in_job);
	sl_list_init(&pod->turn);
	sl_list_push_tail(&ks->pods, &pod->link);
	return pod;
}

struct sl_ks_job *sl_ks_job_of(struct sl_ks *ks, const char *key, bool is_gang)
{
	struct sl_ks_job *job = sl_ks_find(&ks->jobs_by_name, key);

	if (job)
		return job;
	job = make(&ks->jobs_by_name, key, sizeof(*job));
	if (!job)
		return NULL;
	job->is_gang = is_gang;
	sl_list_init(&job->changed);
	sl_list_init(&job->pods);
	sl_list_push_tail(&ks->jobs, &job->link);
	return job;
}

struct sl_ks_rules *sl_ks_rules_of(struct sl_ks *ks, const json_t *pod)
{
	json_t *json = sl_match_rules(pod);
	sl_cleanup(sl_freep) char *text = json ? sl_match_text(json) : NULL;
	struct sl_ks_rules *rules = text ? sl_ks_find(&ks->rules_by_text, text) : NULL;

	if (!rules && text) {
		rules = make(&ks->rules_by_text, text, sizeof(*rules));
		if (rules) {
			rules->json = json_incref(json);
			sl_list_push_tail(&ks->rules, &rules->link);
			sl_ks_add_rules(ks, rules);
		}
	}
	json_decref(json);
	return rules;
}

static void drop_rules(struct sl_ks *ks, struct sl_ks_rules *rules)
{
	sl_list_unlink(&rules->link);
	sl_ks_forget_rules(ks, rules);
	json_decref(rules->json);
	unmake(&ks->rules_by_text, &rules->named);
}

void sl_ks_drop_unused_rules(struct sl_ks *ks)
{
	sl_list_foreach_safe (link, &ks->rules) {
		struct sl_ks_rules *rules = SL_LIST_ENTRY(link, struct sl_ks_rules, link);

		if (!rules->pods)
			drop_rules(ks, rules);
	}
}

void sl_ks_drop_node(struct sl_ks *ks, struct sl_ks_node *node)
{
	sl_list_unlink(&node->link);
	json_decref(node->labels);
	unmake(&ks->nodes_by_name, &node->named);
}

void sl_ks_drop_claim(struct sl_ks *ks, struct sl_ks_claim *claim)
{
	if (claim->is_there || claim->pod || claim->holder)
		return;
	sl_list_unlink(&claim->link);
	sl_list_unlink(&claim->changed);
	sl_facts_claim_fini(&claim->facts);
	unmake(&ks->claims_by_name, &claim->named);
}

void sl_ks_drop_pod(struct sl_ks *ks, struct sl_ks_pod *pod)
{
	sl_kube_cancel(&pod->call);
	sl_kube_cancel(&pod->order_call);
	ks->telling -= pod->tell_call != NULL;
	sl_kube_cancel(&pod->tell_call);
	if (ks->teller_at == pod)
		ks->teller_at = NULL;
	json_decref(pod->extended);
	if (pod->rules)
		pod->rules->pods--;
	sl_list_unlink(&pod->link);
	sl_list_unlink(&pod->in_job);
	sl_list_unlink(&pod->turn);
	unmake(&ks->pods_by_name, &pod->named);
}

void sl_ks_drop_job(struct sl_ks *ks, struct sl_ks_job *job)
{
	sl_list_unlink(&job->link);
	sl_list_unlink(&job->changed);
	free(job->task);
	unmake(&ks->jobs_by_name, &job->named);
}

void sl_ks_drop_project(struct sl_ks *ks, struct sl_ks_project *project)
{
	sl_list_unlink(&project->link);
	sl_kube_cancel(&project->call);
	json_decref(project->object);
	json_decref(project->queue);
	unmake(&ks->projects_by_name, &project->named);
}

void sl_ks_free_objects(struct sl_ks *ks)
{
	/* First, so nodes need not remove the rules. */
	sl_list_foreach_safe (link, &ks->nodes)
		sl_ks_drop_node(ks, SL_LIST_ENTRY(link, struct sl_ks_node, link));
	sl_list_foreach_safe (link, &ks->pods)
		sl_ks_drop_pod(ks, SL_LIST_ENTRY(link, struct sl_ks_pod, link));
	sl_ks_drop_unused_rules(ks);
	sl_list_foreach_safe (link, &ks->jobs)
		sl_ks_drop_job(ks, SL_LIST_ENTRY(link, struct sl_ks_job, link));
	sl_list_foreach_safe (link, &ks->claims) {
		struct sl_ks_claim *claim = SL_LIST_ENTRY(link, struct sl_ks_claim, link);

		claim->is_there = false;
		claim->pod = NULL;
		claim->holder = 0;
		sl_ks_drop_claim(ks, claim);
	}
	sl_list_foreach_safe (link, &ks->projects)
		sl_ks_drop_project(ks, SL_LIST_ENTRY(link, struct sl_ks_project, link));
}
