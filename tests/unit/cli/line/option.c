/* The parser of options: every type, every way to be wrong, and guesses that must not be made. */
#include "../../base/test.h"

#include "base/nearest.h"
#include "cli/line/cli.h"
#include "cli/line/option.h"

struct settings {
	bool json;
	const char *text, *name;
	struct sl_amount request;
	int64_t gpus;
	uint64_t memory;
	sl_ns watch;
};

static const struct sl_option rows_of_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Flag."),
	SL_OPT(struct settings, text, STRING, "TEXT", 0, 0, "Text."),
	SL_OPT(struct settings, name, NAME, "NAME", 0, 0, "Name."),
	SL_OPT(struct settings, request, AMOUNT, "AMOUNT", 0, 0, "Amount."),
	SL_OPT(struct settings, gpus, INTEGER, "N", 1, 64, "Count."),
	SL_OPT(struct settings, memory, SIZE, "SIZE", 64 * SL_MIB, 1024 * SL_GIB,
		"Size."),
	SL_OPT(struct settings, watch, SECONDS, "SECONDS", 1000, 60000, "Again."),
	SL_OPT_WORDS("CMD", "Program."),
	SL_OPT_END,
};

#define LONG_NAME "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
	const char *words[6];
	int outcome;
	int first;        /* on OK */
	const char *says; /* on BAD */
} rows[] = {
	{{"v"}, SL_OPTION_OK, 1, NULL},
	{{"v", "--json", "cmd", "--bad"}, SL_OPTION_OK, 2, NULL},
	{{"v", "--json", "--", "--bad"}, SL_OPTION_OK, 3, NULL},
	{{"v", "-", "x"}, SL_OPTION_OK, 1, NULL},
	{{"v", "--gpus", "2"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--gpus=64"}, SL_OPTION_OK, 2, NULL},
	{{"v", "--memory", "4GiB"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--memory", "67108864"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--watch"}, SL_OPTION_OK, 2, NULL},
	{{"v", "--watch", "5"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--watch", "--json"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--request", "0.25"}, SL_OPTION_OK, 3, NULL},
	{{"v", "--text="}, SL_OPTION_OK, 2, NULL},
	{{"v", "--help"}, SL_OPTION_HELP, 0, NULL},
	{{"v", "--json", "-h"}, SL_OPTION_HELP, 0, NULL},
	{{"v", "--reqest", "1"}, SL_OPTION_BAD, 0, "did you mean --request?"},
	{{"v", "--req", "1"}, SL_OPTION_BAD, 0, "did you mean --request?"},
	{{"v", "--mem=1"}, SL_OPTION_BAD, 0, "did you mean --memory?"},
	{{"v", "--jsno"}, SL_OPTION_BAD, 0, "did you mean --json?"},
	{{"v", "--zzzzzzz"}, SL_OPTION_BAD, 0, "unknown option --zzzzzzz"},
	{{"v", "--" LONG_NAME}, SL_OPTION_BAD, 0, "unknown option --0123"},
	{{"v", "-j"}, SL_OPTION_BAD, 0, "two dashes"},
	{{"v", "--json=yes"}, SL_OPTION_BAD, 0, "takes no value"},
	{{"v", "--gpus"}, SL_OPTION_BAD, 0, "--gpus needs a value: --gpus N"},
	{{"v", "--gpus", "--json"}, SL_OPTION_BAD, 0, "needs a value"},
	{{"v", "--gpus", "0"}, SL_OPTION_BAD, 0, "not within 1 to 64"},
	{{"v", "--gpus", "65"}, SL_OPTION_BAD, 0, "not within"},
	{{"v", "--gpus", "two"}, SL_OPTION_BAD, 0, "not a whole number"},
	{{"v", "--gpus", "1x"}, SL_OPTION_BAD, 0, "not a whole number"},
	{{"v", "--gpus", " 1"}, SL_OPTION_BAD, 0, "not a whole number"},
	{{"v", "--gpus", "99999999999999999999"}, SL_OPTION_BAD, 0, "not within"},
	{{"v", "--request", "8"}, SL_OPTION_BAD, 0, "did you mean 8GiB?"},
	{{"v", "--request", "1.5"}, SL_OPTION_BAD, 0, "--request: "},
	{{"v", "--request", "much"}, SL_OPTION_BAD, 0, "--request: "},
	{{"v", "--request", "-1"}, SL_OPTION_BAD, 0, "negative"},
	{{"v", "--memory", "4"}, SL_OPTION_BAD, 0, "did you mean 4GiB?"},
	{{"v", "--memory", "0.5"}, SL_OPTION_BAD, 0, "a fraction has no meaning"},
	{{"v", "--memory", "2Ti"}, SL_OPTION_BAD, 0, "not within 64 MiB to 1 TiB"},
	{{"v", "--watch", "61"}, SL_OPTION_BAD, 0, "not within"},
	{{"v", "--watch=soon"}, SL_OPTION_BAD, 0, "--watch: "},
	{{"v", "--name", ""}, SL_OPTION_BAD, 0, "1 to 63 bytes"},
	{{"v", "--name", LONG_NAME}, SL_OPTION_BAD, 0, "1 to 63 bytes, not 64"},
	{{"v", "--name", "a b"}, SL_OPTION_BAD, 0, "blanks"},
	{{"v", "--name", "a\x1b[31m"}, SL_OPTION_BAD, 0, "control characters"},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct settings s = {0};
		struct sl_error err = {0};
		char *argv[7] = {0}, label[256] = "";
		int argc = 0, first = -1, outcome;

		for (; rows[i].words[argc]; argc++) {
			argv[argc] = (char *)rows[i].words[argc];
			strncat(label, rows[i].words[argc], 40);
			strcat(label, " ");
		}
		outcome = sl_option_parse(rows_of_options, &s, argc, argv, &first, &err);
		assert_row_u64(label, (uint64_t)outcome, (uint64_t)rows[i].outcome);
		if (outcome == SL_OPTION_OK)
			assert_row_u64(label, (uint64_t)first, (uint64_t)rows[i].first);
		if (outcome == SL_OPTION_BAD)
			assert_row_contains(label, err.text, rows[i].says);
		assert_null(strchr(err.text, '\x1b'));
	}
}

static void test_values(void **state)
{
	char *argv[] = {(char *)"v", (char *)"--json", (char *)"--text", (char *)"t t",
		(char *)"--name=n", (char *)"--request", (char *)"512Mi",
		(char *)"--gpus", (char *)"3", (char *)"--memory=1GiB", (char *)"--watch",
		(char *)"2s", (char *)"--gpus=4", NULL};
	struct settings s = {0};
	struct sl_error err = {0};
	int first;

	(void)state;
	assert_int_equal(sl_option_parse(rows_of_options, &s, 13, argv, &first, &err),
		SL_OPTION_OK);
	assert_true(s.json);
	assert_string_equal(s.text, "t t");
	assert_string_equal(s.name, "n");
	assert_int_equal(s.request.kind, SL_AMOUNT_BYTES);
	assert_int_equal(s.request.value, 512 * SL_MIB);
	assert_int_equal(s.gpus, 4); /* the last one wins */
	assert_int_equal(s.memory, SL_GIB);
	assert_int_equal(s.watch, 2 * SL_S);
}

struct named {
	const char *name;
	bool follow;
	enum sl_switch swap, reclaim;
	struct sl_strings env;
};

static const struct sl_option rows_of_named[] = {
	SL_OPT_OPERAND(struct named, name, "NAME", "Word."),
	SL_OPT_SHORT(struct named, follow, 'f', "Flag."),
	SL_OPT(struct named, swap, SWITCH, "on|off", 0, 0, "Switch."),
	SL_OPT(struct named, reclaim, SWITCH, "park|terminate", 0, 0, "Switch."),
	SL_OPT(struct named, env, STRINGS, "NAME=VALUE", 0, 0, "Several."),
	SL_OPT_END,
};

/* A verb with one word: options stand before and behind it. */
static void test_operand(void **state)
{
	static const struct {
		const char *words[6];
		int outcome, first;
		const char *name, *says;
		bool follow;
		enum sl_switch swap;
	} cases[] = {
		{{"v"}, SL_OPTION_OK, 1, NULL, NULL, false, SL_SWITCH_UNSET},
		{{"v", "n", "-f"}, SL_OPTION_OK, 3, "n", NULL, true, SL_SWITCH_UNSET},
		{{"v", "--swap", "on", "n", "--follow"}, SL_OPTION_OK, 5, "n", NULL, true,
			SL_SWITCH_ON},
		{{"v", "--swap=off", "--", "-n"}, SL_OPTION_OK, 4, "-n", NULL, false,
			SL_SWITCH_OFF},
		{{"v", "a", "b", "-f"}, SL_OPTION_OK, 2, "a", NULL, false,
			SL_SWITCH_UNSET},
		{{"v", "a", "--", "b"}, SL_OPTION_OK, 3, "a", NULL, false,
			SL_SWITCH_UNSET},
		{{"v", "--swap", "1"}, SL_OPTION_BAD, 0, NULL, "write on or off", false,
			0},
		{{"v", "-fx"}, SL_OPTION_BAD, 0, NULL, "unknown option -fx", false, 0},
		{{"v", "--NAME", "x"}, SL_OPTION_BAD, 0, NULL, "unknown option", false,
			0},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct named s = {0};
		struct sl_error err = {0};
		char *argv[7] = {0};
		int argc = 0, first = -1;

		for (; cases[i].words[argc]; argc++)
			argv[argc] = (char *)cases[i].words[argc];
		assert_int_equal(
			sl_option_parse(rows_of_named, &s, argc, argv, &first, &err),
			cases[i].outcome);
		if (cases[i].outcome != SL_OPTION_OK) {
			assert_row_contains(argv[1], err.text, cases[i].says);
			continue;
		}
		assert_int_equal(first, cases[i].first);
		assert_row_text(cases[i].words[0], s.name ? s.name : "(none)",
			cases[i].name ? cases[i].name : "(none)");
		assert_int_equal(s.follow, cases[i].follow);
		assert_int_equal(s.swap, cases[i].swap);
	}
}

/* What may come again is gathered in order; two words of a row's own are the only ones. */
static void test_several(void **state)
{
	static const struct {
		const char *words[8];
		int outcome;
		const char *env, *says; /* env: with '|' between */
		enum sl_switch reclaim;
	} cases[] = {
		{{"v", "n"}, SL_OPTION_OK, "", NULL, SL_SWITCH_UNSET},
		{{"v", "--env", "A=1", "n", "--env=B=", "--env", "A=2"}, SL_OPTION_OK,
			"A=1|B=|A=2", NULL, SL_SWITCH_UNSET},
		{{"v", "--env", "-x"}, SL_OPTION_OK, "-x", NULL, SL_SWITCH_UNSET},
		{{"v", "--env"}, SL_OPTION_BAD, "", "--env needs a value", 0},
		{{"v", "--reclaim", "park"}, SL_OPTION_OK, "", NULL, SL_SWITCH_ON},
		{{"v", "--reclaim=terminate"}, SL_OPTION_OK, "", NULL, SL_SWITCH_OFF},
		{{"v", "--reclaim", "par"}, SL_OPTION_BAD, "",
			"--reclaim 'par': write park or terminate", 0},
		{{"v", "--reclaim", "park|terminate"}, SL_OPTION_BAD, "", "write park or",
			0},
		{{"v", "--reclaim="}, SL_OPTION_BAD, "", "write park or", 0},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct named s = {0};
		struct sl_error err = {0};
		char *argv[9] = {0}, env[64] = "";
		int argc = 0, first = -1;

		for (; cases[i].words[argc]; argc++)
			argv[argc] = (char *)cases[i].words[argc];
		assert_int_equal(
			sl_option_parse(rows_of_named, &s, argc, argv, &first, &err),
			cases[i].outcome);
		for (size_t k = 0; k < s.env.count; k++) {
			strcat(env, k ? "|" : "");
			strcat(env, s.env.all[k]);
		}
		sl_strings_fini(&s.env);
		assert_int_equal(s.env.count, 0);
		if (cases[i].outcome != SL_OPTION_OK) {
			assert_row_contains(argv[1], err.text, cases[i].says);
			continue;
		}
		assert_row_text(argv[1], env, cases[i].env);
		assert_int_equal(s.reclaim, cases[i].reclaim);
	}
}

static void test_nearest(void **state)
{
	static const char *const names[] = {
		"run", "ps", "gpus", "doctor", "version", NULL};
	static const struct {
		const char *word, *want;
	} cases[] = {
		{"rnu", "run"},
		{"gpu", "gpus"},
		{"docter", "doctor"},
		{"vers", "version"},
		{"p", "ps"},
		{"kubernetes", NULL},
		{"x", NULL},
		{"", NULL},
		{LONG_NAME, NULL},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		struct sl_nearest near = sl_nearest_to(cases[i].word);

		for (size_t n = 0; names[n]; n++)
			sl_nearest_offer(&near, names[n]);
		assert_row_text(cases[i].word, near.best ? near.best : "(none)",
			cases[i].want ? cases[i].want : "(none)");
	}
}

/* One list per fact: no verb has an option twice, no name is another's beginning with a value. */
static void test_tables(void **state)
{
	(void)state;
	for (size_t v = 0; v < SL_VERBS; v++)
		for (const struct sl_option *a = sl_verbs[v].options; a->type; a++) {
			assert_non_null(a->help);
			assert_true(strlen(a->help) < 160);
			if (a->type != SL_OPTION_FLAG && a->type < SL_OPTION_WORDS)
				assert_non_null(a->value);
			for (const struct sl_option *b = a + 1; b->type; b++)
				assert_string_not_equal(a->name, b->name);
		}
	assert_null(sl_cli_verb("nothing"));
	assert_string_equal(sl_cli_verb("run")->name, "run");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_operand),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
