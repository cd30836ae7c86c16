/* Which commands start a container, and what they become. */
#include "../../base/test.h"

#include "cli/run/container.h"

#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64

/* Splits text at blanks; the words lie in it. */
static void split(char *text, char *words[WORDS_MAX])
{
	char *save = NULL;
	size_t n = 0;

	for (char *word = strtok_r(text, " ", &save); word;
		word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	words[n] = NULL;
}

static void test_which(void **state)
{
	static const struct {
		const char *words;
		size_t at;
	} rows[] = {
		{"podman run image", 2},
		{"/usr/bin/podman run", 2},
		{"podman container run image", 3},
		{"podman --runtime run --log-level=debug run image", 5},
		{"podman --root run ps", 0},
		{"podman exec run", 0},
		{"podman", 0},
		{"docker -H run run image run", 4},
		{"docker --tls run image", 3},
		{"docker compose run service", 0},
		{"nerdctl -n run run image", 4},
		{"podman-compose -f file up", 1},
		{"run podman run", 0},
		{"env podman run", 0},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char text[128], *words[WORDS_MAX];

		strcpy(text, rows[i].words);
		split(text, words);
		if (sl_run_container(words) != rows[i].at)
			fail_msg("%s: %zu, not %zu", rows[i].words,
				sl_run_container(words), rows[i].at);
	}
}

/* The words of text after Sluice's options are in, joined by blanks. NULL: refused. */
static const char *become(const char *command, const char *folder, char out[4096])
{
	struct sl_msg_entry_reply entry = {.ok = 1};
	char text[256], *words[WORDS_MAX], **made = NULL;
	struct sl_error err = {0};

	strcpy(text, command);
	split(text, words);
	strcpy(entry.folder, folder);
	strcpy(entry.visible_out, "1,3");
	out[0] = '\0';
	if (!sl_run_container_words(words, sl_run_container(words), &entry,
		    "/lib/libsluice.so", &made, &err)) {
		assert_non_null(strstr(err.text, folder));
		return NULL;
	}
	for (size_t i = 0; made[i]; i++) {
		(void)strcat(strcat(out, i ? " " : ""), made[i]);
		if (made[i] < text || made[i] >= text + sizeof(text))
			free(made[i]);
	}
	free(made);
	return out;
}

#define MOUNTS                                                                        \
	"--mount type=bind,source=/f,target=/run/sluice,readonly "                    \
	"--mount type=bind,source=/lib/libsluice.so,target=/opt/sluice/libsluice.so," \
	"readonly "                                                                   \
	"--mount type=bind,source=/f/ld.so.preload,target=/etc/ld.so.preload,readonly "
#define VARIABLES                                                                    \
	"-e SLUICE_SOCKET=/run/sluice/sluiced.sock -e CUDA_DEVICE_ORDER=PCI_BUS_ID " \
	"-e CUDA_VISIBLE_DEVICES=1,3 "
#define OPTIONS MOUNTS VARIABLES

static void test_words(void **state)
{
	char out[4096];

	(void)state;
	(void)unsetenv("SLUICE_SOFTGPU");
	assert_string_equal(become("podman run -d image cmd", "/f", out),
		"podman run " OPTIONS "--device nvidia.com/gpu=all -d image cmd");
	assert_string_equal(become("docker run image", "/f", out),
		"docker run " OPTIONS "--gpus all image");
	assert_string_equal(become("docker run --gpus=all image", "/f", out),
		"docker run " OPTIONS "--gpus=all image");
	assert_string_equal(
		become("docker run -it --name x -e A=b --gpus 1 image", "/f", out),
		"docker run " OPTIONS "-it --name x -e A=b --gpus 1 image");
	assert_string_equal(
		become("podman run --rm -dv /a:/a image cmd --gpus 1", "/f", out),
		"podman run " OPTIONS
		"--device nvidia.com/gpu=all --rm -dv /a:/a image cmd --gpus 1");
	assert_string_equal(
		become("podman run --device nvidia.com/gpu=0 image", "/f", out),
		"podman run " OPTIONS "--device nvidia.com/gpu=0 image");
	assert_string_equal(become("podman-compose up x", "/f", out),
		"podman-compose --podman-run-args=" OPTIONS
		"--device nvidia.com/gpu=all up x");
	assert_null(become("podman run image", "/a,b", out));
	assert_null(become("podman run image", "/a b", out));
}

/* The software GPU is two folders and what names them. */
static void test_software(void **state)
{
	char out[4096];

	(void)state;
	(void)setenv("SLUICE_SOFTGPU", "/box/gpu", 1);
	(void)setenv("LD_LIBRARY_PATH", "/soft:/other", 1);
	(void)unsetenv("SLUICE_SOFTGPU_CUDA");
	assert_string_equal(become("podman run image", "/f", out),
		"podman run " MOUNTS "--mount type=bind,source=/box,target=/box,readonly "
		"--mount type=bind,source=/soft,target=/soft,readonly " VARIABLES
		"-e SLUICE_SOFTGPU=/box/gpu -e LD_LIBRARY_PATH=/soft image");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_software),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
