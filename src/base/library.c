/*
 * The paths are relative to the program, not fixed at build time. So a build folder, a DESTDIR
 * image and an unpacked archive all work in place.
 */
#include "base/library.h"

#include "base/file.h"
#include "base/elffile.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY_NAME "libsluice.so"

/* SL_LIBDIR is meson's libdir below the prefix, e.g. lib/x86_64-linux-gnu. */
static const char *const places[] = {
	"/" LIBRARY_NAME,
	"/../" SL_LIBDIR "/sluice/" LIBRARY_NAME,
	"/../sluice/" LIBRARY_NAME, /* from LIBDIR/slurm */
	"/../lib/sluice/" LIBRARY_NAME,
	"/../lib64/sluice/" LIBRARY_NAME,
};

/* Refuses any other library: the loader would load it silently, or skip it with a warning, and the
 * program would run without limits. */
static int check_ours(const char *path, struct sl_error *err)
{
	static const char *const what[] = {
		[SL_ELF_OK] = "is not Sluice's library",
		[SL_ELF_NONE] = "is not a library at all",
		[SL_ELF_FOREIGN] = "is a library for another machine",
		[SL_ELF_NO_LIBRARY] = "is a program, not a library",
		[SL_ELF_DAMAGED] = "is damaged",
	};
	struct sl_elf elf;
	int r = sl_elf_read(path, &elf);

	if (r == SL_ELF_OK && !strcmp(elf.soname, LIBRARY_NAME))
		return SL_LIBRARY_OK;
	sl_error_set(err,
		"%.200s%s%s, so programs would run without limits; install Sluice whole, "
		"and set SLUICE_LIBRARY to its " LIBRARY_NAME " or to nothing",
		path, r < 0 ? " cannot be read: " : " ", r < 0 ? strerror(-r) : what[r]);
	return SL_LIBRARY_UNUSABLE;
}

/* ld.so splits LD_PRELOAD at blanks and colons and has no quoting. */
static int check(const char *path, struct sl_error *err)
{
	if (!strpbrk(path, " \t\n:"))
		return check_ours(path, err);
	sl_error_set(err,
		"'%.200s' has a blank or a colon in its path, which LD_PRELOAD cannot "
		"carry; "
		"put a link to it elsewhere and name that in SLUICE_LIBRARY",
		path);
	return SL_LIBRARY_UNUSABLE;
}

static int from_environment(
	const char *set, char *path, size_t size, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *real = realpath(set, NULL);

	if (!real || access(real, R_OK) || strlen(real) >= size) {
		sl_error_set(err,
			"SLUICE_LIBRARY=%.200s is not a readable file; correct or unset "
			"it",
			set);
		return SL_LIBRARY_MISSING;
	}
	/* The remedy of check() is a link without blanks in its path, so keep the link. */
	if (set[0] == '/' && strpbrk(real, " \t\n:") && strlen(set) < size)
		strcpy(path, set);
	else
		strcpy(path, real);
	return check(path, err);
}

int sl_library_find(char *path, size_t size, struct sl_error *err)
{
	const char *set = getenv("SLUICE_LIBRARY");
	char dir[SL_PATH_MAX];

	if (set && *set)
		return from_environment(set, path, size, err);
	if (sl_paths_program_dir(dir, sizeof(dir))) {
		sl_error_set(
			err, "cannot tell where this program lies; set SLUICE_LIBRARY");
		return SL_LIBRARY_MISSING;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(places); i++) {
		char candidate[SL_PATH_MAX + 64];
		sl_cleanup(sl_freep) char *real = NULL;

		snprintf(candidate, sizeof(candidate), "%s%s", dir, places[i]);
		real = realpath(candidate, NULL);
		if (!real || strlen(real) >= size)
			continue;
		strcpy(path, real);
		return check(path, err);
	}
	sl_error_set(err,
		LIBRARY_NAME
		" was found neither in %.120s nor in %.120s/../" SL_LIBDIR
		"/sluice, ../lib/sluice or ../lib64/sluice; install Sluice whole, or "
		"name the file in SLUICE_LIBRARY",
		dir, dir);
	return SL_LIBRARY_MISSING;
}

/* Does the loader of this process find the library by a path with $LIB in it? Loading it starts
 * nothing. */
static bool is_found(const char *template, const char *path)
{
	void *library = dlopen(template, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map = NULL;
	struct stat wanted, found;
	bool same;

	if (!library)
		return false;
	same = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name &&
	       stat(path, &wanted) == 0 && stat(map->l_name, &found) == 0 &&
	       wanted.st_dev == found.st_dev && wanted.st_ino == found.st_ino;
	(void)dlclose(library);
	return same;
}

void sl_library_by_loader(const char *path, char *out, size_t size)
{
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) : 0;
	int n = snprintf(out, size, "%.*s/by-loader/$LIB/" LIBRARY_NAME, length, path);

	/* The loader would expand a dollar sign in the path. */
	if (!slash || n < 0 || (size_t)n >= size || memchr(path, '$', (size_t)length) ||
		!is_found(out, path))
		snprintf(out, size, "%s", path);
}

static bool is_ours(const char *entry, size_t len)
{
	size_t n = strlen(LIBRARY_NAME);

	return len >= n && !memcmp(entry + len - n, LIBRARY_NAME, n) &&
	       (len == n || entry[len - n - 1] == '/');
}

char *sl_library_preload(const char *path, const char *old)
{
	size_t size = strlen(path) + (old ? strlen(old) : 0) + 2;
	char *value = malloc(size);

	if (!value)
		return NULL;
	strcpy(value, path);
	while (old && *old) {
		size_t len = strcspn(old, " \t\n:");

		/* The library twice (sluice run inside sluice run) would hook twice. */
		if (len && !is_ours(old, len) &&
			(len != strlen(path) || memcmp(old, path, len) != 0)) {
			strcat(value, ":");
			strncat(value, old, len);
		}
		old += len;
		old += strspn(old, " \t\n:");
	}
	return value;
}
