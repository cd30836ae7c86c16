#ifndef SL_TESTS_FUZZ_H
#define SL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls; aborts where a property of the parser does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
