/*
 * cdi - see the header
 */
#include "base/cdi.h"

#include <jansson.h>
#include <string.h>

#define VERSION "0.5.0"

bool sl_cdi_is_name(const char *name)
{
	static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-";
	size_t length = strlen(name);

	return length > 0 && length <= SL_CDI_NAME_MAX && strspn(name, fit) == length &&
	       name[0] != '-' && name[length - 1] != '-';
}

static bool is_absolute(const char *path)
{
	return path && path[0] == '/';
}

static bool is_variable(const char *text)
{
	const char *equals = strchr(text, '=');

	return equals && equals > text;
}

/* Entry i of a list; NULL: the device's own words for it are unfit. */
typedef json_t *entry_fn(const struct sl_cdi_device *device, size_t i);

static json_t *variable(const struct sl_cdi_device *device, size_t i)
{
	return is_variable(device->env[i]) ? json_string(device->env[i]) : NULL;
}

static json_t *mount_of(const struct sl_cdi_device *device, size_t i)
{
	const struct sl_cdi_mount *mount = &device->mounts[i];

	if (!is_absolute(mount->host_path) || !is_absolute(mount->container_path))
		return NULL;
	return json_pack("{sssssss[ssss]}", "hostPath", mount->host_path, "containerPath",
		mount->container_path, "type", "bind", "options", "bind", "nosuid",
		"nodev", mount->is_writable ? "rw" : "ro");
}

static json_t *node_of(const struct sl_cdi_device *device, size_t i)
{
	const struct sl_cdi_node *node = &device->nodes[i];

	if (!is_absolute(node->path) ||
		(node->host_path && !is_absolute(node->host_path)))
		return NULL;
	return json_pack("{ssss*ss}", "path", node->path, "hostPath", node->host_path,
		"permissions", "rw");
}

/* NULL if an entry is unfit. */
static json_t *list_of(const struct sl_cdi_device *device, size_t count, entry_fn *entry)
{
	json_t *all = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(all, entry(device, i)) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

/* Omits an empty list, which not every CDI runtime accepts. Takes list. */
static void set_list(json_t *edits, const char *key, json_t *list)
{
	if (json_array_size(list) > 0)
		(void)json_object_set(edits, key, list);
	json_decref(list);
}

json_t *sl_cdi_device_json(const char *name, const struct sl_cdi_device *device)
{
	json_t *env = list_of(device, device->env_count, variable);
	json_t *mounts = list_of(device, device->mount_count, mount_of);
	json_t *nodes = list_of(device, device->node_count, node_of);
	bool is_fit = env && mounts && nodes;
	json_t *edits = json_object();

	set_list(edits, "env", env);
	set_list(edits, "mounts", mounts);
	set_list(edits, "deviceNodes", nodes);
	if (is_fit)
		return json_pack("{ssso}", "name", name, "containerEdits", edits);
	json_decref(edits);
	return NULL;
}

char *sl_cdi_text(const char *kind, json_t *devices)
{
	json_t *spec = json_pack(
		"{ssssso}", "cdiVersion", VERSION, "kind", kind, "devices", devices);
	char *text = json_dumps(spec, JSON_INDENT(2));

	json_decref(spec);
	return text;
}
