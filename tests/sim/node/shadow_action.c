/*
 * shadow_action - what the machine did, judged and booked: the second half of shadow.c
 */
#include "shadow.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void on_grant(struct shadow *s, const struct sl_action *a)
{
	struct shadow_demand *d = shadow_find_ask(s, a->grant.client, a->grant.ask);

	if (!d || d->granted || a->grant.bytes != d->bytes || a->grant.gpu != d->gpu) {
		shadow_fail(s, "client %llu was granted what it does not wait for",
			(unsigned long long)a->grant.client);
		return;
	}
	if (a->grant.epoch <= s->last_epoch)
		shadow_fail(
			s, "epoch %llu came twice", (unsigned long long)a->grant.epoch);
	s->last_epoch = a->grant.epoch;
	shadow_check_grant(s, d);
	d->granted = true;
	d->epoch = a->grant.epoch;
	d->client->active = s->now;
	if (!d->there) {
		d->client->oom_told = false;
		d->client->oom_waits &= d->entitled;
	}
	shadow_refresh(s);
}

static void on_deny(struct shadow *s, const struct sl_action *a)
{
	struct shadow_demand *d = shadow_find_ask(s, a->deny.client, a->deny.ask);
	enum sl_reason reason = (enum sl_reason)a->deny.reason;

	if (reason == SL_REASON_UNKNOWN_CLIENT) {
		if (s->event.type != SL_EVENT_ASK ||
			shadow_knows_ask(shadow_client(s, a->deny.client), &s->event))
			shadow_fail(s, "a known client was denied as unknown");
		s->answered = true;
		return;
	}
	if (!d || d->granted) {
		shadow_fail(s, "client %llu was denied what it does not wait for",
			(unsigned long long)a->deny.client);
		return;
	}
	shadow_check_deny(s, d, reason);
	shadow_count_end(s, d, reason);
	shadow_drop(s, d);
}

static void on_admit(struct shadow *s, const struct sl_action *a)
{
	struct shadow_workload *w = s->workload;

	s->answered = true;
	shadow_check_admit(s, a);
	while (w < s->workload + SHADOW_WORKLOADS && w->used)
		w++;
	if (w == s->workload + SHADOW_WORKLOADS) {
		shadow_fail(s, "the simulation has no room for another workload");
		return;
	}
	*w = (struct shadow_workload){.used = true,
		.id = a->admit.workload,
		.request = a->admit.request_bytes,
		.limit = a->admit.limit_bytes,
		.mask = a->admit.gpu_mask,
		.priority = s->event.workload_add.priority,
		.flags = s->event.workload_add.flags,
		.compute_pm = s->event.workload_add.compute_pm,
		.wait_max = s->event.workload_add.wait_max};
	s->workloads++;
	shadow_refresh_degraded(s);
}

static void on_note(struct shadow *s, const struct sl_action *a)
{
	s->notes[a->note.reason]++;
	if (sl_reason_kind(a->note.reason) == SL_REASON_KIND_WAIT)
		shadow_check_waits(s, a);
	if (a->note.reason == SL_REASON_DEGRADED_BEGINS ||
		a->note.reason == SL_REASON_DEGRADED_ENDS)
		s->gpu[a->note.gpu].noted_degraded =
			a->note.reason == SL_REASON_DEGRADED_BEGINS;
	if (a->note.reason == SL_REASON_LOST_BEGINS ||
		a->note.reason == SL_REASON_LOST_ENDS)
		s->gpu[a->note.gpu].noted_lost = a->note.reason == SL_REASON_LOST_BEGINS;
	if (a->note.reason == SL_REASON_UNTAKEABLE_BEGINS ||
		a->note.reason == SL_REASON_UNTAKEABLE_ENDS)
		shadow_check_untakeable_note(s, a);
	if (a->note.reason == SL_REASON_STOP_REVOKED)
		shadow_check_revoked(s, a);
}

static void on_left(struct shadow *s, const struct sl_action *a)
{
	if (a->left.client != s->left_client || a->left.bytes != s->left_bytes)
		shadow_fail(s, "client %llu left with %llu, expected %llu with %llu",
			(unsigned long long)a->left.client,
			(unsigned long long)a->left.bytes,
			(unsigned long long)s->left_client,
			(unsigned long long)s->left_bytes);
	s->left_client = s->left_bytes = 0;
}

static void on_view(struct shadow *s, const struct sl_action *a)
{
	struct shadow_workload *w = shadow_workload(s, a->view.workload);

	if (w && (w->repaid >> a->view.gpu & 1))
		w->repaid_told |= 1u << a->view.gpu;
	if (a->view.workload == s->view_workload)
		s->views |= 1u << a->view.gpu;
	else if (!w || !(w->repaid >> a->view.gpu & 1))
		shadow_fail(s, "a view that no client needs");
}

void shadow_action(struct shadow *s, const struct sl_action *a)
{
	if (a->id <= s->last_action)
		shadow_fail(s, "action %llu follows %llu", (unsigned long long)a->id,
			(unsigned long long)s->last_action);
	s->last_action = a->id;
	switch (a->type) {
	case SL_ACTION_ADMIT: on_admit(s, a); break;
	case SL_ACTION_REFUSE:
		s->answered = true;
		shadow_check_refuse(s, a);
		break;
	case SL_ACTION_GRANT: on_grant(s, a); break;
	case SL_ACTION_DENY: on_deny(s, a); break;
	case SL_ACTION_VIEW: on_view(s, a); break;
	case SL_ACTION_NOTE: on_note(s, a); break;
	case SL_ACTION_LEFT: on_left(s, a); break;
	case SL_ACTION_SET_DONE:
		s->answered = true;
		shadow_set_done(s, a);
		break;
	case SL_ACTION_STOP: shadow_check_stop(s, a); break;
	case SL_ACTION_STOP_STRANGER: shadow_check_stop_stranger(s, a); break;
	case SL_ACTION_PROBE: shadow_check_probe(s, a); break;
	case SL_ACTION_WAKE_AT: s->wake = a->wake_at.at; break;
	default: shadow_fail(s, "an action of no known kind");
	}
}
