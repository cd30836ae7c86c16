/*
 * lease - one of several replicas decides
 *
 * A Lease of coordination.k8s.io, as Kubernetes' own components use it. A replica that sees the
 * Lease unchanged for its full duration, by the replica's own clock, may take it. Every write names
 * the version that was read, so of two attempts one succeeds. The holder renews the Lease five
 * times per duration. A holder that could not renew stops before others may take the Lease: it
 * counts from the moment before it sent its last successful call.
 *
 * A holder that stopped never decides again, even if it could get the Lease back: the next holder
 * makes the writes that are left.
 *
 * The Lease may name this replica's identity because an earlier process had it, with a write still
 * in flight. So that holder counts as another one. A scheduler that ends orderly waits for its
 * writes and leaves the Lease without a holder.
 */
#include "cluster/kubernetes/scheduler/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "cluster/kubernetes/api/parse.h"

/* A lease's duration has RENEWALS intervals between renewals; in the last 1 / MARGIN nothing is
 * written. */
#define RENEWALS 5
#define MARGIN   5
/* Between checks for writes in flight. */
#define LEAVE_SOON (20 * SL_MS)

struct sl_ks_lease {
	struct sl_ks *ks;
	sd_event_source *timer, *end;
	struct sl_kube_call *call;
	void (*held)(struct sl_ks *ks);
	void (*lost)(struct sl_ks *ks);
	char path[400];
	char seen[64];    /* version of the Lease last read */
	sl_ns seen_at;    /* when that was new */
	sl_ns seen_holds; /* its holder's duration */
	sl_ns asked_at;   /* time of the write in flight */
	bool is_ours, leaves;
	sl_ns until; /* held until then */
};

static sl_ns left(const struct sl_ks_lease *lease)
{
	sl_ns margin = lease->ks->options.lease / MARGIN;

	return lease->is_ours ? sl_sub_sat(lease->until, sl_clock_now() + margin) : 0;
}

sl_ns sl_ks_lease_left(const struct sl_ks_lease *lease)
{
	return lease->leaves ? 0 : left(lease);
}

static void again(struct sl_ks_lease *lease, sl_ns after)
{
	if (lease->leaves)
		after = sl_min_u64(after, LEAVE_SOON);
	(void)sd_event_source_set_time_relative(lease->timer, after / SL_US);
	(void)sd_event_source_set_enabled(lease->timer, SD_EVENT_ONESHOT);
}

static void call(struct sl_ks_lease *lease, enum sl_kube_verb verb, json_t *body,
	sl_kube_done_fn done)
{
	sl_ns part = lease->ks->options.lease / RENEWALS;
	char path[400];
	int r;

	(void)snprintf(path, sizeof(path), "%s%s", lease->path,
		verb == SL_KUBE_POST ? "" : "/sluice-scheduler");
	lease->asked_at = sl_clock_now();
	r = sl_kube_call(lease->ks->lease_kube,
		&(struct sl_kube_request){.verb = verb,
			.path = path,
			.body = body,
			.done = done,
			.context = lease,
			.timeout = 2 * part},
		&lease->call);
	json_decref(body);
	if (r < 0)
		sl_error_log("the Lease cannot be requested: %s", strerror(-r));
}

static json_t *body_of(const struct sl_ks_lease *lease, const char *holder, bool is_new)
{
	const struct sl_kube_scheduler_options *options = &lease->ks->options;
	struct timespec now = {0};
	struct tm utc = {0};
	char when[40], text[64];
	json_t *meta;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &utc);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(text, sizeof(text), "%s.%06ldZ", when, now.tv_nsec / 1000);
	meta = is_new ? json_pack("{ss ss}", "name", "sluice-scheduler", "namespace",
				options->namespace)
		      : json_pack("{ss ss ss}", "name", "sluice-scheduler", "namespace",
				options->namespace, "resourceVersion", lease->seen);
	return json_pack("{ss ss so s{ss sI ss ss}}", "apiVersion",
		"coordination.k8s.io/v1", "kind", "Lease", "metadata", meta, "spec",
		"holderIdentity", holder, "leaseDurationSeconds",
		(json_int_t)(options->lease / SL_S), "acquireTime", text, "renewTime",
		text);
}

/* Records the Lease's present state in the API. */
static void note(struct sl_ks_lease *lease, const json_t *object)
{
	const char *version =
		sl_kube_text_at(object, "metadata", "resourceVersion", NULL);
	const json_t *holds = sl_kube_at(object, "spec", "leaseDurationSeconds", NULL);

	if (strcmp(version, lease->seen) == 0)
		return;
	(void)snprintf(lease->seen, sizeof(lease->seen), "%s", version);
	lease->seen_at = sl_clock_now();
	lease->seen_holds = (sl_ns)json_integer_value(holds) * SL_S;
}

