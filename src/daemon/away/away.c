/*
 * away - see the header
 *
 * An order stays in the list of its helper until it is finished. When a helper is lost (it died,
 * hung or spoke nonsense), its list goes to a fresh one; the lost one only waits to be reaped.
 * Nothing may stay locked because a helper died, so a failed AWAY is followed by a BACK before its
 * answer.
 */
#include "daemon/away/away.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "daemon/away/helper.h"
#include "daemon/state/timer.h"

/* How long a helper may take for an order, lock_ms apart, or for its start. Without our eviction
 * the driver takes 15 s for 80 GB. A helper that may not begin gives up by itself after 30 s. */
#define PATIENCE (60 * SL_S)
/* The driver's start takes the longest part of a helper's work, so keep one for a while. */
#define IDLE (60 * SL_S)
/* An order is sent so many times to helpers that die of it. */
#define TRIES 2

struct sl_away {
	sd_event *loop;
	sl_away_done *done;
	void *context;
	sd_event_source *deferred, *timer;
	struct sl_link helpers;  /* also those that are lost and not reaped yet */
	struct sl_link finished; /* orders whose answer is for the deferred source */
	uint64_t last_ticket;
	sl_ns patience, idle;
};

struct order {
	struct sl_link link; /* of its helper's orders, or finished */
	struct sl_away_order is;
	uint64_t ticket;   /* its number in messages */
	bool sent;         /* its helper has it */
	bool tried;        /* a helper had it: nothing is known of the process */
	bool undone;       /* an AWAY that failed: what is sent is a BACK */
	unsigned int left; /* tries */
	sl_ns deadline;    /* if sent */
	struct sl_away_answer answer;
};

struct helper {
	struct sl_link link;
	struct sl_away *away;
	struct sl_away_user user;
	pid_t pid;
	int fd, pidfd;
	sd_event_source *io, *death;
	bool ready, lost;
	struct sl_link orders; /* as they came */
	unsigned int sent;
	sl_ns deadline; /* until it is ready; without orders: until it is ended */
};

static const char *const call_names[] = {"",
#define NAME(name, function) #function,
	SL_MOVE_CALLS(NAME)
#undef NAME
};

const char *sl_away_call_name(enum sl_move_call call)
{
	return (size_t)call < SL_ARRAY_LEN(call_names) ? call_names[call] : "";
}

/* --- Ends of orders. --- */

static void finish(struct sl_away *away, struct order *order)
{
	order->answer.id = order->is.id;
	sl_list_unlink(&order->link);
	sl_list_push_tail(&away->finished, &order->link);
	(void)sd_event_source_set_enabled(away->deferred, SD_EVENT_ONESHOT);
}

/* No helper is left to try it. */
static void give_up(struct sl_away *away, struct order *order)
{
	order->answer.outcome = order->tried ? SL_MOVE_AWAY_STILL : SL_MOVE_UNABLE;
	finish(away, order);
}

static void give_up_all(struct sl_away *away, struct sl_link *orders)
{
	sl_list_foreach_safe (link, orders)
		give_up(away, SL_LIST_ENTRY(link, struct order, link));
}

static int on_deferred(sd_event_source *source, void *context)
{
	struct sl_away *away = context;

	while (!sl_list_is_empty(&away->finished)) {
		struct order *order =
			SL_LIST_ENTRY(away->finished.next, struct order, link);

		sl_list_unlink(&order->link);
		away->done(away->context, &order->answer);
		free(order);
	}
	return 0;
}

/* --- Helpers. --- */

static sl_ns next_of(const struct helper *helper)
{
	sl_ns next = SL_NS_NEVER;

	if (helper->lost)
		return next;
	if (!helper->ready || sl_list_is_empty(&helper->orders))
		next = helper->deadline;
	sl_list_foreach (link, &helper->orders) {
		const struct order *order = SL_LIST_ENTRY(link, struct order, link);

		if (order->sent)
			next = sl_min_u64(next, order->deadline);
	}
	return next;
}

