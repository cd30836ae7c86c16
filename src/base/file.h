/*
 * file - whole-file reads, atomic replacement, full writes, descriptors with cleanup
 *
 * Every call returns 0 or a negative errno. sl_file_replace leaves either the old content or the
 * new.
 */
#ifndef SL_BASE_FILE_H
#define SL_BASE_FILE_H

#include <sys/types.h>

#include "base/sl.h"

/* For `sl_cleanup(sl_closep) int fd = -1;`. Keeps errno. */
void sl_closep(int *fd);
/* For `sl_cleanup(sl_freep) char *p = NULL;`. */
void sl_freep(void *pointer_to_pointer);

/* Reads the whole file, at most max_bytes (-EFBIG beyond), into *out, NUL-terminated; the caller
 * frees *out. *out_bytes excludes the terminator. */
SL_MUST_CHECK int sl_file_read(
	const char *path, size_t max_bytes, char **out, size_t *out_bytes);
/* Writes a temporary file beside path and renames it over path. Mode 0600. Calls fsync(2) if
 * durable. */
SL_MUST_CHECK int sl_file_replace(
	const char *path, const void *data, size_t bytes, bool durable);
/* The same with another mode. */
SL_MUST_CHECK int sl_file_replace_as(const char *path, const void *data, size_t bytes,
	unsigned int mode, bool durable);
/* Writes all bytes, through EINTR and short writes. */
SL_MUST_CHECK int sl_file_write_all(int fd, const void *data, size_t bytes);
/* For a file whose oldest part was dropped (a hole at its start): returns where its content begins,
 * behind the hole and the NULs that fill the hole's last block. 0 without a hole. Moves the offset
 * of fd. */
off_t sl_file_first(int fd);
/* mkdir -p; missing folders get the mode. */
SL_MUST_CHECK int sl_file_make_dirs(const char *path, unsigned int mode);
/* Clears path for a new Unix socket: removes a socket that an ended program left. 0: path is free
 * now. -EEXIST: path is not a socket. -EADDRINUSE: a program still has its socket there, whether it
 * accepts connections or not. Otherwise another negative errno. Never blocks. */
SL_MUST_CHECK int sl_file_clear_socket(const char *path);
/* Fields of /proc/PID/stat. */
struct sl_pid_stat {
	char state; /* R, S, D, T (stopped), t (traced), Z, X */
	int parent;
	bool kernel_thread;
	uint64_t start_ticks;
};
SL_MUST_CHECK int sl_file_pid_stat(int pid, struct sl_pid_stat *out);
/* Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); it differs when a
 * pid is reused. */
SL_MUST_CHECK int sl_file_pid_start(int pid, uint64_t *out_ticks);
/* Of /proc/PID/status. */
struct sl_pid_rights {
	uint32_t gid;          /* the real one */
	uint64_t capabilities; /* that it may have (CapPrm), a bit each */
};
SL_MUST_CHECK int sl_file_pid_rights(int pid, struct sl_pid_rights *out);
/* Parent of a process, or negative errno. */
SL_MUST_CHECK int sl_file_pid_parent(int pid);

#endif
