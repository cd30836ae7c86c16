/*
 * none32 - an empty library that 32-bit programs find in place of libsluice.so
 *
 * Children inherit LD_PRELOAD. A 32-bit child cannot load our library, and its loader would report
 * that on stderr, in the middle of the program's output. Through the loader's token $LIB it finds
 * this empty library instead (tools/by-loader). 32-bit programs cannot use today's drivers.
 */
	.globl sluice_is_64_bit_only
	.type sluice_is_64_bit_only, @function
sluice_is_64_bit_only:
	ret
	.size sluice_is_64_bit_only, . - sluice_is_64_bit_only
	.section .note.GNU-stack, "", @progbits
