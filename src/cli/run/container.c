/*
 * container - the options
 *
 * --mount and not --volume: docker makes a folder where the source of a volume is missing, and a
 * container that is started again after its workload has ended would run without limits.
 */
#include "cli/run/container.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/line/program.h"
#include "cli/run/contents.h"
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

/* The words of --mount are separated by commas, joined options by blanks. */
static void add_mount(struct list *list, const struct sl_cdi_mount *mount)
{
	if (strpbrk(mount->host_path, ",\"' \t\\"))
		list->unfit = mount->host_path;
	add(list, "--mount");
	add(list, "type=bind,source=%s,target=%s,readonly", mount->host_path,
		mount->container_path);
}

/* Options of `run` in these programs whose value is not the next word. */
static const char flags[] = "detach help init interactive no-healthcheck no-hosts "
			    "privileged publish-all quiet "
			    "read-only replace rm rmi sig-proxy tls-verify tty";
static const char short_flags[] = "Pdhiqt";

static bool is_flag(const char *word)
{
	const char *at = strstr(flags, word);
	size_t n = strlen(word);

	return at && (at == flags || at[-1] == ' ') && (!at[n] || at[n] == ' ');
}

/* Is the next word the value of this option? An option that is not known counts as one with a
 * value. */
static bool takes_value(const char *option)
{
	size_t n = 1 + strspn(option + 1, short_flags);

	/* -it, -ie A=B, -eA=B */
	if (option[1] != '-')
		return option[n] && !option[n + 1];
	return !strchr(option, '=') && !is_flag(option + 2);
}

/* Does an option of the user's say which GPUs the container has? The program in the container may
 * have options of the same name. words: behind `run`. */
static bool names_gpus(char *const *words)
{
	for (; *words && **words == '-'; words++) {
		bool takes = takes_value(*words) && words[1];

		if (strncmp(*words, "--gpus", 6) == 0 ||
			strstr(words[takes ? 1 : 0], "nvidia.com/gpu"))
			return true;
		words += takes;
	}
	return false;
}

static void add_gpus(struct list *list, char *const *words, size_t at)
{
	const struct runtime *runtime = runtime_of(words[0]);

	if (getenv(SL_SOFTGPU_ENV) || names_gpus(words + at))
		return;
	add(list, "%s", runtime->gpu_option);
	add(list, "%s", runtime->gpu_value);
}

static void let_go(struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->words[i]);
	list->count = 0;
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
	let_go(list);
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
	const struct sl_msg_entry_reply *entry, const char *library, char ***out,
	struct sl_error *err)
{
	struct sl_contents contents;
	struct list list = {.count = 0};

	sl_contents_set(&contents, entry, library);
	for (size_t i = 0; i < contents.device.mount_count; i++)
		add_mount(&list, &contents.device.mounts[i]);
	for (size_t i = 0; i < contents.device.env_count; i++) {
		add(&list, "-e");
		add(&list, "%s", contents.device.env[i]);
	}
	add_gpus(&list, words, at);
	if (runtime_of(words[0])->joined)
		put_together(&list, runtime_of(words[0])->joined);
	*out = list.full || list.unfit ? NULL : join(words, at, &list);
	if (!*out)
		let_go(&list);
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
