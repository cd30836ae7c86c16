/*
 * contents - what a container gets so that its programs are a workload
 *
 * The workload's own socket, the library, the file by which the container's loader finds it, and
 * the variables that say so. The image needs nothing. Under `sluice softgpu` also the software
 * GPU; device nodes of real GPUs come from the vendor. Reads the environment; no locks.
 */
#ifndef SL_CLI_RUN_CONTENTS_H
#define SL_CLI_RUN_CONTENTS_H

#include "base/cdi.h"
#include "base/paths.h"
#include "wire/wire.h"

#define SL_CONTENTS_ENV    6
#define SL_CONTENTS_MOUNTS 5

struct sl_contents {
	struct sl_cdi_device device; /* the result; the rest is its storage */
	const char *env[SL_CONTENTS_ENV];
	struct sl_cdi_mount mounts[SL_CONTENTS_MOUNTS];
	char variables[SL_CONTENTS_ENV][SL_PATH_MAX + 32];
	char preload[SL_PATH_MAX], socket_dir[SL_PATH_MAX], libraries[SL_PATH_MAX];
};

/* entry: what the daemon said of the workload. library: its path, which must outlive *contents.
 * *contents must not be copied. */
void sl_contents_set(struct sl_contents *contents, const struct sl_msg_entry_reply *entry,
	const char *library);

#endif
