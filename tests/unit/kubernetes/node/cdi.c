/* Files of the Container Device Interface. */
#include "../../base/test.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/kubernetes/node/cdi.h"

#define UID "0b7f1c1e-2d3a-4b5c-8d9e-0123456789ab"

static char folder[64], dir[80];

static int set_up(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/kube-unit.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(dir, sizeof(dir), "%s/cdi", folder);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static const char *file(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *const env[] = {"LD_PRELOAD=/usr/lib/libsluice.so", "A=\"b\"\n"};
static const struct sl_cdi_mount mounts[] = {
	{"/opt/libsluice.so", "/usr/lib/libsluice.so"}, {"/run/s", "/run/sluice", true}};
static const struct sl_cdi_node nodes[] = {{"/dev/nvidia0"}, {"/dev/x", "/dev/y"}};
static const struct sl_cdi_device devices[] = {
	{env, 2, mounts, 2, nodes, 2},
	{env, 1},
};

static void what_is_written(void **state)
{
	sl_cleanup(sl_freep) char *text = NULL;
	sl_cleanup(sl_freep) char *compact = NULL;
	struct sl_error err = {{0}};
	struct stat stat_of;
	json_t *json;

	(void)umask(077);
	assert_int_equal(sl_cdi_write(dir, UID, devices, 2, &err), 0);
	assert_int_equal(
		sl_file_read(file("sluice.dev-claim_" UID ".json"), 10000, &text, NULL),
		0);
	assert_int_equal(stat(file("sluice.dev-claim_" UID ".json"), &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0644);
	json = json_loads(text, 0, NULL);
	compact = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(json);
	assert_string_equal(compact,
		"{\"cdiVersion\":\"0.5.0\",\"devices\":[{\"containerEdits\":{"
		"\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"permissions\":\"rw\"},"
		"{\"hostPath\":\"/dev/y\",\"path\":\"/dev/x\",\"permissions\":\"rw\"}],"
		"\"env\":[\"LD_PRELOAD=/usr/lib/libsluice.so\",\"A=\\\"b\\\"\\n\"],"
		"\"mounts\":[{\"containerPath\":\"/usr/lib/libsluice.so\","
		"\"hostPath\":\"/opt/libsluice.so\","
		"\"options\":[\"bind\",\"nosuid\",\"nodev\",\"ro\"],\"type\":\"bind\"},"
		"{\"containerPath\":\"/run/sluice\",\"hostPath\":\"/run/s\","
		"\"options\":[\"bind\",\"nosuid\",\"nodev\",\"rw\"],\"type\":\"bind\"}]},"
		"\"name\":\"" UID "-0\"},{\"containerEdits\":{"
		"\"env\":[\"LD_PRELOAD=/usr/lib/libsluice.so\"]},\"name\":\"" UID
		"-1\"}],"
		"\"kind\":\"sluice.dev/claim\"}");
}

static void names_from_outside(void **state)
{
	static const char *const bad[] = {"", ".", "..", "../x", "a/b", "a.b", "-a", "a-",
		"a b", "a\n", "\xc3\xa4",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	char id[SL_CDI_ID_MAX];

	for (size_t i = 0; i < SL_ARRAY_LEN(bad); i++) {
		struct sl_error err = {{0}};

		assert_row_u64(bad[i], sl_cdi_is_name(bad[i]), false);
		assert_int_equal(sl_cdi_write(dir, bad[i], devices, 1, &err), -EINVAL);
		assert_row_contains(bad[i], err.text, "not the UID of a claim");
		assert_int_equal(sl_cdi_remove(dir, bad[i], &err), -EINVAL);
	}
	assert_true(sl_cdi_is_name(UID));
	assert_true(sl_cdi_is_name("7"));
	assert_int_equal(access(dir, F_OK), -1);
	assert_string_equal(sl_cdi_id(UID, 12, id), "sluice.dev/claim=" UID "-12");
}

static void what_is_refused(void **state)
{
	static const char *const bad_env[] = {"NOTHING"}, *const no_name[] = {"=x"};
	static const char *const no_utf8[] = {"A=\xff"};
	static const struct sl_cdi_mount bad_mount[] = {{"relative", "/x"}};
	static const struct sl_cdi_node bad_node[] = {{"dev/x"}};
	static const struct sl_cdi_device rows[] = {
		{bad_env, 1},
		{no_name, 1},
		{no_utf8, 1},
		{.mounts = bad_mount, .mount_count = 1},
		{.nodes = bad_node, .node_count = 1},
	};
	struct sl_error err = {{0}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_int_equal(sl_cdi_write(dir, UID, &rows[i], 1, &err), -EINVAL);
	assert_int_equal(sl_cdi_write(dir, UID, devices, 0, &err), -EINVAL);
	assert_int_equal(access(dir, F_OK), -1);
}

static char listed[400];

static void note(void *context, const char *uid)
{
	struct sl_error err = {{0}};

	(void)strcat(strcat(listed, uid), " ");
	if (context)
		assert_int_equal(sl_cdi_remove(dir, uid, &err), 0);
}

static void ours_are_listed_and_removed(void **state)
{
	struct sl_error err = {{0}};

	listed[0] = '\0';
	assert_int_equal(sl_cdi_list(dir, note, NULL, &err), 0);
	assert_int_equal(sl_cdi_remove(dir, UID, &err), 0);
	assert_int_equal(sl_cdi_write(dir, UID, devices, 1, &err), 0);
	assert_int_equal(sl_cdi_write(dir, UID, devices, 2, &err), 0);
	assert_int_equal(sl_file_replace(file("nvidia.json"), "{}", 2, false), 0);
	assert_int_equal(
		sl_file_replace(file("sluice.dev-claim_.json"), "{}", 2, false), 0);
	assert_int_equal(
		sl_file_replace(file("sluice.dev-claim_a.json.Xy7zQ1"), "{", 1, false),
		0);
	assert_int_equal(sl_cdi_list(dir, note, NULL, &err), 0);
	assert_string_equal(listed, UID " ");
	assert_int_equal(access(file("sluice.dev-claim_a.json.Xy7zQ1"), F_OK), -1);
	assert_int_equal(sl_cdi_list(dir, note, dir, &err), 0);
	assert_int_equal(access(file("sluice.dev-claim_" UID ".json"), F_OK), -1);
	assert_int_equal(sl_cdi_remove(dir, UID, &err), 0);
	assert_int_equal(access(file("nvidia.json"), F_OK), 0);
	assert_int_equal(access(file("sluice.dev-claim_.json"), F_OK), 0);
}

static void a_folder_that_is_none(void **state)
{
	struct sl_error err = {{0}};

	assert_int_equal(sl_file_replace(dir, "", 0, false), 0);
	assert_true(sl_cdi_write(dir, UID, devices, 1, &err) < 0);
	assert_non_null(strstr(err.text, "cannot write"));
	assert_true(sl_cdi_list(dir, note, NULL, &err) < 0);
	assert_true(sl_cdi_remove(dir, UID, &err) < 0);
	assert_non_null(strstr(err.text, "cannot remove"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_written),
		TEST(names_from_outside),
		TEST(what_is_refused),
		TEST(ours_are_listed_and_removed),
		TEST(a_folder_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
