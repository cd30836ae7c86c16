/*
 * library - finds libsluice.so
 *
 * Looks files up; no locks.
 */
#ifndef SL_BASE_LIBRARY_H
#define SL_BASE_LIBRARY_H

#include "base/error.h"
#include "base/paths.h"

enum sl_library_outcome {
	SL_LIBRARY_OK = 0,
	SL_LIBRARY_MISSING, /* err names the places that were searched */
	/* found, but it is another library or LD_PRELOAD cannot carry its path; err says why */
	SL_LIBRARY_UNUSABLE
};

/*
 * The library that belongs to this program, as an absolute path: SLUICE_LIBRARY if set; else beside
 * the program (build folder); else in the installation's library folder. path holds SL_PATH_MAX
 * bytes.
 */
SL_MUST_CHECK int sl_library_find(char *path, size_t size, struct sl_error *err);

/*
 * The path to preload for the library at `path`: by-loader/$LIB beside it, where each program's
 * loader replaces $LIB. A 32-bit child finds an empty library there, so its loader prints no error.
 * out gets `path` itself if the other is missing, or is another file for 64-bit programs.
 */
void sl_library_by_loader(const char *path, char *out, size_t size);

/* The new LD_PRELOAD: path, then the entries of `old` (NULL: unset) without path itself and any
 * other libsluice.so. The caller frees; NULL when out of memory. */
char *sl_library_preload(const char *path, const char *old);

#endif
