/* What Xids mean. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "daemon/gpu/xid.h"

static void rows_are_sorted_and_meant(void **state)
{
	static const struct {
		uint64_t xid;
		enum sl_xid_scope scope;
	} rows[] = {
		{13, SL_XID_PROCESS},
		{31, SL_XID_PROCESS},
		{43, SL_XID_PROCESS},
		{45, SL_XID_PROCESS},
		{48, SL_XID_GPU},
		{63, SL_XID_NOTED},
		{68, SL_XID_PROCESS},
		{74, SL_XID_NOTED},
		{79, SL_XID_GPU},
		{94, SL_XID_PROCESS},
		{95, SL_XID_GPU},
		{109, SL_XID_GPU},
		{119, SL_XID_GPU},
		{0, SL_XID_NOTED},
		{UINT64_MAX, SL_XID_NOTED},
	};
	static const uint64_t numbers[] = {
#define SL_XID(number, scope, meaning) number,
#include "daemon/gpu/xid.def"
#undef SL_XID
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (sl_xid_scope(rows[i].xid) != rows[i].scope)
			fail_msg("Xid %llu: want %d, got %d",
				(unsigned long long)rows[i].xid, (int)rows[i].scope,
				(int)sl_xid_scope(rows[i].xid));
	}
	for (size_t i = 1; i < SL_ARRAY_LEN(numbers); i++)
		assert_true(numbers[i - 1] < numbers[i]);
	assert_non_null(strstr(sl_xid_meaning(79), "bus"));
	assert_non_null(strstr(sl_xid_meaning(12345), "does not know"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_sorted_and_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
