/*
 * paths - one rule for daemon, command line and runtime
 *
 * libsluice.so never decides by itself: `sluice run` passes it an absolute SLUICE_SOCKET.
 */
#include "base/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trust.h"

#define SYSTEM_DIR  SL_PATHS_SYSTEM_DIR
#define SOCKET_NAME "sluiced.sock"

static int put(
	char *buf, size_t size, struct sl_error *err, const char *dir, const char *name)
{
	int n = snprintf(buf, size, "%s%s%s", dir, name[0] ? "/" : "", name);

	if (n < 0 || (size_t)n >= size) {
		sl_error_set(err, "the path %.100s... is too long", dir);
		return SL_PATHS_BAD;
	}
	return SL_PATHS_OK;
}

static int user_dir(char *buf, size_t size, struct sl_error *err)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	char fallback[64];

	if (runtime_dir && runtime_dir[0] == '/')
		return put(buf, size, err, runtime_dir, "sluice");
	(void)snprintf(
		fallback, sizeof(fallback), "/tmp/sluice-%u", (unsigned int)geteuid());
	return put(buf, size, err, fallback, "");
}

static int from_environment(
	const char *path, char *buf, size_t size, struct sl_error *err)
{
	char here[SL_PATH_MAX];

	if (path[0] == '/')
		return put(buf, size, err, path, "");
	if (!getcwd(here, sizeof(here))) {
		sl_error_set(err,
			"SLUICE_SOCKET=%.100s is relative, and there is no current "
			"folder",
			path);
		return SL_PATHS_BAD;
	}
	return put(buf, size, err, here, path);
}

int sl_paths_socket(char *buf, size_t size, struct sl_error *err)
{
	const char *set = getenv("SLUICE_SOCKET");
	char path[SL_PATH_MAX], dir[SL_PATH_MAX];
	int r;

	if (set && set[0]) {
		r = from_environment(set, path, sizeof(path), err);
	} else if (geteuid() == 0) {
		r = put(path, sizeof(path), err, SYSTEM_DIR, SOCKET_NAME);
	} else {
		r = user_dir(dir, sizeof(dir), err);
		if (r == SL_PATHS_OK)
			r = put(path, sizeof(path), err, dir, SOCKET_NAME);
		/* Ignore a socket of another user, for example in /tmp: it must not divert this
		 * user. */
		if (r == SL_PATHS_OK && !sl_trust_is_own(path) &&
			access(SYSTEM_DIR "/" SOCKET_NAME, F_OK) == 0)
			r = put(path, sizeof(path), err, SYSTEM_DIR, SOCKET_NAME);
	}
	if (r != SL_PATHS_OK)
		return r;
	if (strlen(path) >= SL_SOCKET_PATH_MAX) {
		sl_error_set(err,
			"the socket path %.120s has %zu bytes, and a Unix socket's path "
			"may have "
			"%d; set SLUICE_SOCKET to a shorter one",
			path, strlen(path), SL_SOCKET_PATH_MAX - 1);
		return SL_PATHS_BAD;
	}
	return put(buf, size, err, path, "");
}

int sl_paths_state_dir(char *buf, size_t size, struct sl_error *err)
{
	const char *set = getenv("SLUICE_STATE");

	if (set && set[0])
		return from_environment(set, buf, size, err);
	if (geteuid() == 0)
		return put(buf, size, err, SYSTEM_DIR, "");
	return user_dir(buf, size, err);
}

int sl_paths_config(char *buf, size_t size, struct sl_error *err)
{
	const char *folder = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (geteuid() == 0)
		return put(buf, size, err, SL_PATHS_SYSTEM_CONFIG, "");
	if (folder && folder[0] == '/')
		return put(buf, size, err, folder, "sluice/sluiced.conf");
	return put(buf, size, err, home && home[0] == '/' ? home : "/",
		".config/sluice/sluiced.conf");
}

int sl_paths_program_dir(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size);
	char *slash;

	if (n < 0)
		return sl_err_origin(-errno);
	if ((size_t)n >= size)
		return sl_err_origin(-ENAMETOOLONG);
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (!slash)
		return sl_err_origin(-ENOENT);
	*(slash == buf ? slash + 1 : slash) = '\0';
	return 0;
}
