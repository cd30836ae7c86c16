/*
 * watch - what there is of a kind of object, and each change of it
 *
 * Lists first, page by page, and then watches from there, with bookmarks; tries again by itself for
 * ever, with growing waits. What it hands out is consistent whatever happens to the connection: an
 * object that is new is ADDED, one that is known is MODIFIED, one that vanished while nobody
 * watched is DELETED, and nothing is told twice. After each complete list comes SYNCED.
 * Remembers some 220 bytes for each object. Loop's thread; as api.h.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_WATCH_H
#define SL_CLUSTER_KUBERNETES_API_WATCH_H

#include "cluster/kubernetes/api/api.h"

enum sl_kube_event_kind {
	SL_KUBE_ADDED = 0,
	SL_KUBE_MODIFIED,
	/* As it was last; or, if that was not seen, metadata with namespace, name and uid alone. */
	SL_KUBE_DELETED,
	SL_KUBE_SYNCED,  /* everything that there is has been told */
	SL_KUBE_TROUBLE, /* it is being tried again; what was told may be old */
};

/* Valid during the function only. */
struct sl_kube_event {
	enum sl_kube_event_kind kind;
	json_t *object; /* of the first three; borrowed. Listed ones have no kind, apiVersion */
	const char *error; /* of TROUBLE; else "" */
	int status;        /* of TROUBLE, as sl_kube_answer has it */
};

/* May do everything, also free the watch and the client. */
typedef void (*sl_kube_event_fn)(void *context, const struct sl_kube_event *event);

struct sl_kube_watch;

/* Watches the collection at path, e.g. "/api/v1/nodes". query: further parameters, escaped, e.g.
 * "fieldSelector=spec.nodeName%3Da", or NULL. Both are copied. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_watch_new(struct sl_kube_watch **out, struct sl_kube *kube,
	const char *path, const char *query, sl_kube_event_fn fn, void *context);
/* Also after the client's end, which silences it. Returns NULL. */
struct sl_kube_watch *sl_kube_watch_free(struct sl_kube_watch *watch);
/* Whether everything was told once. */
SL_MUST_CHECK bool sl_kube_watch_is_synced(const struct sl_kube_watch *watch);

#endif
