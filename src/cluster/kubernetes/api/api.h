/*
 * api - a client of the Kubernetes API inside the event loop
 *
 * sd-event drives libcurl's multi interface. Only two things block: reading a token of a few KiB,
 * and ending a call whose host name is still being resolved (in the cluster the server is an
 * address). HTTP/1.1, so a connection that hangs affects one call. One thread, the loop's.
 *
 * Done functions run from the loop, never from within sl_kube_call(). They may start and cancel
 * calls, and free the client.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_API_H
#define SL_CLUSTER_KUBERNETES_API_API_H

#include <jansson.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cluster/kubernetes/api/config.h"
#include "cluster/kubernetes/api/parse.h"

/* Most bytes of one object, or of one line of a stream: etcd keeps 1.5 MiB, and the API server may
 * write each character as six. */
#define SL_KUBE_OBJECT_MAX_BYTES (10 * SL_MIB)
/* Of a call whose request has no timeout. */
#define SL_KUBE_TIMEOUT (30 * SL_S)

struct sl_kube;      /* the client */
struct sl_kube_call; /* a request in flight or waiting to be sent */

enum sl_kube_verb {
	SL_KUBE_GET = 0,
	SL_KUBE_POST,
	SL_KUBE_PUT,
	SL_KUBE_DELETE,
	SL_KUBE_MERGE,     /* PATCH, RFC 7386 */
	SL_KUBE_STRATEGIC, /* PATCH, lists by their keys; not for custom resources */
	SL_KUBE_APPLY,     /* PATCH, server-side apply; the path needs ?fieldManager= */
	SL_KUBE_VERBS
};

/* Valid during the done function only. */
struct sl_kube_answer {
	/* The HTTP status. 0: no usable answer (connection, time, size, not JSON). */
	int status;
	/* The object of a 2xx, or the Status of a refusal; NULL without one. Borrowed. */
	json_t *body;
	/* "" after success; else the request, the fault and the server's text. Also set, with
	 * status 200, when a stream broke. */
	const char *error;
	const char *reason;         /* from the Status, e.g. "Conflict"; or "" */
	unsigned int retry_after_s; /* from the server, at most an hour; 0: none */
	bool is_too_large;
};

typedef void (*sl_kube_done_fn)(void *context, const struct sl_kube_answer *answer);
/* A line of a stream; text[size] is NUL, and the text may be written to. */
typedef void (*sl_kube_line_fn)(void *context, char *text, size_t size);

/* Copied. */
struct sl_kube_request {
	enum sl_kube_verb verb;
	const char *path;     /* with its query, escaped */
	const json_t *body;   /* or NULL; serialised at once */
	sl_kube_done_fn done; /* or NULL */
	/* If set, the answer of a 200 is a stream. Only the server or the timeout ends the stream;
	 * done follows the last line. An unfinished line is dropped. */
	sl_kube_line_fn line;
	void *context;
	sl_ns timeout;    /* 0: SL_KUBE_TIMEOUT */
	sl_ns after;      /* delay before it is sent */
	size_t max_bytes; /* of the answer; 0: SL_KUBE_OBJECT_MAX_BYTES */
	bool is_page; /* of many objects: also refused if it has too many values (parse.h) */
};

/* Takes the contents of config, in every case. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_new(
	struct sl_kube **out, sd_event *event, struct sl_kube_config *config);
/* Ends all calls without calling their done functions; their slots become NULL. Drops the creator's
 * reference. Returns NULL. */
struct sl_kube *sl_kube_free(struct sl_kube *kube);
/* For objects that may outlive the client's end. unref returns NULL. */
struct sl_kube *sl_kube_ref(struct sl_kube *kube);
struct sl_kube *sl_kube_unref(struct sl_kube *kube);
SL_MUST_CHECK bool sl_kube_has_ended(const struct sl_kube *kube);

/* slot, if given, holds the call until the call ends, and must stay valid until then; it is NULL
 * again before done is called. -EINVAL for a path that does not begin with '/' or has blanks, and
 * for POST, PUT or PATCH without a body; -ESHUTDOWN after the client's end; or other negative
 * errno. On an error done is not called. */
SL_MUST_CHECK int sl_kube_call(struct sl_kube *kube,
	const struct sl_kube_request *request, struct sl_kube_call **slot);
/* Cancels: done is not called, although the server may have carried the request out. *slot becomes
 * NULL, and may be NULL. */
void sl_kube_cancel(struct sl_kube_call **slot);

/* Is the name safe in a path and as the name of a file? True for 1 to 253 letters, digits, '-',
 * '.', '_' and ':', except dots alone. */
SL_MUST_CHECK bool sl_kube_is_name(const char *name);

/* Waits between attempts: 1, 2, 4, 8, 16, 30, 30 .. s, plus up to a quarter at random.
 * Zero-initialise; zero it again after success. */
struct sl_kube_backoff {
	unsigned int tries;
};
/* The next wait, no shorter than retry_after_s. */
sl_ns sl_kube_backoff_next(struct sl_kube_backoff *backoff, unsigned int retry_after_s);

#endif
