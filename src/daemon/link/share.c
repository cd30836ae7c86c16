/*
 * share - leaky buckets, and a list of those who rest
 *
 * A bucket's level is how much more than its share somebody has used of late. Levels are brought up
 * to date when they are looked at, so nobody has to tick.
 */
#include "daemon/link/share.h"

#include <stdlib.h>
#include <time.h>

#define PROCESSES 4096 /* buckets; powers of two */
#define USERS     256

struct bucket {
	uint64_t level_ns;
	sl_ns at;
};

struct sl_shares {
	struct sl_daemon *daemon;
	struct bucket processes[PROCESSES], users[USERS];
	struct sl_link resting; /* peers: rest_link, in no order */
	sd_event_source *timer;
	sl_ns timer_at;
	uint64_t longest_ns[SL_SHARE_KINDS][SL_SHARE_LONGEST]; /* longest first */
};

/* Wakes whose time has come. */
static int on_rested(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;
	sl_ns now = sl_clock_now(), next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &daemon->shares->resting) {
		struct sl_peer *peer = SL_LIST_ENTRY(link, struct sl_peer, rest_link);

		if (peer->rest_until <= now) {
			sl_list_unlink(link);
			sl_peer_rested(peer);
		} else {
			next = sl_min_u64(next, peer->rest_until);
		}
	}
	daemon->shares->timer_at = next;
	sl_timer_set(source, next);
	sl_daemon_settle(daemon);
	return 0;
}

static struct sl_shares *shares_of(struct sl_daemon *daemon)
{
	struct sl_shares *shares = daemon->shares;

	if (shares)
		return shares;
	shares = calloc(1, sizeof(*shares));
	if (!shares)
		return NULL;
	shares->daemon = daemon;
	shares->timer_at = SL_NS_NEVER;
	sl_list_init(&shares->resting);
	if (sl_timer_new(daemon, SL_PRIORITY_TIMER, on_rested, &shares->timer) < 0) {
		free(shares);
		return NULL;
	}
	daemon->shares = shares;
	return shares;
}

void sl_share_fini(struct sl_daemon *daemon)
{
	if (!daemon->shares)
		return;
	daemon->shares->timer = sd_event_source_disable_unref(daemon->shares->timer);
	free(daemon->shares);
	daemon->shares = NULL;
}

/* The salt is nobody's to know, so nobody can aim at another's bucket. */
static struct bucket *find(
	const struct sl_daemon *daemon, struct bucket *table, size_t size, uint64_t key)
{
	uint64_t hash = (key + 1) * 0x9e3779b97f4a7c15ull ^ daemon->share_salt;

	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9ull;
	return &table[(hash >> 32) & (size - 1)];
}

static uint64_t add(struct bucket *bucket, sl_ns now, uint64_t spent_ns)
{
	uint64_t drained = sl_sub_sat(now, bucket->at) / 100 * SL_SHARE_PCT;

	bucket->level_ns = sl_min_u64(
		sl_sub_sat(bucket->level_ns, drained) + spent_ns, SL_SHARE_MOST_NS);
	bucket->at = now;
	return bucket->level_ns;
}

static int64_t place_of(const struct sl_peer *peer, uint64_t process_ns, uint64_t user_ns)
{
	if (process_ns > SL_SHARE_CLIENT_NS)
		return SL_PRIORITY_GREEDY;
	if (peer->control || !peer->greeted)
		return SL_PRIORITY_CONTROL;
	return user_ns > SL_SHARE_CLIENT_NS ? SL_PRIORITY_PEER + 1 : SL_PRIORITY_PEER;
}

static void rest(struct sl_shares *shares, struct sl_peer *peer, sl_ns now, uint64_t over)
{
	peer->rest_until = now + over / SL_SHARE_PCT * 100;
	if (!sl_list_is_linked(&peer->rest_link))
		sl_list_push_tail(&shares->resting, &peer->rest_link);
	if (peer->rest_until >= shares->timer_at)
		return;
	shares->timer_at = peer->rest_until;
	sl_timer_set(shares->timer, shares->timer_at);
}

static void account(struct sl_peer *peer, sl_ns now, uint64_t spent_ns)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_shares *shares = shares_of(daemon);
	uint64_t process_ns, user_ns, over;

	if (!shares)
		return;
	process_ns = add(find(daemon, shares->processes, PROCESSES, peer->share_key), now,
		spent_ns);
	user_ns = add(find(daemon, shares->users, USERS, peer->uid), now, spent_ns);
	if (peer->doomed)
		return;
	/* Setting what is set already costs nothing. */
	(void)sd_event_source_set_priority(peer->io, place_of(peer, process_ns, user_ns));
	over = sl_sub_sat(
		sl_max_u64(process_ns, peer->uid ? user_ns : 0), SL_SHARE_CONTROL_NS);
	if (over && peer->control)
		rest(shares, peer, now, over);
}

static sl_ns cpu_now(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (sl_ns)now.tv_sec * SL_S + (sl_ns)now.tv_nsec;
}

struct sl_share_turn sl_share_begin(void)
{
	return (struct sl_share_turn){.begin = sl_clock_now(), .cpu_begin = cpu_now()};
}

static void note(struct sl_shares *shares, enum sl_share_kind kind, uint64_t spent_ns)
{
	uint64_t *longest = shares->longest_ns[kind];
	int at = SL_SHARE_LONGEST - 1;

	if (spent_ns <= longest[at])
		return;
	for (; at && longest[at - 1] < spent_ns; at--)
		longest[at] = longest[at - 1];
	longest[at] = spent_ns;
}

void sl_share_charge(struct sl_peer *peer, const struct sl_share_turn *turn)
{
	struct sl_shares *shares = shares_of(peer->daemon);
	uint64_t spent_ns = sl_sub_sat(cpu_now(), turn->cpu_begin);

	if (!shares)
		return;
	account(peer, sl_clock_now(), spent_ns);
	note(shares,
		!peer->greeted  ? SL_SHARE_GREETING
		: peer->control ? SL_SHARE_CONTROL
				: SL_SHARE_CLIENT,
		spent_ns);
}

void sl_share_note(struct sl_daemon *daemon, enum sl_share_kind kind,
	const struct sl_share_turn *turn)
{
	sl_share_note_ns(daemon, kind, sl_sub_sat(cpu_now(), turn->cpu_begin));
}

void sl_share_note_ns(
	struct sl_daemon *daemon, enum sl_share_kind kind, uint64_t spent_ns)
{
	struct sl_shares *shares = shares_of(daemon);

	if (shares)
		note(shares, kind, spent_ns);
}

uint64_t sl_share_longest_ns(const struct sl_daemon *daemon, enum sl_share_kind kind)
{
	return daemon->shares ? daemon->shares->longest_ns[kind][0] : 0;
}

uint64_t sl_share_long_ns(const struct sl_daemon *daemon, enum sl_share_kind kind)
{
	return daemon->shares ? daemon->shares->longest_ns[kind][SL_SHARE_LONGEST - 1]
			      : 0;
}

const char *sl_share_kind_name(enum sl_share_kind kind)
{
	static const char *const names[SL_SHARE_KINDS] = {
#define SL_SHARE_KIND(ID, key, text) [SL_SHARE_##ID] = #key,
#include "daemon/link/share.def"
#undef SL_SHARE_KIND
	};

	return names[kind];
}

void sl_share_place(struct sl_peer *peer)
{
	account(peer, sl_clock_now(), 0);
}

bool sl_share_turn_is_over(sl_ns begin)
{
	return sl_clock_now() - begin > SL_SHARE_TURN_NS;
}
