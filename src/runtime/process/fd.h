/*
 * fd - our descriptors in the program's process
 *
 * They are close-on-exec, lie above the low numbers that programs shuffle, and are recognised by
 * device and inode. A program may close descriptors that it did not open and then get our number
 * for its own file; we neither write to that file nor close it.
 */
#ifndef SL_RUNTIME_PROCESS_FD_H
#define SL_RUNTIME_PROCESS_FD_H

#include "base/sl.h"

struct sl_fd {
	int fd; /* -1: none */
	uint64_t device, inode;
};

#define SL_FD_NONE       \
	{                \
		.fd = -1 \
	}

/* Takes over fd_in, also on failure: moves it up and makes it non-blocking. Negative errno or 0. */
SL_MUST_CHECK int sl_fd_claim(struct sl_fd *out, int fd_in);
/* False if closed, or if the number now stands for something else. */
bool sl_fd_is_ours(const struct sl_fd *fd);
void sl_fd_close(struct sl_fd *fd);

#endif
