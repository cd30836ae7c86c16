/*
 * told - see the header
 */
#include "told.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 6, CHILD_MS = 30000 };

struct order {
	const struct told_command *command;
	char line[1024];
	char *word[WORDS_MAX + 1];
	CUcontext ctx;
};

static _Thread_local bool async;
static bool over;

void told_answer_more(const char *did, CUresult result, uint64_t value, const char *more,
	uint64_t more_value)
{
	flockfile(stdout);
	printf("{\"did\":\"%s\",\"result\":\"%s\",\"value\":%" PRIu64, did,
		result == CUDA_SUCCESS ? "CUDA_SUCCESS" : prog_error_name(result), value);
	if (more)
		printf(",\"%s\":%" PRIu64, more, more_value);
	printf("%s}\n", async ? ",\"async\":1" : "");
	fflush(stdout);
	funlockfile(stdout);
}

void told_answer(const char *did, CUresult result, uint64_t value)
{
	told_answer_more(did, result, value, NULL, 0);
}

void told_end(void)
{
	over = true;
}

void told_fork(char **word)
{
	pid_t pid = fork();

	(void)word;
	if (pid == 0) {
		(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO);
		prog_sleep_ms(CHILD_MS);
		_exit(0);
	}
	told_answer("fork", CUDA_SUCCESS, (uint64_t)pid);
}

CUresult told_export(CUdeviceptr at, const char *path)
{
	CUipcMemHandle handle;
	CUresult r = cuIpcGetMemHandle(&handle, at);
	FILE *file;

	if (r != CUDA_SUCCESS)
		return r;
	file = fopen(path, "wb");
	if (!file || fwrite(&handle, sizeof(handle), 1, file) != 1 || fclose(file) != 0)
		exit(PROG_USAGE);
	return r;
}

CUipcMemHandle told_import(const char *path)
{
	CUipcMemHandle handle;
	FILE *file = fopen(path, "rb");

	if (!file || fread(&handle, sizeof(handle), 1, file) != 1)
		exit(PROG_USAGE);
	(void)fclose(file);
	return handle;
}

/* --- orders ----------------------------------------------------------------------------------- */

/* Of order->line; NULL if it is no command. */
static const struct told_command *read_order(struct order *order, char *line,
	const struct told_command *commands, size_t count)
{
	char *save = NULL;
	int words = 0;

	for (char *at = strtok_r(line, " \n", &save); at && words < WORDS_MAX;
		at = strtok_r(NULL, " \n", &save))
		order->word[words++] = at;
	for (size_t i = 0; i < count; i++) {
		if (words == commands[i].words &&
			strcmp(order->word[0], commands[i].name) == 0)
			return &commands[i];
	}
	prog_say("{\"did\":\"nothing\",\"result\":\"%s?\"}", words ? order->word[0] : "");
	return NULL;
}

static void *carry_out(void *argument)
{
	struct order *order = argument;

	async = true;
	PROG_MUST(cuCtxSetCurrent(order->ctx));
	/* From now on a test sees its fate by /proc. */
	(void)pthread_setname_np(pthread_self(), "later");
	order->command->run(order->word);
	free(order);
	return NULL;
}

static void obey(const char *line, const struct told_command *commands, size_t count)
{
	struct order *order = calloc(1, sizeof(*order));
	bool own_thread = line[0] == '&';
	pthread_t thread;

	if (!order)
		exit(PROG_USAGE);
	(void)snprintf(
		order->line, sizeof(order->line), "%s", line + (own_thread ? 1 : 0));
	order->command = read_order(order, order->line, commands, count);
	if (order->command && own_thread) {
		PROG_MUST(cuCtxGetCurrent(&order->ctx));
		if (pthread_create(&thread, NULL, carry_out, order) != 0)
			exit(PROG_USAGE);
		(void)pthread_detach(thread);
		return;
	}
	if (order->command)
		order->command->run(order->word);
	free(order);
}

void told_obey(const struct told_command *commands, size_t count)
{
	char line[1024];

	told_answer("start", CUDA_SUCCESS, (uint64_t)getpid());
	while (!over) {
		if (fgets(line, sizeof(line), stdin))
			obey(line, commands, count);
		else if (errno == EINTR) /* a signal that is caught */
			clearerr(stdin);
		else
			break;
	}
}