static void set_timer(struct sl_away *away)
{
	sl_ns next = SL_NS_NEVER;

	sl_list_foreach (link, &away->helpers)
		next = sl_min_u64(
			next, next_of(SL_LIST_ENTRY(link, struct helper, link)));
	sl_timer_set(away->timer, next);
}

/* Nothing more is heard of it. */
static void cut_off(struct helper *helper)
{
	helper->lost = true;
	helper->io = sd_event_source_disable_unref(helper->io);
	sl_closep(&helper->fd);
	(void)syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
}

static void helper_free(struct helper *helper)
{
	sl_list_unlink(&helper->link);
	helper->io = sd_event_source_disable_unref(helper->io);
	helper->death = sd_event_source_disable_unref(helper->death);
	sl_closep(&helper->fd);
	sl_closep(&helper->pidfd);
	(void)waitpid(helper->pid, NULL, WNOHANG);
	free(helper);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context);
static int on_death(sd_event_source *source, int fd, uint32_t events, void *context);

static int watch(struct sl_away *away, struct helper *helper)
{
	int r = sd_event_add_io(
		away->loop, &helper->io, helper->fd, EPOLLIN, on_io, helper);

	return r < 0 ? r
		     : sd_event_add_io(away->loop, &helper->death, helper->pidfd, EPOLLIN,
			       on_death, helper);
}

/* NULL: it cannot be started; the log says why. */
static struct helper *helper_new(struct sl_away *away, const struct sl_away_user *user)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	struct sl_error err = {{0}};
	int r;

	if (!helper)
		return NULL;
	r = sl_away_helper_start(user, &helper->pid, &helper->pidfd, &helper->fd, &err);
	if (r < 0) {
		sl_warning("%s", err.text);
		free(helper);
		return NULL;
	}
	helper->away = away;
	helper->user = *user;
	helper->deadline = sl_clock_now() + away->patience;
	sl_list_init(&helper->orders);
	sl_list_push_tail(&away->helpers, &helper->link);
	r = watch(away, helper);
	if (r < 0) {
		sl_warning("cannot watch sluice-move: %s", strerror(-r));
		cut_off(helper);
		helper_free(helper);
		return NULL;
	}
	sl_info("process %d, sluice-move, moves processes of user %u", (int)helper->pid,
		(unsigned int)user->uid);
	return helper;
}

static struct helper *helper_find(
	const struct sl_away *away, const struct sl_away_user *user)
{
	sl_list_foreach (link, &away->helpers) {
		struct helper *helper = SL_LIST_ENTRY(link, struct helper, link);

		if (!helper->lost && helper->user.uid == user->uid &&
			helper->user.gid == user->gid &&
			helper->user.capabilities == user->capabilities)
			return helper;
	}
	return NULL;
}

/* Its helper died of it, or may have. */
static void bury(struct sl_away *away, struct order *order)
{
	order->sent = false;
	if (--order->left > 0)
		return;
	if (order->is.back || order->undone) {
		give_up(away, order);
	} else {
		order->undone = true;
		order->left = 1;
		order->answer.outcome = SL_MOVE_REFUSED;
	}
}

static void helper_lost(struct helper *helper, const char *why)
{
	struct sl_away *away = helper->away;
	struct helper *fresh = NULL;

	if (helper->lost)
		return;
	sl_warning("process %d, sluice-move of user %u, %s; %u orders were open",
		(int)helper->pid, (unsigned int)helper->user.uid, why, helper->sent);
	cut_off(helper);
	sl_list_foreach_safe (link, &helper->orders) {
		struct order *order = SL_LIST_ENTRY(link, struct order, link);

		if (order->sent)
			bury(away, order);
	}
	/* One that never got ready would not the next time. */
	if (helper->ready && !sl_list_is_empty(&helper->orders))
		fresh = helper_new(away, &helper->user);
	if (!fresh)
		give_up_all(away, &helper->orders);
	sl_list_foreach_safe (link, &helper->orders) {
		sl_list_unlink(link);
		sl_list_push_tail(&fresh->orders, link);
	}
}

