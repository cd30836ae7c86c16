/*
 * replay - a fuzzer without libFuzzer: 200,000 inputs from a fixed seed
 *
 * Random bytes, and mutations of the inputs before, so that lengths and nearly right values
 * are reached too. Deterministic.
 */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#define INPUTS    200000
#define INPUT_MAX 2048

static uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

int main(void)
{
	static const char printable[] = "0123456789.kKMGTPEiBsmuhd-: \n#[]{}\"'";
	uint8_t data[INPUT_MAX] = {0};
	uint64_t seed = 1;
	size_t size = 0;

	for (int i = 0; i < INPUTS; i++) {
		uint64_t r = random_next(&seed);

		if (r % 4 == 0)
			size = (r >> 8) % (r % 8 == 0 ? INPUT_MAX : 24);
		for (uint64_t changes = (r >> 40) % 8 + (r % 4 == 0 ? size : 0);
			changes > 0; changes--) {
			uint64_t c = random_next(&seed);

			if (size > 0)
				data[(c >> 16) % size] =
					c % 3 ? (uint8_t)
							printable[(c >> 8) %
								  (sizeof(printable) - 1)]
					      : (uint8_t)(c >> 8);
		}
		(void)LLVMFuzzerTestOneInput(data, size);
	}
	printf("%d inputs\n", INPUTS);
	return 0;
}