/* True: the Lease is over, and lost() was called. */
static bool end(struct sl_ks_lease *lease)
{
	if (!lease->is_ours || left(lease))
		return false;
	lease->is_ours = false;
	lease->lost(lease->ks);
	return true;
}

static int on_end(sd_event_source *source, uint64_t usec, void *context)
{
	(void)end(context);
	return 0;
}

/* Extends the Lease by the clock that was read before the request. */
static void have(struct sl_ks_lease *lease)
{
	lease->is_ours = true;
	lease->until = lease->asked_at + lease->ks->options.lease;
	(void)sd_event_source_set_time_relative(lease->end, left(lease) / SL_US + 1);
	(void)sd_event_source_set_enabled(lease->end, SD_EVENT_ONESHOT);
}

static void on_written(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_lease *lease = context;
	struct sl_ks *ks = lease->ks;
	sl_ns part = ks->options.lease / RENEWALS;
	bool was_ours = lease->is_ours;

	/* Also if the answer comes before the timer. */
	if (end(lease))
		return;
	if (answer->error[0]) {
		if (answer->status != 409)
			sl_info("the Lease is not written: %s", answer->error);
		/* Another replica has it, or the version is outdated. */
		again(lease, answer->status == 409 ? 0 : part / 2);
		return;
	}
	note(lease, answer->body);
	have(lease);
	again(lease, part);
	if (!was_ours)
		lease->held(ks);
}

static void on_read(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_lease *lease = context;
	const char *holder =
		sl_kube_text_at(answer->body, "spec", "holderIdentity", NULL);
	const char *identity = lease->ks->options.identity;
	bool is_free;

	if (answer->status == 404) {
		call(lease, SL_KUBE_POST, body_of(lease, identity, true), on_written);
		return;
	}
	if (answer->error[0]) {
		sl_info("the Lease cannot be read: %s", answer->error);
		again(lease, lease->ks->options.lease / RENEWALS / 2);
		return;
	}
	note(lease, answer->body);
	is_free = !holder[0] || (lease->is_ours && strcmp(holder, identity) == 0) ||
		  sl_clock_now() >= lease->seen_at + lease->seen_holds;
	if (is_free)
		call(lease, SL_KUBE_PUT, body_of(lease, identity, false), on_written);
	else
		again(lease, lease->ks->options.lease / RENEWALS);
}

/* Written or not: there is nothing more to do. */
static void on_given_back(void *context, const struct sl_kube_answer *answer)
{
	struct sl_ks_lease *lease = context;

	if (answer->error[0])
		sl_info("the Lease cannot be given up: %s", answer->error);
	lease->is_ours = false;
	lease->lost(lease->ks);
}

static void give_back(struct sl_ks_lease *lease)
{
	if (sl_ks_is_writing(lease->ks))
		again(lease, LEAVE_SOON);
	else
		call(lease, SL_KUBE_PUT, body_of(lease, "", false), on_given_back);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_ks_lease *lease = context;

	if (lease->call)
		return 0;
	if (lease->leaves)
		give_back(lease);
	else
		call(lease, SL_KUBE_GET, NULL, on_read);
	return 0;
}

void sl_ks_lease_leave(struct sl_ks_lease *lease)
{
	lease->leaves = true;
	if (!lease->is_ours)
		lease->lost(lease->ks);
	else if (!lease->call)
		again(lease, 0);
}

int sl_ks_lease_new(struct sl_ks *ks, void (*held)(struct sl_ks *ks),
	void (*lost)(struct sl_ks *ks), struct sl_ks_lease **out)
{
	struct sl_ks_lease *lease = calloc(1, sizeof(*lease));
	int r;

	*out = lease;
	if (!lease)
		return sl_err_origin(-ENOMEM);
	lease->ks = ks;
	lease->held = held;
	lease->lost = lost;
	(void)snprintf(lease->path, sizeof(lease->path),
		"/apis/coordination.k8s.io/v1/namespaces/%s/leases",
		ks->options.namespace);
	r = sd_event_add_time(
		ks->loop, &lease->end, CLOCK_MONOTONIC, 0, 1000, on_end, lease);
	if (r == 0)
		r = sd_event_source_set_enabled(lease->end, SD_EVENT_OFF);
	/* Runs before all other writers after a pause. */
	if (r >= 0)
		r = sd_event_source_set_priority(lease->end, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_event_add_time_relative(
			ks->loop, &lease->timer, CLOCK_MONOTONIC, 0, 0, on_timer, lease);
	return r;
}

struct sl_ks_lease *sl_ks_lease_free(struct sl_ks_lease *lease)
{
	if (!lease)
		return NULL;
	sl_kube_cancel(&lease->call);
	lease->timer = sd_event_source_disable_unref(lease->timer);
	lease->end = sd_event_source_disable_unref(lease->end);
	free(lease);
	return NULL;
}
