/*
 * publish - a watch, and one call at a time
 *
 * step() compares the wanted slices with the known ones and starts the next call; it runs again
 * after each event. A write begins by reading the Node, whose UID the owner reference needs. After
 * a failure or a recent write, reading the Node is delayed; the write after that has the newest
 * content.
 *
 * An API server without a feature that the slice uses drops fields. Such a server's version of the
 * slice is kept as `accepted`; otherwise each comparison would find a difference and write again.
 */
#include "cluster/kubernetes/node/publish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cluster/kubernetes/api/watch.h"

/* After this time without a write the next one is not delayed. */
#define QUIET (10 * SL_S)

struct sl_kube_publisher {
	struct sl_kube *kube;
	struct sl_kube_watch *watch;
	struct sl_kube_call *call;
	char *node, *name;
	json_t *want;          /* a spec; NULL before the first set */
	json_t *sent;          /* being written */
	json_t *accepted;      /* the server's version of `want`, if different */
	json_t *have;          /* the slice on the server, or NULL */
	json_t *strays;        /* set of names: to be deleted */
	char *stray;           /* being deleted */
	json_int_t generation; /* the highest seen */
	struct sl_kube_backoff backoff;
	sl_ns wrote_at; /* 0: never */
	bool has_failed;
	unsigned int retry_after_s;
	struct sl_error trouble;
};

static void step(struct sl_kube_publisher *p);

static json_int_t generation_of(const json_t *slice)
{
	return json_integer_value(sl_kube_at(slice, "spec", "pool", "generation", NULL));
}

static const char *meta(const json_t *object, const char *key)
{
	return sl_kube_text_at(object, "metadata", key, NULL);
}

static void set_have(struct sl_kube_publisher *p, json_t *slice)
{
	json_decref(p->have);
	p->have = slice ? json_incref(slice) : NULL;
	if (generation_of(slice) > p->generation)
		p->generation = generation_of(slice);
}

bool sl_kube_publisher_is_current(const struct sl_kube_publisher *p)
{
	const json_t *spec = sl_kube_at(p->have, "spec", NULL);

	if (!p->want || !spec)
		return false;
	return sl_kube_slice_is_equal(p->want, spec) ||
	       (p->accepted && sl_kube_slice_is_equal(p->accepted, spec));
}

const char *sl_kube_publisher_trouble(const struct sl_kube_publisher *p)
{
	return p->trouble.text;
}

/* --- changes by others ---------------------------------------------------------------------- */

static bool is_ours(const struct sl_kube_publisher *p, const json_t *slice)
{
	return strcmp(sl_kube_text_at(slice, "spec", "driver", NULL), SL_KUBE_DRIVER) ==
		       0 &&
	       strcmp(sl_kube_text_at(slice, "spec", "nodeName", NULL), p->node) == 0;
}

static void meet(struct sl_kube_publisher *p, json_t *slice)
{
	const char *name = meta(slice, "name");

	if (!is_ours(p, slice))
		return;
	if (strcmp(name, p->name) != 0) {
		(void)json_object_set_new(p->strays, name, json_true());
		return;
	}
	(void)json_object_del(p->strays, name);
	/* The watch's slice may be older than the answer to an earlier write; the watch's next
	 * event then corrects it. Comparing versions does not help: they go back when etcd is
	 * restored. */
	set_have(p, slice);
}

static void miss(struct sl_kube_publisher *p, const json_t *slice)
{
	const char *name = meta(slice, "name");

	(void)json_object_del(p->strays, name);
	if (strcmp(name, p->name) == 0 &&
		strcmp(meta(slice, "uid"), meta(p->have, "uid")) == 0)
		set_have(p, NULL);
}

static void on_event(void *context, const struct sl_kube_event *event)
{
	struct sl_kube_publisher *p = context;

	switch (event->kind) {
	case SL_KUBE_ADDED:
	case SL_KUBE_MODIFIED: meet(p, event->object); break;
	case SL_KUBE_DELETED: miss(p, event->object); break;
	case SL_KUBE_SYNCED: break;
	case SL_KUBE_TROUBLE:
		if (!sl_kube_watch_is_synced(p->watch))
			sl_error_set(&p->trouble, "%s", event->error);
		return;
	}
	step(p);
}

