/*
 * box - a server process, a private directory, two variables
 *
 * The server holds one end of a pipe whose other end only the starter has. When that end is closed,
 * by sl_softgpu_stop() or by the starter's death, the server ends. A signal would not work: a
 * killed starter cannot send one. The server reports "ready" over a second pipe, so its socket need
 * not be polled.
 */
#include "softgpu/link/box.h"

#include "base/cuda_types.h"
#include "softgpu/link/proto.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define PROGRAM        "sluice-softgpu"
#define READY_MS       10000
#define ARGUMENT_BYTES 1200
#define FAULTS_BYTES   sizeof(((struct sl_sg_hello *)0)->faults)

#ifndef SL_SOFTGPU_LIBDIR
#define SL_SOFTGPU_LIBDIR "/usr/lib/sluice/softgpu"
#endif

void sl_softgpu_config_init(struct sl_softgpu_config *config)
{
	memset(config, 0, sizeof(*config));
#define PRESET(field, key, preset, lowest, highest, help) config->field = preset;
	SL_SOFTGPU_SETTINGS(PRESET)
#undef PRESET
}

/* The first setting outside its range, or NULL. Defaults are always allowed. */
static const char *bad_setting(const struct sl_softgpu_config *c)
{
	const struct {
		const char *key;
		uint64_t value, preset, lowest, highest;
	} rows[] = {
#define ROW(field, key, preset, lowest, highest, help) \
	{key, c->field, preset, lowest, highest},
		SL_SOFTGPU_SETTINGS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		if (rows[i].value != rows[i].preset &&
			(rows[i].value < rows[i].lowest ||
				rows[i].value > rows[i].highest))
			return rows[i].key;
	return NULL;
}

static bool has_program(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/" PROGRAM, folder) < (int)sizeof(path) &&
	       access(path, X_OK) == 0;
}

/* In a build folder the libraries are under src/softgpu of a parent folder; installed, under
 * lib. */
static int find_folder(char *out, size_t size)
{
	static const char *const below[] = {"src/softgpu", "lib/sluice/softgpu",
		"lib64/sluice/softgpu", "lib/x86_64-linux-gnu/sluice/softgpu",
		"lib/aarch64-linux-gnu/sluice/softgpu"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	for (char *slash = strrchr(self, '/'); slash && slash != self;
		slash = strrchr(self, '/')) {
		*slash = '\0';
		for (size_t i = 0; i < SL_ARRAY_LEN(below); i++)
			if (snprintf(out, size, "%s/%s", self, below[i]) < (int)size &&
				has_program(out))
				return 0;
	}
	if (snprintf(out, size, "%s", SL_SOFTGPU_LIBDIR) < (int)size && has_program(out))
		return 0;
	return -ENOENT;
}

static int make_directory(struct sl_softgpu_box *box, bool shared)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* The socket's path must fit into 108 bytes, even if the user's folders have long names. */
	if (shared || !base || strlen(base) > 40 || stat(base, &st) < 0 ||
		!S_ISDIR(st.st_mode) || access(base, W_OK) < 0)
		base = "/tmp";
	snprintf(
		box->directory, sizeof(box->directory), "%s/sluice-softgpu-XXXXXX", base);
	if (!mkdtemp(box->directory) || (shared && chmod(box->directory, 0711) < 0))
		return -errno;
	snprintf(box->socket, sizeof(box->socket), "%s/gpu", box->directory);
	return 0;
}

static int spawn_server(struct sl_softgpu_box *box, const struct sl_softgpu_config *c,
	int keep_fd, int ready_fd)
{
	enum { KEYS = 0 SL_SOFTGPU_SETTINGS(SL_SOFTGPU_COUNT) };
	char program[600], keep[16], ready[16], pair[KEYS + 2][ARGUMENT_BYTES];
	char *argv[KEYS + 8] = {PROGRAM, "serve", box->socket, keep, ready};
	posix_spawn_file_actions_t actions;
	int n = 0, r;

	snprintf(program, sizeof(program), "%s/" PROGRAM, box->libraries);
	/* Fixed numbers: the ends are close-on-exec everywhere else. */
	snprintf(keep, sizeof(keep), "3");
	snprintf(ready, sizeof(ready), "4");
#define PAIR(field, key, preset, lowest, highest, help)                                  \
	snprintf(pair[n], ARGUMENT_BYTES, "%s=%llu", key, (unsigned long long)c->field); \
	argv[5 + n] = pair[n];                                                           \
	n++;
	SL_SOFTGPU_SETTINGS(PAIR)
#undef PAIR
	if (c->faults) {
		snprintf(pair[n], ARGUMENT_BYTES, "faults=%s", c->faults);
		argv[5 + n] = pair[n];
		n++;
	}
	if (c->models) {
		snprintf(pair[n], ARGUMENT_BYTES, "models=%s", c->models);
		argv[5 + n] = pair[n];
		n++;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return -r;
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, keep_fd, 3);
	posix_spawn_file_actions_adddup2(&actions, ready_fd, 4);
	r = posix_spawn(&box->pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Moves a descriptor above the numbers that the server gets. */
static int above(int *fd)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 10);

	if (moved < 0)
		return -errno;
	close(*fd);
	*fd = moved;
	return 0;
}

static int start_and_wait(
	struct sl_softgpu_box *box, const struct sl_softgpu_config *config)
{
	int keep[2] = {-1, -1}, ready[2] = {-1, -1}, r = 0;
	char byte;

	if (pipe2(keep, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0 && (above(&keep[0]) < 0 || above(&ready[1]) < 0))
		r = -EMFILE;
	if (r == 0)
		r = spawn_server(box, config, keep[0], ready[1]);
	if (keep[0] >= 0)
		close(keep[0]);
	if (ready[1] >= 0)
		close(ready[1]);
	if (r == 0) {
		struct pollfd p = {.fd = ready[0], .events = POLLIN};

		int n;

		do
			n = poll(&p, 1, READY_MS);
		while (n < 0 && errno == EINTR);
		if (n != 1 || read(ready[0], &byte, 1) != 1)
			r = -EIO;
	}
	if (ready[0] >= 0)
		close(ready[0]);
	box->keep_fd = keep[1];
	return r;
}

static bool are_models(const char *models, uint64_t gpus)
{
	uint64_t count = 0;

	for (const char *at = models;; at++) {
		size_t n = strcspn(at, ",");

		if (!n || n >= SL_SOFTGPU_MODEL_BYTES || ++count > gpus)
			return false;
		for (size_t i = 0; i < n; i++)
			if (!isalnum((unsigned char)at[i]) && !strchr(" -_.", at[i]))
				return false;
		at += n;
		if (!*at)
			return true;
	}
}

int sl_softgpu_start(struct sl_softgpu_box *box, const struct sl_softgpu_config *config,
	char *why, size_t size)
{
	const char *bad = bad_setting(config);
	int r = 0;

	memset(box, 0, sizeof(*box));
	box->keep_fd = -1;
	box->cuda_version = config->cuda_version;
	if (bad) {
		snprintf(why, size, "setting '%s' of the software GPU is out of range",
			bad);
		return -EINVAL;
	}
	/* A cut plan would lose its last rule or change it. */
	if (config->faults && strlen(config->faults) >= FAULTS_BYTES) {
		snprintf(why, size, "the fault plan is longer than %zu bytes",
			FAULTS_BYTES - 1);
		return -EINVAL;
	}
	if (config->models && !are_models(config->models, config->gpus)) {
		snprintf(why, size,
			"models '%.60s' are no names, joined by commas, of at most %d "
			"letters, digits and '-' each, and no more than there are GPUs",
			config->models, SL_SOFTGPU_MODEL_BYTES - 1);
		return -EINVAL;
	}
	if (config->folder)
		snprintf(box->libraries, sizeof(box->libraries), "%s", config->folder);
	else
		r = find_folder(box->libraries, sizeof(box->libraries));
	if (r < 0 || !has_program(box->libraries)) {
		snprintf(why, size,
			"the software GPU's program " PROGRAM " was not found");
		return -ENOENT;
	}
	r = make_directory(box, config->shared);
	if (r < 0) {
		snprintf(why, size, "cannot make a directory for the socket: %s",
			strerror(-r));
		return r;
	}
	r = start_and_wait(box, config);
	if (r == 0 && config->shared && chmod(box->socket, 0666) < 0)
		r = -errno;
	if (r < 0) {
		snprintf(why, size, "the software GPU did not start: %s", strerror(-r));
		sl_softgpu_stop(box);
	}
	return r;
}

int sl_softgpu_env(const struct sl_softgpu_box *box)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path = NULL, version[16];
	int r;

	snprintf(version, sizeof(version), "%u", (unsigned)box->cuda_version);
	if (asprintf(&path, "%s%s%s", box->libraries, old && *old ? ":" : "",
		    old ? old : "") < 0)
		return -ENOMEM;
	r = setenv("LD_LIBRARY_PATH", path, 1) < 0 ||
	    setenv(SL_SOFTGPU_ENV_CUDA, version, 1) < 0 ||
	    setenv(SL_SOFTGPU_ENV, box->socket, 1) < 0;
	free(path);
	return r ? -errno : 0;
}

void sl_softgpu_stop(struct sl_softgpu_box *box)
{
	if (box->keep_fd >= 0)
		close(sl_steal_fd(&box->keep_fd));
	if (box->pid > 0)
		while (waitpid(box->pid, NULL, 0) < 0 && errno == EINTR)
			;
	box->pid = 0;
	if (box->directory[0]) {
		unlink(box->socket);
		rmdir(box->directory);
		box->directory[0] = '\0';
	}
}

static int connect_to(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		r = connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	while (r == -EINTR);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* One request and its answer; the server drops a client that names a missing GPU. */
static int request(const char *path, const struct sl_sg_request *q)
{
	struct sl_sg_reply reply;
	int fd = connect_to(path), r;

	if (fd < 0)
		return fd;
	r = sl_sg_send(fd, q, sizeof(*q), NULL, 0, NULL, 0);
	if (r == 0 && sl_sg_receive(fd, &reply, sizeof(reply), NULL, NULL) !=
			      (ssize_t)sizeof(reply))
		r = -ENXIO;
	else if (r == 0 && reply.result)
		r = reply.result == CUDA_ERROR_NOT_PERMITTED ? -EPERM : -EINVAL;
	close(fd);
	return r;
}

int sl_softgpu_event(const char *socket, enum sl_softgpu_event event, uint32_t gpu,
	uint32_t xid, char *why, size_t size)
{
	static const uint32_t ops[] = {
		[SL_SOFTGPU_LOSE] = SL_SG_LOSE,
		[SL_SOFTGPU_REVIVE] = SL_SG_REVIVE,
		[SL_SOFTGPU_XID] = SL_SG_XID,
	};
	struct sl_sg_request q = {.op = ops[event], .device = gpu, .value = xid};
	int r = request(socket, &q);

	if (r == -ENXIO)
		snprintf(why, size, "the box has no GPU %u", gpu);
	else if (r == -EINVAL)
		snprintf(why, size, "GPU %u is %s", gpu,
			event == SL_SOFTGPU_LOSE ? "lost already" : "not lost");
	else if (r == -EPERM)
		snprintf(why, size,
			"only root and the user who started the box may do that");
	else if (r < 0)
		snprintf(why, size, "no box at %s: %s", socket, strerror(-r));
	return r;
}
