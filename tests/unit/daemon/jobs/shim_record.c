/* Reads the record that a supervisor leaves, also where another file stands in its place. */
#include "../../base/test.h"

#include "daemon/jobs/shim.h"

#define BEGUN "begun 1\n"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		enum sl_shim_ending ending;
	} rows[] = {
		{"", SL_SHIM_NONE},
		{"begun 1\n", SL_SHIM_BEGUN},
		{BEGUN "exit 0 started 1 ended 2\n", SL_SHIM_EXITED},
		{BEGUN "exit 4294967295 started 18446744073709551615 ended 2\n",
			SL_SHIM_EXITED},
		{BEGUN "error 2 exec\n", SL_SHIM_ERROR},
		{"exit 0 started 1 ended 2\n", SL_SHIM_BAD},
		{"error 2 exec\n", SL_SHIM_BAD},
		{"begun 1", SL_SHIM_BAD},
		{"begun \n", SL_SHIM_BAD},
		{"begun 18446744073709551616\n", SL_SHIM_BAD},
		{BEGUN BEGUN, SL_SHIM_BAD},
		{BEGUN "exi", SL_SHIM_BAD},
		{BEGUN "exit 0 started 1 ended 2", SL_SHIM_BAD},
		{BEGUN "exit 0 started 1 ended 2\n\n", SL_SHIM_BAD},
		{BEGUN "exit 0 started 1 ended \n", SL_SHIM_BAD},
		{BEGUN "exit -1 started 1 ended 2\n", SL_SHIM_BAD},
		{BEGUN "exit 4294967296 started 1 ended 2\n", SL_SHIM_BAD},
		{BEGUN "exit 0 started 18446744073709551616 ended 2\n", SL_SHIM_BAD},
		{BEGUN "exit  0 started 1 ended 2\n", SL_SHIM_BAD},
		{BEGUN "exit 0\n", SL_SHIM_BAD},
		{BEGUN "error 2 \n", SL_SHIM_BAD},
		{BEGUN "error 2 exec", SL_SHIM_BAD},
		{BEGUN "error 2 exec more\n", SL_SHIM_BAD},
		{BEGUN "error 2 abcdefghijklmnopqrstuvwxyzabcdef\n", SL_SHIM_BAD},
		{BEGUN "error two exec\n", SL_SHIM_BAD},
		{"\n", SL_SHIM_BAD},
		{"Exit 0 started 1 ended 2\n", SL_SHIM_BAD},
	};
	static const char nul[] = BEGUN "exit 0 started 1 ended 2\n\0";
	struct sl_shim_record record;
	char full[4096];

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].text,
			sl_shim_record_parse(rows[i].text, strlen(rows[i].text)).ending,
			rows[i].ending);
	assert_int_equal(sl_shim_record_parse(nul, sizeof(nul)).ending, SL_SHIM_BAD);
	memset(full, '1', sizeof(full));
	memcpy(full, BEGUN "exit ", sizeof(BEGUN) + 4);
	assert_int_equal(sl_shim_record_parse(full, sizeof(full)).ending, SL_SHIM_BAD);
	record = sl_shim_record_parse("begun 5\n", 8);
	assert_int_equal(record.started_ms, 5);
	record = sl_shim_record_parse("begun 5\nexit 256 started 17 ended 42\n", 37);
	assert_int_equal(record.status, 256);
	assert_int_equal(record.started_ms, 17);
	assert_int_equal(record.ended_ms, 42);
	record = sl_shim_record_parse("begun 5\nerror 13 chdir\n", 23);
	assert_int_equal(record.error, 13);
	assert_string_equal(record.what, "chdir");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