/* --- writes -------------------------------------------------------------------------------- */

static void note_failure(struct sl_kube_publisher *p, const struct sl_kube_answer *answer)
{
	p->has_failed = true;
	p->retry_after_s = answer->retry_after_s;
	sl_error_set(&p->trouble, "%s", answer->error);
	sl_info("ResourceSlice %s: %s", p->name, answer->error);
}

/* At once; but after a failure, or when writes follow each other, with growing waits. */
static sl_ns wait_before(struct sl_kube_publisher *p)
{
	bool is_quiet = !p->wrote_at || sl_clock_now() - p->wrote_at > QUIET;
	unsigned int retry_after_s = p->retry_after_s;
	bool has_failed = p->has_failed;

	p->has_failed = false;
	p->retry_after_s = 0;
	if (has_failed || !is_quiet)
		return sl_kube_backoff_next(&p->backoff, retry_after_s);
	p->backoff = (struct sl_kube_backoff){0};
	return 0;
}

static void ask(struct sl_kube_publisher *p, enum sl_kube_verb verb, const json_t *body,
	const char *collection, const char *name, sl_kube_done_fn done, sl_ns after)
{
	sl_cleanup(sl_freep) char *path = NULL;
	struct sl_kube_request request = {
		.verb = verb, .body = body, .done = done, .context = p, .after = after};
	int r = -ENOMEM;

	if (asprintf(&path, "%s%s%s", collection, *name ? "/" : "", name) < 0)
		path = NULL;
	request.path = path;
	if (path)
		r = sl_kube_call(p->kube, &request, &p->call);
	/* The next change, or the next event of the watch, tries again. */
	if (r < 0 && r != -ESHUTDOWN)
		sl_error_set(&p->trouble, "cannot ask for %s: %s", name, strerror(-r));
}

static void note_accepted(struct sl_kube_publisher *p, const json_t *slice)
{
	const json_t *spec = sl_kube_at(slice, "spec", NULL);

	if (p->sent != p->want || sl_kube_slice_is_equal(p->want, spec))
		return;
	json_decref(p->accepted);
	p->accepted = json_deep_copy(spec);
	sl_warning(
		"the API server dropped parts of ResourceSlice %s; sharing by capacity "
		"needs Kubernetes 1.36",
		p->name);
}

/* The slice of this driver that the watch has not shown yet, or one of another driver or node. */
static void on_namesake(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_publisher *p = context;

	if (*answer->error)
		note_failure(p, answer);
	else if (is_ours(p, answer->body))
		meet(p, answer->body);
	else
		(void)json_object_set_new(p->strays, p->name, json_true());
	step(p);
}

static void on_written(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_publisher *p = context;

	if (*answer->error) {
		note_failure(p, answer);
		if (answer->status == 404)
			set_have(p, NULL);
	} else {
		p->trouble.text[0] = '\0';
		note_accepted(p, answer->body);
		meet(p, answer->body);
	}
	json_decref(sl_steal(&p->sent));
	if (answer->status == 409)
		ask(p, SL_KUBE_GET, NULL, SL_KUBE_SLICES_PATH, p->name, on_namesake, 0);
	step(p);
}

/* The slice to write: the present one, with the wanted spec and the Node as owner. */
static json_t *slice_of(struct sl_kube_publisher *p, const json_t *node)
{
	json_t *slice = p->have ? json_deep_copy(p->have) : json_object();
	json_t *spec = json_deep_copy(p->want), *metadata;

	(void)json_object_set_new(json_object_get(spec, "pool"), "generation",
		json_integer(p->generation + 1));
	(void)json_object_set_new(slice, "apiVersion", json_string("resource.k8s.io/v1"));
	(void)json_object_set_new(slice, "kind", json_string("ResourceSlice"));
	(void)json_object_set_new(slice, "spec", spec);
	if (!p->have)
		(void)json_object_set_new(slice, "metadata", json_object());
	metadata = json_object_get(slice, "metadata");
	(void)json_object_set_new(metadata, "name", json_string(p->name));
	(void)json_object_set_new(metadata, "ownerReferences",
		json_pack("[{sssssssssb}]", "apiVersion", "v1", "kind", "Node", "name",
			p->node, "uid", meta(node, "uid"), "controller", true));
	return slice;
}

