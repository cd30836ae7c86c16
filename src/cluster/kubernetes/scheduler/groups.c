/*
 * groups - PodGroup of scheduling.k8s.io: how many pods of a gang must run together
 *
 * If the API server does not serve PodGroups no pod can name one, and labels are used (facts.h).
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

/* By "NAMESPACE/NAME". */
struct group {
	struct sl_ks_named named;
	struct sl_link link;
	uint32_t least;
};

static uint32_t read_least(const json_t *object)
{
	const json_t *gang = sl_kube_at(object, "spec", "schedulingPolicy", "gang", NULL);
	json_int_t least = json_integer_value(json_object_get(gang, "minCount"));

	/* The other policy, basic, is for pods that start independently. */
	return gang && least > 0 && least < 1000000 ? (uint32_t)least : 1;
}

static void drop(struct sl_ks *ks, struct group *group)
{
	sl_list_unlink(&group->link);
	sl_ks_take(&ks->groups_by_name, group);
	free(group->named.key);
	free(group);
}

static struct group *make(struct sl_ks *ks, const char *key)
{
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->named.key = strdup(key);
	if (group->named.key && sl_ks_put(&ks->groups_by_name, group)) {
		sl_list_push_tail(&ks->groups, &group->link);
		return group;
	}
	free(group->named.key);
	free(group);
	return NULL;
}

void sl_ks_on_group(struct sl_ks *ks, enum sl_kube_event_kind kind, json_t *object)
{
	const char *namespace = sl_kube_text_at(object, "metadata", "namespace", NULL);
	char key[SL_KS_NAME_MAX], job_key[SL_KS_NAME_MAX];
	struct sl_ks_job *job;
	struct group *group;

	(void)sl_ks_key_of(key, object);
	group = sl_ks_find(&ks->groups_by_name, key);
	if (kind == SL_KUBE_DELETED && group)
		drop(ks, group);
	else if (kind != SL_KUBE_DELETED && !group)
		group = make(ks, key);
	if (kind != SL_KUBE_DELETED && group)
		group->least = read_least(object);
	(void)snprintf(job_key, sizeof(job_key), "%s/" SL_KS_GROUP "%s", namespace,
		sl_kube_text_at(object, "metadata", "name", NULL));
	job = sl_ks_find(&ks->jobs_by_name, job_key);
	if (job)
		sl_ks_job_changed(ks, job);
}

uint32_t sl_ks_group_least(struct sl_ks *ks, const struct sl_facts_pod *pod)
{
	char key[SL_KS_NAME_MAX];
	const struct group *group = sl_ks_find(
		&ks->groups_by_name, sl_ks_key(key, pod->namespace, pod->group));

	return group ? group->least : 0;
}

void sl_ks_free_groups(struct sl_ks *ks)
{
	sl_list_foreach_safe (link, &ks->groups)
		drop(ks, SL_LIST_ENTRY(link, struct group, link));
}
