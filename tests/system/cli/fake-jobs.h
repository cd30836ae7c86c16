/* fake-jobs - the part of fake-daemon that is about jobs: a queue that never changes, and an output
 * that grows once */
#ifndef FAKE_JOBS_H
#define FAKE_JOBS_H

#include "wire/wire.h"

#include <stdbool.h>

/* How the rest of fake-daemon sends, file -1 or a descriptor that goes along. */
typedef void (*fake_send_fn)(int fd, const union sl_msg *msg, int file);

/* The rows of SL_LIST_JOBS. */
void fake_jobs_list(int fd, fake_send_fn send);
/* The rows of SL_LIST_QUEUE. */
void fake_jobs_queue(int fd, fake_send_fn send);
/* False: not a message about jobs. Refuses whatever is submitted or stopped if refuses. */
bool fake_jobs_answer(int fd, const union sl_msg *msg, const struct sl_wire_fds *fds,
	bool refuses, fake_send_fn send);

#endif
