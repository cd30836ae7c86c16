/*
 * Whatever parses is in range and, printed, parses to the same again.
 */
#include "fuzz.h"

#include "base/amount.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_amount amount, again;
	struct sl_error err = {{0}};
	char text[128], printed[32];
	sl_ns span;

	size = sl_min_u64(size, sizeof(text) - 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (sl_duration_parse(text, &span, &err) == SL_AMOUNT_OK && span > INT64_MAX)
		abort();
	if (sl_amount_parse(text, &amount, &err) != SL_AMOUNT_OK) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (amount.kind == SL_AMOUNT_FRACTION &&
		(amount.value == 0 || amount.value > SL_AMOUNT_WHOLE))
		abort();
	if (amount.kind == SL_AMOUNT_BYTES && amount.value > INT64_MAX)
		abort();
	sl_amount_format(&amount, printed, sizeof(printed));
	if (sl_amount_parse(printed, &again, &err) != SL_AMOUNT_OK ||
		again.kind != amount.kind || again.value != amount.value)
		abort();
	return 0;
}
