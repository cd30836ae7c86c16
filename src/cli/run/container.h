/*
 * container - `sluice run -- podman run ...`: what the container of a workload is given
 *
 * Plain options (--mount, -e) that podman, docker and nerdctl have in all their versions: the
 * workload's own socket, the library, the file by which the container's loader finds it, and the
 * GPUs. The image needs nothing. No state, no locks.
 */
#ifndef SL_CLI_RUN_CONTAINER_H
#define SL_CLI_RUN_CONTAINER_H

#include "base/error.h"
#include "wire/wire.h"

/* If words start a container: the number of words before its options. Else 0. */
size_t sl_run_container(char *const *words);

/* Fills *out with words and the options of the workload behind the first `at` of them; NULL at
 * its end. entry: what the daemon said. library: its path. The array and the strings that are not
 * of words are malloc'ed, for the caller. False: err has the reason. */
SL_MUST_CHECK bool sl_run_container_words(char *const *words, size_t at,
	const struct sl_msg_entry_reply *entry, const char *library, char ***out,
	struct sl_error *err);

#endif
