#include <stdio.h>

#include "../../base/test.h"

#include "base/log.h"
#include "policy/node.h"
#include "policy/words/reason.h"

/* The longest that names may be, and the longest sentences that the header promises room for. */
#define NAME_MOST     63
#define SENTENCE_MOST 512

/* As long as they get: 7 digits of KiB never happen, but a pid of 10 digits may. */
static struct sl_reason_facts longest(uint32_t reason, const char *name)
{
	return (struct sl_reason_facts){.reason = reason,
		.gpu = UINT32_MAX,
		.name = name,
		.other = name,
		.bytes = UINT64_MAX,
		.available_bytes = UINT64_MAX,
		.other_bytes = UINT64_MAX,
		.span = UINT64_MAX,
		.pid = UINT32_MAX};
}

static void every_row_is_a_sentence(void **state)
{
	char name[NAME_MOST + 1];

	memset(name, 'W', NAME_MOST);
	name[NAME_MOST] = '\0';
	for (uint32_t reason = 0; reason < SL_REASONS; reason++) {
		const char *row = sl_reason_name(reason);
		struct sl_reason_facts facts = longest(reason, name);
		char text[4 * SENTENCE_MOST];
		size_t length;

		assert_ptr_equal(sl_reason_sentence(&facts, text, sizeof(text)), text);
		length = strlen(text);
		if (strpbrk(text, "{}"))
			fail_msg("row '%s': a place nobody fills: %s", row, text);
		if (strchr(text, '%') || strchr(text, '\n') || strstr(text, "  "))
			fail_msg("row '%s': not a plain sentence: %s", row, text);
		if (length >= SENTENCE_MOST)
			fail_msg("row '%s': %zu bytes: %s", row, length, text);
		if (length == 0 || strchr(".!?, ", text[length - 1]))
			fail_msg("row '%s': ends wrongly: '%s'", row, text);
	}
}

static void found_by_its_name(void **state)
{
	for (uint32_t reason = 0; reason < SL_REASONS; reason++)
		assert_row_u64(sl_reason_name(reason),
			sl_reason_named(sl_reason_name(reason)), reason);
	assert_row_u64("a part", sl_reason_named("EVICT"), SL_REASONS);
	assert_row_u64("none", sl_reason_named(""), SL_REASONS);
	assert_row_u64("out of range", sl_reason_named("?"), SL_REASONS);
}

/* With nothing known but the reason it still reads as a sentence. */
static void nothing_known(void **state)
{
	for (uint32_t reason = 0; reason < SL_REASONS; reason++) {
		struct sl_reason_facts facts = {.reason = reason};
		char text[SENTENCE_MOST];

		(void)sl_reason_sentence(&facts, text, sizeof(text));
		if (strpbrk(text, "{}") || strstr(text, "  ") || strstr(text, "(null)"))
			fail_msg("row '%s': '%s'", sl_reason_name(reason), text);
	}
}

