/*
 * internal - a client and its calls, for api.c and call.c only
 *
 * The client connects libcurl and the loop; a call is one request. Calls may end and results be
 * passed on only from the loop, never from libcurl's callbacks.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_INTERNAL_H
#define SL_CLUSTER_KUBERNETES_API_INTERNAL_H

#include <curl/curl.h>
#include <sys/stat.h>

#include "base/list.h"
#include "cluster/kubernetes/api/api.h"

/* Accuracy of timers; the loop's default is 250 ms. */
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
	char *data;    /* received bytes; NUL behind `used` */
	size_t used, room;
	size_t line_bytes; /* of the line or answer that is arriving */
	bool is_too_large;
	bool *gone; /* of serve_lines() */
	char curl_text[CURL_ERROR_SIZE];
};

/* Ends the call without calling done; clears its slot. */
void sl_kube_call_free(struct sl_kube_call *call);
/* Frees the call and then reports its result. The client may be gone afterwards. */
void sl_kube_call_finish(struct sl_kube_call *call, CURLcode code);
/* Passes on whole lines and keeps the beginning of the next one. Call and client may be gone
 * afterwards. */
void sl_kube_call_serve_lines(struct sl_kube_call *call);

#endif