/* --- Messages. --- */

/* Is an older order of the same process open? */
static bool must_wait(const struct helper *helper, const struct order *order)
{
	sl_list_foreach (link, &helper->orders) {
		const struct order *older = SL_LIST_ENTRY(link, struct order, link);

		if (older == order)
			break;
		if (older->is.pid == order->is.pid)
			return true;
	}
	return false;
}

static bool send_order(struct helper *helper, struct order *order)
{
	struct sl_move_order message = {.order = ++helper->away->last_ticket,
		.start_ticks = order->is.start_ticks,
		.pid = order->is.pid,
		.op = order->is.back || order->undone ? SL_MOVE_BACK : SL_MOVE_AWAY,
		.lock_ms = order->is.lock_ms,
		.pairs = order->is.back ? order->is.pairs : 0,
		.whole = order->is.whole};

	memcpy(message.pair, order->is.pair, sizeof(message.pair));
	order->ticket = message.order;
	order->sent = order->tried = true;
	order->deadline =
		sl_clock_now() + helper->away->patience + order->is.lock_ms * SL_MS;
	helper->sent++;
	return send(helper->fd, &message, sizeof(message), MSG_NOSIGNAL) ==
	       (ssize_t)sizeof(message);
}

/* Sends what may be sent. */
static void feed(struct helper *helper)
{
	if (!helper->ready || helper->lost)
		return;
	sl_list_foreach (link, &helper->orders) {
		struct order *order = SL_LIST_ENTRY(link, struct order, link);

		if (helper->sent >= SL_MOVE_ORDERS_MAX)
			break;
		if (order->sent || must_wait(helper, order))
			continue;
		if (!send_order(helper, order)) {
			helper_lost(helper, "takes no orders");
			return;
		}
	}
	if (sl_list_is_empty(&helper->orders))
		helper->deadline = sl_clock_now() + helper->away->idle;
}

static struct order *find_sent(const struct helper *helper, uint64_t ticket)
{
	sl_list_foreach (link, &helper->orders) {
		struct order *order = SL_LIST_ENTRY(link, struct order, link);

		if (order->sent && order->ticket == ticket)
			return order;
	}
	return NULL;
}

static void answered(
	struct sl_away *away, struct order *order, const struct sl_move_answer *message)
{
	enum sl_move_outcome outcome = (enum sl_move_outcome)message->outcome;

	order->sent = false;
	if (order->undone) {
		/* The answer of the AWAY is there. */
		if (outcome == SL_MOVE_UNABLE)
			outcome = SL_MOVE_AWAY_STILL;
		if (outcome != SL_MOVE_DONE)
			order->answer.outcome = outcome;
		finish(away, order);
		return;
	}
	order->answer = (struct sl_away_answer){.outcome = outcome,
		.cuda_result = message->cuda_result,
		.at = (enum sl_move_call)message->at,
		.span = message->span_ns};
	if (outcome == SL_MOVE_AWAY_STILL && !order->is.back) {
		order->answer.outcome = SL_MOVE_REFUSED;
		order->undone = true;
		order->left = 1;
	} else {
		finish(away, order);
	}
}

/* False: nonsense. */
static bool take_message(struct helper *helper, const struct sl_move_answer *message)
{
	struct order *order;

	if (message->outcome == SL_MOVE_READY && !helper->ready) {
		helper->ready = true;
		return true;
	}
	order = find_sent(helper, message->order);
	if (!order || message->outcome >= SL_MOVE_OUTCOMES ||
		message->at >= SL_MOVE_CALLS_COUNT)
		return false;
	helper->sent--;
	answered(helper->away, order, message);
	return true;
}