static void on_node(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_publisher *p = context;
	json_t *slice;

	if (*answer->error) {
		note_failure(p, answer);
		step(p);
		return;
	}
	/* Another writer may have done it, or a stray appeared. */
	if (sl_kube_publisher_is_current(p) || json_object_size(p->strays) > 0) {
		step(p);
		return;
	}
	slice = slice_of(p, answer->body);
	json_decref(p->sent);
	p->sent = json_incref(p->want);
	p->wrote_at = sl_clock_now();
	ask(p, p->have ? SL_KUBE_PUT : SL_KUBE_POST, slice, SL_KUBE_SLICES_PATH,
		p->have ? p->name : "", on_written, 0);
	json_decref(slice);
}

static void on_stray_gone(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_publisher *p = context;

	if (*answer->error && answer->status != 404)
		note_failure(p, answer);
	else
		(void)json_object_del(p->strays, p->stray);
	free(sl_steal(&p->stray));
	step(p);
}

static void step(struct sl_kube_publisher *p)
{
	void *stray = json_object_iter(p->strays);

	if (p->call || !sl_kube_watch_is_synced(p->watch))
		return;
	if (stray) {
		free(p->stray);
		p->stray = strdup(json_object_iter_key(stray));
		ask(p, SL_KUBE_DELETE, NULL, SL_KUBE_SLICES_PATH,
			json_object_iter_key(stray), on_stray_gone,
			p->has_failed ? wait_before(p) : 0);
		return;
	}
	if (!p->want)
		return;
	if (!sl_kube_publisher_is_current(p)) {
		ask(p, SL_KUBE_GET, NULL, "/api/v1/nodes", p->node, on_node,
			wait_before(p));
		return;
	}
	p->trouble.text[0] = '\0';
}

/* --- the publisher ------------------------------------------------------------------------- */

int sl_kube_publisher_set(
	struct sl_kube_publisher *p, const struct sl_kube_inventory *inventory)
{
	json_t *want = NULL;
	int r = sl_kube_slice_spec(&want, p->node, inventory);

	if (r < 0)
		return r;
	if (p->want && sl_kube_slice_is_equal(p->want, want)) {
		json_decref(want);
		return 0;
	}
	json_decref(p->want);
	p->want = want;
	json_decref(sl_steal(&p->accepted));
	step(p);
	return 0;
}

static int start_watch(struct sl_kube_publisher *p)
{
	sl_cleanup(sl_freep) char *query = NULL;

	if (asprintf(&query, "fieldSelector=spec.driver%%3D%s,spec.nodeName%%3D%s",
		    SL_KUBE_DRIVER, p->node) < 0) {
		query = NULL;
		return sl_err_origin(-ENOMEM);
	}
	return sl_kube_watch_new(
		&p->watch, p->kube, SL_KUBE_SLICES_PATH, query, on_event, p);
}

int sl_kube_publisher_new(
	struct sl_kube_publisher **out, struct sl_kube *kube, const char *node)
{
	struct sl_kube_publisher *p;
	int r = -ENOMEM;

	*out = NULL;
	if (!sl_kube_is_name(node))
		return sl_err_origin(-EINVAL);
	p = calloc(1, sizeof(*p));
	if (!p)
		return sl_err_origin(-ENOMEM);
	p->kube = sl_kube_ref(kube);
	p->node = strdup(node);
	p->name = sl_kube_slice_name(node);
	p->strays = json_object();
	if (p->node && p->name && p->strays)
		r = start_watch(p);
	if (r < 0)
		p = sl_kube_publisher_free(p);
	*out = p;
	return r;
}

struct sl_kube_publisher *sl_kube_publisher_free(struct sl_kube_publisher *p)
{
	if (!p)
		return NULL;
	(void)sl_kube_watch_free(p->watch);
	sl_kube_cancel(&p->call);
	(void)sl_kube_unref(p->kube);
	json_decref(p->want);
	json_decref(p->sent);
	json_decref(p->accepted);
	json_decref(p->have);
	json_decref(p->strays);
	free(p->node);
	free(p->name);
	free(p->stray);
	free(p);
	return NULL;
}
