/*
 * container - the options
 *
 * --mount and not --volume: docker makes a folder where the source of a volume is missing, and a
 * container that is started again after its workload has ended would run without limits. The
 * library is loaded by /etc/ld.so.preload and not by LD_PRELOAD: that keeps an LD_PRELOAD of the
 * image, does not depend on the environment, and programs of musl ignore it, while they do not
 * start with a glibc library in LD_PRELOAD.
 */
#include "cli/run/container.h"

#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "cli/line/program.h"
#include "softgpu/link/settings.h"

#define OPTIONS_MAX 32

static const struct runtime {
	const char *program, *valued, *joined, *gpu_option, *gpu_value;
} runtimes[] = {
#define SL_CONTAINER(program, valued, joined, gpu_option, gpu_value) \
	{program, valued, joined, gpu_option, gpu_value},
#include "cli/run/containers.def"
#undef SL_CONTAINER
};

struct list {
	char *words[OPTIONS_MAX];
	size_t count;
	bool full; /* or out of memory */
	const char *unfit;
};

static const struct runtime *runtime_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < SL_ARRAY_LEN(runtimes); i++) {
		if (strcmp(slash ? slash + 1 : path, runtimes[i].program) == 0)
			return &runtimes[i];
	}
	return NULL;
}

size_t sl_run_container(char *const *words)
{
	const struct runtime *runtime = runtime_of(words[0]);
	char *const *word;

	if (!runtime || runtime->joined)
		return runtime != NULL;
	word = sl_program_operand(runtime->valued, words + 1);
	if (word && strcmp(*word, "container") == 0)
		word++;
	return word && *word && strcmp(*word, "run") == 0 ? (size_t)(word - words) + 1
							  : 0;
}

SL_PRINTF(2, 3) static void add(struct list *list, const char *format, ...)
{
	char *word = NULL;
	va_list args;

	va_start(args, format);
	if (list->count == OPTIONS_MAX || vasprintf(&word, format, args) < 0)
		list->full = true;
	else
		list->words[list->count++] = word;
	va_end(args);
}

static void add_env(struct list *list, const char *name, const char *value)
{
	add(list, "-e");
	add(list, "%s=%s", name, value);
}

/* The words of --mount are separated by commas, joined options by blanks. */
static void add_mount(struct list *list, const char *source, const char *target)
{
	if (strpbrk(source, ",\"' \t\\"))
		list->unfit = source;
	add(list, "--mount");
	add(list, "type=bind,source=%s,target=%s,readonly", source, target);
}

/* The software GPU: its socket, and the folder of its libraries, which comes first. */
static void add_software(struct list *list, const char *socket)
{
	const char *libraries = getenv("LD_LIBRARY_PATH");
	const char *version = getenv(SL_SOFTGPU_ENV_CUDA);
	char path[SL_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s", socket);
	add_mount(list, dirname(path), path);
	add_env(list, SL_SOFTGPU_ENV, socket);
	if (version)
		add_env(list, SL_SOFTGPU_ENV_CUDA, version);
	if (!libraries)
		return;
	(void)snprintf(
		path, sizeof(path), "%.*s", (int)strcspn(libraries, ":"), libraries);
	add_mount(list, path, path);
	add_env(list, "LD_LIBRARY_PATH", path);
}

/* Does a word of the user's say which GPUs the container has? */
static bool names_gpus(char *const *words)
{
	for (; *words; words++) {
		if (strncmp(*words, "--gpus", 6) == 0 || strstr(*words, "nvidia.com/gpu"))
			return true;
	}
	return false;
}

static void add_gpus(struct list *list, char *const *words)
{
	const struct runtime *runtime = runtime_of(words[0]);
	const char *socket = getenv(SL_SOFTGPU_ENV);

	if (socket) {
		add_software(list, socket);
	} else if (!names_gpus(words)) {
		add(list, "%s", runtime->gpu_option);
		add(list, "%s", runtime->gpu_value);
	}
}

/* One word of all: "OPTION=A B C". */
static void put_together(struct list *list, const char *option)
{
	struct list one = {.count = 0};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out) {
		list->full = true;
		return;
	}
	fprintf(out, "%s=", option);
	for (size_t i = 0; i < list->count; i++)
		fprintf(out, "%s%s", i ? " " : "", list->words[i]);
	one.full = fclose(out) != 0 || list->full;
	one.unfit = list->unfit;
	one.words[one.count++] = text;
	*list = one;
}

static char **join(char *const *words, size_t at, const struct list *list)
{
	size_t count = 0;
	char **out;

	while (words[count])
		count++;
	out = calloc(count + list->count + 1, sizeof(*out));
	if (!out)
		return NULL;
	memcpy(out, words, at * sizeof(*out));
	memcpy(out + at, list->words, list->count * sizeof(*out));
	memcpy(out + at + list->count, words + at, (count - at) * sizeof(*out));
	return out;
}

bool sl_run_container_words(char *const *words, size_t at,
	const struct sl_msg_entry_reply *entry, const struct sl_msg_run_reply *run,
	const char *library, char ***out, struct sl_error *err)
{
	char preload[sizeof(entry->folder) + sizeof("/ld.so.preload")];
	struct list list = {.count = 0};

	(void)snprintf(preload, sizeof(preload), "%s/ld.so.preload", entry->folder);
	add_mount(&list, entry->folder, SL_PATHS_CONTAINER);
	add_mount(&list, library, SL_PATHS_CONTAINER_LIBRARY);
	add_mount(&list, preload, SL_PATHS_CONTAINER_PRELOAD);
	add_env(&list, "SLUICE_SOCKET", SL_PATHS_CONTAINER "/sluiced.sock");
	add_env(&list, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	add_env(&list, "CUDA_VISIBLE_DEVICES", run->visible_out);
	add_gpus(&list, words);
	if (runtime_of(words[0])->joined)
		put_together(&list, runtime_of(words[0])->joined);
	*out = list.full ? NULL : join(words, at, &list);
	if (list.unfit) {
		sl_error_set(err,
			"%.200s has a comma, a blank or a quote in its path, which "
			"--mount cannot carry; put it elsewhere",
			list.unfit);
		return false;
	}
	if (!*out)
		sl_error_set(err, "out of memory");
	return *out != NULL;
}
