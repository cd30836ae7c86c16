/*
 * hostcc - C text to a shared object, by the system's compiler
 *
 * `cc` is found by PATH. It runs in a folder of its own with bounds on time and memory, since the
 * text derives from a program's input. Objects are stored in the user's cache folder under a hash
 * of the C text, with a checksum, and moved into place whole. The folder must belong to the user
 * and be writable to no other; otherwise nothing is stored.
 */
#include "softgpu/ptx/image.h"

#include "base/crc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 300
#define QUICK_BYTES (4 * SL_MIB) /* above this size the compiler optimises less */
#define NO_COMPILER 127
#define FILES_MAX   2000u

static bool write_all(int fd, const void *data, size_t bytes)
{
	for (const char *at = data; bytes;) {
		ssize_t n = write(fd, at, bytes);

		if (n <= 0 && errno != EINTR)
			return false;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* A descriptor of memory with these bytes, or -1. */
static int memory_file(const void *data, size_t bytes)
{
	int fd = memfd_create("sluice-ptx", MFD_CLOEXEC);

	if (fd >= 0 && !write_all(fd, data, bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* All bytes of a file, which the caller frees, or NULL. */
static char *read_file(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	char *data = NULL;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_uid == geteuid()) {
		*bytes = (size_t)st.st_size;
		data = malloc(*bytes + 1);
	}
	if (data && read(fd, data, *bytes) != (ssize_t)*bytes) {
		free(data);
		data = NULL;
	}
	if (fd >= 0)
		close(fd);
	return data;
}

/* The cache ----------------------------------------------------------------------------------- */

/* Under $XDG_CACHE_HOME or ~/.cache; missing folders are made. */
static bool cache_path(const char *c, char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool is_set = cache && cache[0] == '/';
	uint64_t hash[2] = {14695981039346656037ull, 1099511628211ull};
	char *end;
	struct stat st;

	if (!is_set && (!home || home[0] != '/'))
		return false;
	for (; *c; c++) {
		hash[0] = (hash[0] ^ (unsigned char)*c) * 1099511628211ull;
		hash[1] = (hash[1] + (unsigned char)*c) * 6364136223846793005ull + 1;
	}
	snprintf(path, size, "%s/sluice/ptx/%016llx%016llx", is_set ? cache : home,
		(unsigned long long)hash[0], (unsigned long long)hash[1]);
	if (!is_set)
		snprintf(path, size, "%s/.cache/sluice/ptx/%016llx%016llx", home,
			(unsigned long long)hash[0], (unsigned long long)hash[1]);
	for (end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		(void)!mkdir(path, 0700);
		bool is_own = stat(path, &st) == 0 && st.st_uid == geteuid() &&
			      !(st.st_mode & 022);
		*end = '/';
		if (!strchr(end + 1, '/') && !is_own)
			return false;
	}
	return strlen(path) + 8 < size;
}

/* Bounds the folder: removes the object unused for longest if there are too many. */
static void forget_oldest(const char *path)
{
	char folder[PATH_MAX], oldest[NAME_MAX + 1] = "";
	struct timespec least = {0, 0};
	unsigned count = 0;
	struct dirent *e;
	struct stat st;
	DIR *d;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	d = opendir(folder);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
			continue;
		if (!count++ || st.st_mtim.tv_sec < least.tv_sec) {
			least = st.st_mtim;
			snprintf(oldest, sizeof(oldest), "%s", e->d_name);
		}
	}
	if (count > FILES_MAX)
		unlinkat(dirfd(d), oldest, 0);
	if (d)
		closedir(d);
}

static int find_kept(const char *path)
{
	size_t bytes = 0;
	char *data = read_file(path, &bytes);
	uint32_t crc;
	int fd = -1;

	if (data && bytes > sizeof(crc)) {
		bytes -= sizeof(crc);
		memcpy(&crc, data + bytes, sizeof(crc));
		if (crc == sl_crc32(data, bytes))
			fd = memory_file(data, bytes);
	}
	if (fd >= 0)
		utimensat(AT_FDCWD, path, NULL, 0);
	free(data);
	return fd;
}

static void keep(const char *path, const char *object, size_t bytes)
{
	char fresh[PATH_MAX + 16];
	uint32_t crc = sl_crc32(object, bytes);
	int fd;
	bool ok;

	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return;
	ok = write_all(fd, object, bytes) && write_all(fd, &crc, sizeof(crc));
	if (close(fd) != 0 || !ok || rename(fresh, path) != 0)
		unlink(fresh);
	else
		forget_oldest(path);
}

/* The compiler -------------------------------------------------------------------------------- */

/* The instructions of this processor from which the text gains most. */
static char *processor(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
		return "-mfma";
#endif
	return "-ffp-contract=off";
}

static void set_limit(int resource, rlim_t value)
{
	setrlimit((__rlimit_resource_t)resource, &(struct rlimit){value, value});
}

/* In the child: does not return. */
__attribute__((noreturn)) static void run_compiler(int text, int complaints, char *object)
{
	bool is_long = lseek(text, 0, SEEK_END) > (off_t)QUICK_BYTES;
	char *argv[] = {"cc", is_long ? "-O1" : "-O2", processor(), "-std=gnu11", "-w",
		"-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing",
		"-ffp-contract=off", "-fno-math-errno", "-x", "c", "-", "-o", object,
		"-lm", NULL};

	lseek(text, 0, SEEK_SET);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* useless without the companion */
	dup2(text, STDIN_FILENO);
	dup2(complaints, STDOUT_FILENO);
	dup2(complaints, STDERR_FILENO);
	setenv("LC_ALL", "C", 1);
	set_limit(RLIMIT_CPU, SECONDS_MAX);
	set_limit(RLIMIT_DATA, 8 * SL_GIB);
	execvp(argv[0], argv);
	_exit(NO_COMPILER);
}

static CUresult judge(int status, int complaints, struct sl_image_log *log)
{
	char line[200] = "";

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return CUDA_SUCCESS;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMPILER) {
		sl_image_log_set(log,
			"PTX needs a C compiler: there is no 'cc' in PATH; install one "
			"(Debian: apt install gcc libc6-dev)");
		return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
	}
	(void)!pread(complaints, line, sizeof(line) - 1, 0);
	sl_image_log_set(log, "the C compiler failed (%s %d): %.*s",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		(int)strcspn(line, "\n"), line);
	return CUDA_ERROR_INVALID_PTX;
}

static CUresult compile(const char *c, char *object, struct sl_image_log *log)
{
	int text = memory_file(c, strlen(c)), complaints = memory_file("", 0),
	    status = -1;
	pid_t pid = text < 0 || complaints < 0 ? -1 : fork();
	CUresult r = CUDA_ERROR_OPERATING_SYSTEM;

	if (pid == 0)
		run_compiler(text, complaints, object);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		sl_image_log_set(
			log, "the C compiler was not started: %s", strerror(errno));
	else
		r = judge(status, complaints, log);
	if (text >= 0)
		close(text);
	if (complaints >= 0)
		close(complaints);
	return r;
}

CUresult sl_hostcc(const char *c, int *fd, struct sl_image_log *log)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX], place[PATH_MAX], object[PATH_MAX + 16], *key = NULL,
								     *data = NULL;
	CUresult r = CUDA_ERROR_OPERATING_SYSTEM;
	bool is_kept;
	size_t bytes = 0;

	*fd = -1;
	/* Another processor may lack instructions of this one. */
	if (asprintf(&key, "%s\n%s", processor(), c) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	is_kept = cache_path(key, path, sizeof(path));
	free(key);
	if (is_kept && (*fd = find_kept(path)) >= 0)
		return CUDA_SUCCESS;
	snprintf(place, sizeof(place), "%s/sluice-ptx-XXXXXX",
		folder && *folder ? folder : "/tmp");
	if (!mkdtemp(place)) {
		sl_image_log_set(
			log, "there is no folder '%s': %s", place, strerror(errno));
		return r;
	}
	snprintf(object, sizeof(object), "%s/object", place);
	r = compile(c, object, log);
	if (r == CUDA_SUCCESS && (data = read_file(object, &bytes)))
		*fd = memory_file(data, bytes);
	if (*fd >= 0 && is_kept)
		keep(path, data, bytes);
	if (r == CUDA_SUCCESS && *fd < 0)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	free(data);
	unlink(object);
	rmdir(place);
	return r;
}
