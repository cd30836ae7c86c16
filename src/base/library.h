/*
 * library - where libsluice.so is
 *
 * Pure look-up of files; no locks.
 */
#ifndef SL_BASE_LIBRARY_H
#define SL_BASE_LIBRARY_H

#include "base/error.h"
#include "base/paths.h"

enum sl_library_outcome {
	SL_LIBRARY_OK = 0,
	SL_LIBRARY_MISSING, /* err names the places looked at */
	/* Found, but not ours or not to be carried by LD_PRELOAD; err says why */
	SL_LIBRARY_UNUSABLE
};

/*
 * The library that belongs to this program, as an absolute path: SLUICE_LIBRARY if set; else
 * beside the program (build folder); else in the installation's library folder. path holds
 * SL_PATH_MAX bytes.
 */
SL_MUST_CHECK int sl_library_find(char *path, size_t size, struct sl_error *err);

/*
 * The same library as each program's own loader is to find it: by-loader/$LIB beside it, where a
 * 32-bit child finds an empty library and stays silent. path again where that is not there, or is
 * something else for 64-bit programs.
 */
void sl_library_by_loader(const char *path, char *out, size_t size);

/* old (may be NULL: unset) with path in front and other entries of that path or of another
 * libsluice.so taken out. The caller frees; NULL when out of memory. */
char *sl_library_preload(const char *path, const char *old);

#endif
