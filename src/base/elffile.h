/*
 * elffile - what a shared library declares about itself
 *
 * Reads a file; nothing is loaded or executed. Every offset is checked, since the file may hold
 * anything. No locks.
 */
#ifndef SL_BASE_ELFFILE_H
#define SL_BASE_ELFFILE_H

#include "base/sl.h"

#include <elf.h>

#if defined(__x86_64__)
#define SL_ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define SL_ELF_MACHINE EM_AARCH64
#endif

struct sl_elf {
	char soname[64];          /* "" if it has none */
	unsigned int needs_glibc; /* minor of the highest GLIBC_2.n it needs; 0: none */
};

enum sl_elf_outcome {
	SL_ELF_OK = 0,
	SL_ELF_NONE,    /* not an ELF file, or empty */
	SL_ELF_FOREIGN, /* of another machine or width */
	SL_ELF_NO_LIBRARY,
	SL_ELF_DAMAGED
};

/* *out is valid on OK. Negative errno: the file cannot be read. */
SL_MUST_CHECK int sl_elf_read(const char *path, struct sl_elf *out);

#endif
