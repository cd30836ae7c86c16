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

/* NULL if an entry is not NAME=VALUE. */
static json_t *env_of(const struct sl_cdi_device *device)
{
	json_t *all = json_array();

	for (size_t i = 0; i < device->env_count; i++) {
		if (!is_variable(device->env[i]) ||
			json_array_append_new(all, json_string(device->env[i])) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *mounts_of(const struct sl_cdi_device *device)
{
	json_t *all = json_array();

	for (size_t i = 0; i < device->mount_count; i++) {
		const struct sl_cdi_mount *mount = &device->mounts[i];
		bool is_fit = is_absolute(mount->host_path) &&
			      is_absolute(mount->container_path);
		json_t *one = is_fit ? json_pack("{sssssss[ssss]}", "hostPath",
					       mount->host_path, "containerPath",
					       mount->container_path, "type", "bind",
					       "options", "bind", "nosuid", "nodev",
					       mount->is_writable ? "rw" : "ro")
				     : NULL;

		if (json_array_append_new(all, one) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *nodes_of(const struct sl_cdi_device *device)
{
	json_t *all = json_array();

	for (size_t i = 0; i < device->node_count; i++) {
		const struct sl_cdi_node *node = &device->nodes[i];
		bool is_fit = is_absolute(node->path) &&
			      (!node->host_path || is_absolute(node->host_path));
		json_t *one =
			is_fit ? json_pack("{ssss*ss}", "path", node->path, "hostPath",
					 node->host_path, "permissions", "rw")
			       : NULL;

		if (json_array_append_new(all, one) < 0) {
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
	json_t *env = env_of(device), *mounts = mounts_of(device);
	json_t *nodes = nodes_of(device);
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
