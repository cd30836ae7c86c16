/*
 * contents - see the header
 *
 * The library is loaded by /etc/ld.so.preload and not by LD_PRELOAD: that keeps an LD_PRELOAD of
 * the image, does not depend on the environment, and programs of musl ignore it, while they do not
 * start with a glibc library in LD_PRELOAD.
 */
#include "cli/run/contents.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/link/settings.h"

static void add_env(struct sl_contents *c, const char *name, const char *value)
{
	char *text = c->variables[c->device.env_count];

	(void)snprintf(text, sizeof(c->variables[0]), "%s=%s", name, value);
	c->env[c->device.env_count++] = text;
}

static void add_mount(struct sl_contents *c, const char *source, const char *target)
{
	c->mounts[c->device.mount_count++] =
		(struct sl_cdi_mount){.host_path = source, .container_path = target};
}

/* The software GPU: its socket, and the folder of its libraries, which comes first. */
static void add_software(struct sl_contents *c, const char *socket)
{
	const char *libraries = getenv("LD_LIBRARY_PATH");
	const char *version = getenv(SL_SOFTGPU_ENV_CUDA);
	const char *folder;

	(void)snprintf(c->socket_dir, sizeof(c->socket_dir), "%s", socket);
	folder = dirname(c->socket_dir);
	add_mount(c, folder, folder);
	add_env(c, SL_SOFTGPU_ENV, socket);
	if (version)
		add_env(c, SL_SOFTGPU_ENV_CUDA, version);
	if (!libraries)
		return;
	(void)snprintf(c->libraries, sizeof(c->libraries), "%.*s",
		(int)strcspn(libraries, ":"), libraries);
	add_mount(c, c->libraries, c->libraries);
	add_env(c, "LD_LIBRARY_PATH", c->libraries);
}

void sl_contents_set(struct sl_contents *contents, const struct sl_msg_entry_reply *entry,
	const char *library)
{
	const char *socket = getenv(SL_SOFTGPU_ENV);

	*contents = (struct sl_contents){0};
	contents->device.env = contents->env;
	contents->device.mounts = contents->mounts;
	(void)snprintf(contents->preload, sizeof(contents->preload), "%s/ld.so.preload",
		entry->folder);
	add_mount(contents, entry->folder, SL_PATHS_CONTAINER);
	add_mount(contents, library, SL_PATHS_CONTAINER_LIBRARY);
	add_mount(contents, contents->preload, SL_PATHS_CONTAINER_PRELOAD);
	add_env(contents, "SLUICE_SOCKET", SL_PATHS_CONTAINER "/sluiced.sock");
	add_env(contents, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	add_env(contents, "CUDA_VISIBLE_DEVICES", entry->visible_out);
	if (socket)
		add_software(contents, socket);
}