static const struct {
	const char *name;
	struct sl_reason_facts facts;
	const char *text;
} rows[] = {
	{"numbers and names",
		{SL_REASON_ENTITLED_WAITS, 1, "alice", "bob", 3ull << 30, 1ull << 30,
			2ull << 30, 12500 * SL_MS, 0},
		"alice has waited 12.5s for 3 GiB within its request on GPU 1: 1 GiB "
		"is free, and bob has 2 GiB above its request"},
	{"who cannot give back what comes back",
		{SL_REASON_RETURN_UNTAKEABLE, 1, "alice", "bob", 3ull << 30, 0,
			1ull << 30, 0, 0},
		"alice was denied 3 GiB within its request on GPU 1: bob is coming "
		"back there with 1 GiB above its own request, and cannot give them "
		"back while one of its processes is stopped, traced or silent; `sluice "
		"why bob` names the process: continue it or end it"},
	{"a process in the way of a return",
		{SL_REASON_STUCK_WAITS, 1, "alice", "bob", 3ull << 30,
			SL_CONDITION_TRACED, 1ull << 30, 12500 * SL_MS, 4711},
		"alice has waited 12.5s for 3 GiB to come back to GPU 1: process 4711 "
		"of bob occupies or reserves 1 GiB there, and cannot give them back "
		"while it is traced; continue it or end it"},
	{"a process that runs, but what it does never ends",
		{SL_REASON_UNTAKEABLE_BEGINS, 0, "alice", NULL, 0, SL_CONDITION_RUNNING,
			0, 3 * SL_S, 4711},
		"process 4711 of alice cannot give memory back: it has been busy with "
		"one piece of GPU work for 3s; until it can, alice gets no more "
		"memory than it holds"},
	{"of an evicted one nothing runs on",
		{SL_REASON_EVICT_NO_HOST, 0, "alice", NULL, 18ull << 20, 0, 0, 0, 0},
		"alice could not be moved off GPU 0: the host has no memory for 18 "
		"MiB; the move is retried"},
	{"the host in the way",
		{SL_REASON_NO_HOST_WAITS, 0, "alice", "bob", 0, 0, 1ull << 30, 0, 0},
		"bob cannot make room for alice on GPU 0: the host has no memory for 1 "
		"GiB; free some (`sluice doctor` shows how much there is), and the "
		"move is retried"},
	{"the other side unknown",
		{SL_REASON_BURST_WAITS, 0, "alice", "", 512ull << 20, 0, 0, 850 * SL_MS,
			0},
		"alice has waited 850ms for 512 MiB above its request on GPU 0: 0 B is "
		"free for it, and no other workload has anything above its request"},
	{"the other side unknown but for its bytes",
		{SL_REASON_BURST_WAITS, 0, "alice", "", 512ull << 20, 0, 1ull << 30,
			850 * SL_MS, 0},
		"alice has waited 850ms for 512 MiB above its request on GPU 0: 0 B is "
		"free for it, and another workload has 1 GiB above its request"},
	{"denied, and somebody could have given it",
		{SL_REASON_WAITED_TOO_LONG, 0, "alice", "bob", 512ull << 20, 0,
			1ull << 30, 60 * SL_S, 0},
		"alice waited 60s for 512 MiB above its request on GPU 0, the longest "
		"wait; 0 B was free for it, and bob had 1 GiB above its request"},
	{"denied, and nobody could have given it",
		{SL_REASON_WAITED_TOO_LONG, 0, "alice", "", 512ull << 20, 1ull << 20, 0,
			60 * SL_S, 0},
		"alice waited 60s for 512 MiB above its request on GPU 0, the longest "
		"wait; 1 MiB was free for it, and no other workload had anything above "
		"its request"},
	{"nobody known", {SL_REASON_CANCELLED, 0, NULL, NULL, 1024, 0, 0, 0, 0},
		"the demand of a workload for 1 KiB was cancelled"},
	{"a process", {SL_REASON_JOINED, 0, "alice", NULL, 0, 0, 0, 0, 4711},
		"process 4711 of alice uses the GPUs"},
	{"a process without a number",
		{SL_REASON_JOINED, 0, "alice", NULL, 0, 0, 0, 0, 0},
		"process (unknown) of alice uses the GPUs"},
	{"the number of an error", {SL_REASON_XID_OF_GPU, 3, NULL, NULL, 0, 0, 79, 0, 0},
		"the driver reported Xid 79 on GPU 3, which ends all work on it until it "
		"is reset"},
	{"a user", {SL_REASON_STOP_ASKED, 0, "alice", NULL, 0, 0, 1001, 0, 0},
		"alice was stopped because user 1000 asked for it"},
	{"the superuser", {SL_REASON_STOP_ASKED, 0, "alice", NULL, 0, 0, 1, 0, 0},
		"alice was stopped because user 0 asked for it"},
	{"a user nobody knows", {.reason = SL_REASON_STOP_ASKED, .name = "alice"},
		"alice was stopped because an unknown user asked for it"},
	{"a priority",
		{SL_REASON_CHANGED_PRIORITY, 0, "alice", NULL, (uint64_t)-7, 0, 8, 0, 0},
		"alice was changed by user 7: priority -7"},
	{"no reason", {.reason = SL_REASON_NONE}, "no reason"},
	{"out of range", {.reason = SL_REASONS}, "?"},
	{"far out of range", {.reason = UINT32_MAX}, "?"},
	/* names are words, never templates or formats */
	{"a name that is a format",
		{SL_REASON_STARTED, 0, "%s%n%d%%", NULL, 0, 0, 0, 0, 0},
		"%s%n%d%% started"},
	{"a name that is a template",
		{SL_REASON_STARTED, 0, "{other}{name}{", NULL, 0, 0, 0, 0, 0},
		"{other}{name}{ started"},
	{"a name in another script",
		{SL_REASON_STARTED, 0, "\xc3\xa4\xe2\x82\xac", NULL, 0, 0, 0, 0, 0},
		"\xc3\xa4\xe2\x82\xac started"},
};

static void says_what_is_known(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char text[SENTENCE_MOST];

		assert_row_text(rows[i].name,
			sl_reason_sentence(&rows[i].facts, text, sizeof(text)),
			rows[i].text);
	}
}

