/*
 * share - leaky buckets
 *
 * A bucket's level is how much a process or user has recently used beyond its share. A level is
 * updated when it is used, so no timer is needed.
 */
#include "daemon/link/share.h"

#include <stdlib.h>
#include <time.h>

#include "daemon/state/daemon.h"

#define PROCESSES 4096 /* buckets; powers of two */
#define USERS     256

struct bucket {
	uint64_t level_ns;
	sl_ns at;
};

struct sl_shares {
	struct bucket processes[PROCESSES], users[USERS];
	uint64_t longest_ns[SL_SHARE_KINDS][SL_SHARE_LONGEST]; /* longest first */
};

static struct sl_shares *shares_of(struct sl_daemon *daemon)
{
	if (!daemon->shares)
		daemon->shares = calloc(1, sizeof(*daemon->shares));
	return daemon->shares;
}

void sl_share_fini(struct sl_daemon *daemon)
{
	free(daemon->shares);
	daemon->shares = NULL;
}

/* The salt is secret, so no process can aim at the bucket of another. */
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

bool sl_share_charge(struct sl_daemon *daemon, uint64_t key, uid_t uid, uint64_t spent_ns,
	struct sl_share_use *use)
{
	struct sl_shares *shares = shares_of(daemon);
	sl_ns now = sl_clock_now();

	if (!shares)
		return false;
	use->process_ns =
		add(find(daemon, shares->processes, PROCESSES, key), now, spent_ns);
	use->user_ns = add(find(daemon, shares->users, USERS, uid), now, spent_ns);
	return true;
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

uint64_t sl_share_spent_ns(const struct sl_share_turn *turn)
{
	return sl_sub_sat(cpu_now(), turn->cpu_begin);
}

void sl_share_note(struct sl_daemon *daemon, enum sl_share_kind kind,
	const struct sl_share_turn *turn)
{
	sl_share_note_ns(daemon, kind, sl_share_spent_ns(turn));
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
#include "daemon/state/daemon.h"
#undef SL_SHARE_KIND
	};

	return names[kind];
}

bool sl_share_turn_is_over(sl_ns begin)
{
	return sl_clock_now() - begin > SL_SHARE_TURN_NS;
}
