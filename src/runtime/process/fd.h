/*
 * fd - descriptors of ours in a process that is not ours
 *
 * They are close-on-exec, lie above the low numbers that programs shuffle, and are known by device
 * and inode: a program may close everything it did not open and get our number for a file of its
 * own, which we then neither write to nor close.
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

/* Takes fd_in in every case: moves it up and makes it non-blocking. Negative errno or 0. */
SL_MUST_CHECK int sl_fd_claim(struct sl_fd *out, int fd_in);
/* False too if the number now stands for something else. */
bool sl_fd_is_ours(const struct sl_fd *fd);
void sl_fd_close(struct sl_fd *fd);

#endif