static const struct {
	const char *name;
	sl_ns span;
	const char *text;
} spans[] = {
	{"nothing", 0, "0s"},
	{"just below a second", SL_S - 1, "999ms"},
	{"a second", SL_S, "1s"},
	{"just below 100 seconds", 100 * SL_S - 1, "99.9s"},
	{"100 seconds", 100 * SL_S, "1m"},
	{"just below 100 minutes", 6000 * SL_S - 1, "99m"},
	{"100 minutes", 6000 * SL_S, "1h"},
};

static void times_are_read_by_people(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(spans); i++) {
		struct sl_reason_facts facts = {
			.reason = SL_REASON_ENDED, .name = "w", .span = spans[i].span};
		char text[SENTENCE_MOST], want[64];

		(void)snprintf(want, sizeof(want), "w ended after %s", spans[i].text);
		assert_row_text(spans[i].name,
			sl_reason_sentence(&facts, text, sizeof(text)), want);
	}
}

/* Every size cuts at its end and writes nothing behind it. */
static void is_cut_to_size(void **state)
{
	struct sl_reason_facts facts = longest(SL_REASON_STOP_LAST_RESORT, "name");
	char whole[SENTENCE_MOST], text[SENTENCE_MOST + 1];
	size_t length;

	(void)sl_reason_sentence(&facts, whole, sizeof(whole));
	length = strlen(whole);
	for (size_t size = 1; size <= length + 1; size++) {
		memset(text, '#', sizeof(text));
		(void)sl_reason_sentence(&facts, text, size);
		assert_row_u64("length", strlen(text), size - 1);
		assert_memory_equal(text, whole, size - 1);
		assert_row_u64("behind it", (uint8_t)text[size], '#');
	}
	text[0] = '#';
	assert_row_text("no room at all", sl_reason_sentence(&facts, text, 0), "");
	assert_row_u64("untouched", (uint8_t)text[0], '#');
}

static void kinds(void **state)
{
	static const struct {
		uint32_t reason;
		const char *kind;
	} some[] = {
		{SL_REASON_HOPELESS, "deny"},
		{SL_REASON_GPU_LOST, "except"},
		{SL_REASON_CANCELLED, "note"}, /* no program is told out-of-memory */
		{SL_REASON_BOUND_LIMIT, "refuse"},
		{SL_REASON_KEPT_FOR_HEAD, "wait"},
		{SL_REASON_STOP_ASKED, "stop"},
		{SL_REASON_LOST_FOR, "note"},
		{SL_REASONS, "note"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(some); i++)
		assert_row_text(sl_reason_name(some[i].reason),
			sl_reason_kind_name(sl_reason_kind(some[i].reason)),
			some[i].kind);
	assert_row_text("out of range", sl_reason_kind_name(SL_REASON_KINDS), "?");
}

static void notes_have_a_level_and_may_explain(void **state)
{
	static const struct {
		uint32_t reason;
		uint64_t level;
		bool explains, is_change;
	} some[] = {
		{SL_REASON_HOPELESS, SL_LOG_DEBUG, true, false},
		{SL_REASON_GPU_LOST, SL_LOG_WARNING, true, false},
		{SL_REASON_KEPT_FOR_HEAD, SL_LOG_DEBUG, false, false},
		{SL_REASON_STOP_ASKED, SL_LOG_WARNING, true, false},
		{SL_REASON_STARTED, SL_LOG_INFO, false, false},
		{SL_REASON_ENDED, SL_LOG_INFO, true, false},
		{SL_REASON_EVICT_BUSY, SL_LOG_DEBUG, true, false},
		{SL_REASON_CHANGED_GRACE, SL_LOG_INFO, true, true},
		{SL_REASON_LOST_FOR, SL_LOG_WARNING, true, false},
		{SL_REASONS, SL_LOG_WARNING, false, false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(some); i++) {
		const char *name = sl_reason_name(some[i].reason);

		assert_row_u64(
			name, (uint64_t)sl_reason_level(some[i].reason), some[i].level);
		assert_row_u64(
			name, sl_reason_explains(some[i].reason), some[i].explains);
		assert_row_u64(
			name, sl_reason_is_change(some[i].reason), some[i].is_change);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_a_sentence),
		cmocka_unit_test(found_by_its_name),
		cmocka_unit_test(nothing_known),
		cmocka_unit_test(says_what_is_known),
		cmocka_unit_test(times_are_read_by_people),
		cmocka_unit_test(is_cut_to_size),
		cmocka_unit_test(kinds),
		cmocka_unit_test(notes_have_a_level_and_may_explain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
