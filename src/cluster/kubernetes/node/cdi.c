/*
 * cdi - JSON files in a folder shared with other programs
 *
 * Runtimes read files named *.json only, so an unfinished file is ignored until it is renamed. A
 * prefix marks the files of Sluice.
 */
#include "cluster/kubernetes/node/cdi.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"

#define PREFIX    "sluice.dev-claim_"
#define SUFFIX    ".json"
#define DIR_MODE  0755
#define FILE_MODE 0644

const char *sl_cdi_id(const char *uid, unsigned int number, char buf[SL_CDI_ID_MAX])
{
	(void)snprintf(
		buf, SL_CDI_ID_MAX, SL_CDI_KIND "=%.*s-%u", SL_CDI_NAME_MAX, uid, number);
	return buf;
}

static int path_of(
	const char *dir, const char *uid, char buf[SL_PATH_MAX], struct sl_error *err)
{
	if (!sl_cdi_is_name(uid)) {
		sl_error_set(err, "'%.80s' is not the UID of a claim", uid);
		return sl_err_origin(-EINVAL);
	}
	if (snprintf(buf, SL_PATH_MAX, "%s/" PREFIX "%s" SUFFIX, dir, uid) >= SL_PATH_MAX)
		return sl_err_origin(-ENAMETOOLONG);
	return 0;
}

/* --- the specification --------------------------------------------------------------------- */

static char *text_of(const char *uid, const struct sl_cdi_device *devices, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		char name[SL_CDI_NAME_MAX + 12];

		(void)snprintf(name, sizeof(name), "%s-%zu", uid, i);
		if (json_array_append_new(list, sl_cdi_device_json(name, &devices[i])) <
			0) {
			json_decref(list);
			return NULL;
		}
	}
	return sl_cdi_text(SL_CDI_KIND, list);
}

/* --- files --------------------------------------------------------------------------------- */

int sl_cdi_write(const char *dir, const char *uid, const struct sl_cdi_device *devices,
	size_t count, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[SL_PATH_MAX];
	int r = path_of(dir, uid, path, err);

	if (r < 0)
		return r;
	text = count ? text_of(uid, devices, count) : NULL;
	if (!text) {
		sl_error_set(err,
			"claim %s: no device, or one with a variable, a mount or a node "
			"that is not well-formed",
			uid);
		return sl_err_origin(-EINVAL);
	}
	r = sl_file_make_dirs(dir, DIR_MODE);
	if (r == 0)
		r = sl_file_replace_as(path, text, strlen(text), FILE_MODE, false);
	if (r < 0)
		sl_error_set(err, "cannot write %.300s: %s", path, strerror(-r));
	return r;
}

int sl_cdi_remove(const char *dir, const char *uid, struct sl_error *err)
{
	char path[SL_PATH_MAX];
	int r = path_of(dir, uid, path, err);

	if (r < 0)
		return r;
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	r = -errno;
	sl_error_set(err, "cannot remove %.300s: %s", path, strerror(-r));
	return sl_err_origin(r);
}

/* The UID in the name of a file of Sluice; *is_whole: the file is complete. */
static bool uid_of(const char *name, char uid[SL_CDI_NAME_MAX + 1], bool *is_whole)
{
	const char *from, *suffix;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return false;
	from = name + strlen(PREFIX);
	suffix = strstr(from, SUFFIX);
	if (!suffix || suffix - from > SL_CDI_NAME_MAX)
		return false;
	memcpy(uid, from, (size_t)(suffix - from));
	uid[suffix - from] = '\0';
	*is_whole = suffix[strlen(SUFFIX)] == '\0';
	return sl_cdi_is_name(uid) && (*is_whole || suffix[strlen(SUFFIX)] == '.');
}

static void close_dir(DIR **folder)
{
	if (*folder)
		(void)closedir(*folder);
}

int sl_cdi_list(const char *dir, void (*fn)(void *context, const char *uid),
	void *context, struct sl_error *err)
{
	sl_cleanup(close_dir) DIR *folder = opendir(dir);
	const struct dirent *entry;
	char uid[SL_CDI_NAME_MAX + 1];
	bool is_whole;

	if (!folder && errno == ENOENT)
		return 0;
	if (!folder) {
		sl_error_set(err, "cannot read %.300s: %s", dir, strerror(errno));
		return sl_err_origin(-errno);
	}
	while ((entry = readdir(folder))) {
		if (!uid_of(entry->d_name, uid, &is_whole))
			continue;
		if (is_whole)
			fn(context, uid);
		else if (unlinkat(dirfd(folder), entry->d_name, 0) < 0)
			sl_warning(
				"cannot remove %s: %s", entry->d_name, strerror(errno));
	}
	return 0;
}
