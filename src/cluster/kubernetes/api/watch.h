/*
 * watch - the objects of a kind, and each change of them
 *
 * Lists page by page, then watches from there, with bookmarks; after a failure it tries again, for
 * ever, with growing waits. Events are consistent even if the connection was lost: a new object is
 * ADDED, a known one MODIFIED, one that vanished meanwhile DELETED, and nothing is reported twice.
 * SYNCED follows each complete list. A watch needs some 220 bytes per object. Loop's thread; as
 * api.h.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_WATCH_H
#define SL_CLUSTER_KUBERNETES_API_WATCH_H

#include "cluster/kubernetes/api/api.h"

enum sl_kube_event_kind {
	SL_KUBE_ADDED = 0,
	SL_KUBE_MODIFIED,
	/* Its last state; or, if that was not seen, only metadata with namespace, name and uid. */
	SL_KUBE_DELETED,
	SL_KUBE_SYNCED,  /* every existing object has been reported */
	SL_KUBE_TROUBLE, /* a retry is due; reported objects may be outdated */
};

/* Valid during the function only. */
struct sl_kube_event {
	enum sl_kube_event_kind kind;
	json_t *object; /* of the first three kinds; borrowed. Listed ones lack kind and
			 * apiVersion */
	const char *error; /* of TROUBLE; else "" */
	int status;        /* of TROUBLE, as sl_kube_answer has it */
};

/* May do anything, even free the watch and the client. */
typedef void (*sl_kube_event_fn)(void *context, const struct sl_kube_event *event);

struct sl_kube_watch;

/* Watches the collection at path, e.g. "/api/v1/nodes". query: further parameters, escaped, e.g.
 * "fieldSelector=spec.nodeName%3Da", or NULL. Both are copied. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_watch_new(struct sl_kube_watch **out, struct sl_kube *kube,
	const char *path, const char *query, sl_kube_event_fn fn, void *context);
/* Also after the client's end, which stops its events. Returns NULL. */
struct sl_kube_watch *sl_kube_watch_free(struct sl_kube_watch *watch);
/* Has a complete list been reported? */
SL_MUST_CHECK bool sl_kube_watch_is_synced(const struct sl_kube_watch *watch);

#endif
