/*
 * api - libcurl's multi interface inside sd-event
 *
 * libcurl reports the descriptors it waits for and the time at which it must run next; both become
 * sources of the loop. libcurl's callbacks must not start or end a call, so they only collect.
 * After each run of libcurl settle() passes on lines, then ended calls. A function called by
 * settle() may free the call, which a flag on the stack then shows. It may also free the client, so
 * settle() holds a reference.
 */
#include "cluster/kubernetes/api/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/log.h"

#define CONNECTIONS_MAX 32L
#define BACKOFF_MOST    (30 * SL_S)

/* --- small things -------------------------------------------------------------------------- */

bool sl_kube_is_name(const char *name)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-._:";
	size_t length = strlen(name);

	return length > 0 && length <= 253 && strspn(name, fit) == length &&
	       strspn(name, ".") < length;
}

sl_ns sl_kube_backoff_next(struct sl_kube_backoff *backoff, unsigned int retry_after_s)
{
	sl_ns span = backoff->tries < 5 ? SL_S << backoff->tries : BACKOFF_MOST;
	uint32_t chance = 0;

	backoff->tries++;
	span = sl_max_u64(span, retry_after_s * SL_S);
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = (uint32_t)sl_clock_now();
	return span + span / 4 * (chance % 1000) / 1000;
}

/* --- callbacks of libcurl -------------------------------------------------------------------- */

static void settle(struct sl_kube *kube);

static int on_socket(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct sl_kube *kube = context;
	int mask = 0, running;

	if (revents & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (revents & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (revents & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR;
	(void)curl_multi_socket_action(kube->multi, fd, mask, &running);
	settle(kube);
	return 0;
}

static int watch_socket(
	CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
	struct sl_kube *kube = context;
	sd_event_source *source = socket_context;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	int r = 0;

	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(source);
		return 0;
	}
	if (source)
		return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
	r = sd_event_add_io(kube->event, &source, fd, events, on_socket, kube);
	if (r < 0) {
		sl_warning("cannot wait for the API server: %s", strerror(-r));
		return -1;
	}
	(void)curl_multi_assign(kube->multi, fd, source);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_kube *kube = context;
	int running;

	(void)curl_multi_socket_action(kube->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	settle(kube);
	return 0;
}

static int watch_time(CURLM *multi, long timeout_ms, void *context)
{
	struct sl_kube *kube = context;

	if (timeout_ms < 0)
		return sd_event_source_set_enabled(kube->timer, SD_EVENT_OFF) < 0 ? -1
										  : 0;
	if (sd_event_source_set_time_relative(kube->timer, (uint64_t)timeout_ms * 1000) <
		0)
		return -1;
	return sd_event_source_set_enabled(kube->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

/* Serves one stream's lines, or one ended call. Returns whether there was one. */
static bool serve_one(struct sl_kube *kube)
{
	CURLMsg *message;
	void *call = NULL;
	int left;

	if (!sl_list_is_empty(&kube->ready)) {
		struct sl_link *first = kube->ready.next;

		sl_list_unlink(first);
		sl_kube_call_serve_lines(
			SL_LIST_ENTRY(first, struct sl_kube_call, ready_link));
		return true;
	}
	message = curl_multi_info_read(kube->multi, &left);
	if (!message)
		return false;
	if (message->msg == CURLMSG_DONE && curl_easy_getinfo(message->easy_handle,
						    CURLINFO_PRIVATE, &call) == CURLE_OK)
		sl_kube_call_finish(call, message->data.result);
	return true;
}

static void settle(struct sl_kube *kube)
{
	(void)sl_kube_ref(kube);
	while (!sl_kube_has_ended(kube) && serve_one(kube))
		;
	(void)sl_kube_unref(kube);
}

/* --- the client ---------------------------------------------------------------------------- */

static int open_client(struct sl_kube *kube, sd_event *event)
{
	int r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return sl_err_origin(-ENOMEM);
	kube->event = sd_event_ref(event);
	kube->multi = curl_multi_init();
	if (!kube->multi)
		return sl_err_origin(-ENOMEM);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_SOCKETDATA, kube);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_TIMERFUNCTION, watch_time);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_TIMERDATA, kube);
	(void)curl_multi_setopt(
		kube->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS_MAX);
	r = sd_event_add_time(event, &kube->timer, CLOCK_MONOTONIC, 0,
		SL_KUBE_ACCURACY_US, on_timer, kube);
	if (r == 0)
		r = sd_event_source_set_enabled(kube->timer, SD_EVENT_OFF);
	if (r < 0)
		return sl_err_origin(r);
	if (kube->config.token &&
		asprintf(&kube->authorization, "Authorization: Bearer %s",
			kube->config.token) < 0) {
		kube->authorization = NULL;
		return sl_err_origin(-ENOMEM);
	}
	return 0;
}

int sl_kube_new(struct sl_kube **out, sd_event *event, struct sl_kube_config *config)
{
	struct sl_kube *kube = calloc(1, sizeof(*kube));
	int r;

	if (!kube) {
		sl_kube_config_fini(config);
		return sl_err_origin(-ENOMEM);
	}
	kube->references = 1;
	kube->config = *config;
	*config = (struct sl_kube_config){0};
	sl_list_init(&kube->calls);
	sl_list_init(&kube->ready);
	r = open_client(kube, event);
	if (r < 0)
		kube = sl_kube_free(kube);
	*out = kube;
	return r;
}

struct sl_kube *sl_kube_ref(struct sl_kube *kube)
{
	kube->references++;
	return kube;
}

struct sl_kube *sl_kube_unref(struct sl_kube *kube)
{
	if (!kube || --kube->references > 0)
		return NULL;
	if (kube->authorization)
		explicit_bzero(kube->authorization, strlen(kube->authorization));
	free(kube->authorization);
	sl_kube_config_fini(&kube->config);
	sd_event_unref(kube->event);
	free(kube);
	return NULL;
}

bool sl_kube_has_ended(const struct sl_kube *kube)
{
	return !kube->multi;
}

struct sl_kube *sl_kube_free(struct sl_kube *kube)
{
	if (!kube)
		return NULL;
	sl_list_foreach_safe (link, &kube->calls)
		sl_kube_call_free(SL_LIST_ENTRY(link, struct sl_kube_call, link));
	/* Closes kept connections, whose sources still exist. */
	if (kube->multi)
		(void)curl_multi_cleanup(sl_steal(&kube->multi));
	kube->timer = sd_event_source_disable_unref(kube->timer);
	return sl_kube_unref(kube);
}