static void take_messages(struct helper *helper)
{
	/* No more than its orders. */
	for (int i = 0; i <= SL_MOVE_ORDERS_MAX && !helper->lost; i++) {
		struct sl_move_answer message;
		ssize_t n = recv(helper->fd, &message, sizeof(message), MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0)
			helper_lost(helper, "has died");
		else if (n != (ssize_t)sizeof(message) || !take_message(helper, &message))
			helper_lost(helper, "speaks nonsense and is killed");
	}
	feed(helper);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct helper *helper = context;
	struct sl_away *away = helper->away;

	take_messages(helper);
	set_timer(away);
	return 0;
}

static int on_death(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct helper *helper = context;
	struct sl_away *away = helper->away;

	/* What it said before. */
	if (!helper->lost)
		take_messages(helper);
	helper_lost(helper, "has died");
	helper_free(helper);
	set_timer(away);
	return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_away *away = context;
	sl_ns now = sl_clock_now();

	sl_list_foreach (link, &away->helpers) {
		struct helper *helper = SL_LIST_ENTRY(link, struct helper, link);

		if (next_of(helper) > now)
			continue;
		if (helper->ready && sl_list_is_empty(&helper->orders))
			cut_off(helper);
		else
			helper_lost(helper, "hangs and is killed");
	}
	set_timer(away);
	return 0;
}

/* --- The caller's side. --- */

int sl_away_order(struct sl_away *away, const struct sl_away_order *order)
{
	struct order *new = calloc(1, sizeof(*new));
	struct sl_away_user user = {order->uid, order->gid, order->capabilities};
	uid_t self = geteuid();
	struct helper *helper = NULL;

	if (!new)
		return sl_err_origin(-ENOMEM);
	new->is = *order;
	new->left = TRIES;
	sl_list_init(&new->link);
	if (self == 0 || self == order->uid) {
		helper = helper_find(away, &user);
		if (!helper)
			helper = helper_new(away, &user);
	}
	if (!helper) {
		give_up(away, new);
		return 0;
	}
	sl_list_push_tail(&helper->orders, &new->link);
	feed(helper);
	set_timer(away);
	return 0;
}

void sl_away_set_bounds(struct sl_away *away, sl_ns patience, sl_ns idle)
{
	away->patience = patience;
	away->idle = idle;
}

static int add_sources(struct sl_away *away)
{
	int r = sd_event_add_defer(away->loop, &away->deferred, on_deferred, away);

	if (r < 0)
		return sl_err_origin(r);
	(void)sd_event_source_set_enabled(away->deferred, SD_EVENT_OFF);
	r = sd_event_add_time(
		away->loop, &away->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, away);
	if (r < 0)
		return sl_err_origin(r);
	sl_timer_set(away->timer, SL_NS_NEVER);
	return 0;
}

int sl_away_open(sd_event *loop, sl_away_done *done, void *context, struct sl_away **out)
{
	struct sl_away *away = calloc(1, sizeof(*away));
	int r;

	if (!away)
		return sl_err_origin(-ENOMEM);
	away->loop = loop;
	away->done = done;
	away->context = context;
	sl_list_init(&away->helpers);
	sl_list_init(&away->finished);
	sl_away_set_bounds(away, PATIENCE, IDLE);
	r = add_sources(away);
	if (r < 0) {
		(void)sl_away_close(away);
		return r;
	}
	*out = away;
	return 0;
}

static void free_orders(struct sl_link *orders)
{
	sl_list_foreach_safe (link, orders) {
		sl_list_unlink(link);
		free(SL_LIST_ENTRY(link, struct order, link));
	}
}

struct sl_away *sl_away_close(struct sl_away *away)
{
	if (!away)
		return NULL;
	sl_list_foreach_safe (link, &away->helpers) {
		struct helper *helper = SL_LIST_ENTRY(link, struct helper, link);

		free_orders(&helper->orders);
		cut_off(helper);
		helper_free(helper);
	}
	free_orders(&away->finished);
	(void)sd_event_source_disable_unref(away->deferred);
	(void)sd_event_source_disable_unref(away->timer);
	free(away);
	return NULL;
}
