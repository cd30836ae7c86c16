/*
 * internal - a client and its calls, for api.c and call.c alone
 *
 * The client is the part that libcurl and the loop meet in; a call is one request. Only serving
 * from the loop may end a call or hand something out: libcurl's own callbacks may not.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_API_INTERNAL_H

#include <curl/curl.h>
#include <sys/stat.h>

#include "base/list.h"
#include "cluster/kubernetes/api/api.h"

/* Of timers; the loop's own default is 250 ms. */
#define SL_KUBE_ACCURACY_US 1000

struct sl_kube {
	unsigned int references;
	sd_event *event;
	sd_event_source *timer;
	CURLM *multi; /* NULL: ended */
	struct sl_link calls;
	struct sl_link ready; /* streams with whole lines */
	struct sl_kube_config config;
	/* The Authorization header, from a file that looked like `token_stat`. */
	char *authorization;
	struct stat token_stat;
};

struct sl_kube_call {
	struct sl_link link, ready_link;
	struct sl_kube *kube;
	struct sl_kube_call **slot;
	struct sl_kube_request request; /* path and body are not kept */
	CURL *easy;
	struct curl_slist *headers;
	sd_event_source *later;
	bool is_added; /* to the multi handle */
	char *what;    /* "GET /path", for errors: without the query */
	char *data;    /* what came: NUL behind `used` */
	size_t used, room;
	size_t line_bytes; /* of the line, or the answer, that is coming */
	bool is_too_large;
	bool *gone; /* of serve_lines() */
	char curl_text[CURL_ERROR_SIZE];
};

/* Ends it without a word; clears its slot. */
void sl_kube_call_free(struct sl_kube_call *call);
/* Frees the call, and then tells what came of it. The client may be gone then. */
void sl_kube_call_finish(struct sl_kube_call *call, CURLcode code);
/* Hands out whole lines; keeps the beginning of the next one. Call and client may be gone then. */
void sl_kube_call_serve_lines(struct sl_kube_call *call);

#endif
