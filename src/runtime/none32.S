/*
 * none32 - what 32-bit programs find in place of libsluice.so: nothing
 *
 * Children inherit LD_PRELOAD. A 32-bit one cannot load our library, and its loader would say so on
 * stderr, in the middle of a program's output. It finds this empty library instead, through the
 * loader's own word for its kind, $LIB (tools/by-loader). 32-bit programs cannot use today's drivers.
 */
	.globl sluice_is_64_bit_only
	.type sluice_is_64_bit_only, @function
sluice_is_64_bit_only:
	ret
	.size sluice_is_64_bit_only, . - sluice_is_64_bit_only
	.section .note.GNU-stack, "", @progbits
