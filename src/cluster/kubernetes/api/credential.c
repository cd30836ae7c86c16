/*
 * credential - see the header
 */
#include "cluster/kubernetes/api/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/kubernetes/api/parse.h"

#define ANSWER_MAX SL_MIB
#define INFO       "KUBERNETES_EXEC_INFO"

static void free_environment(char **environment)
{
	for (size_t i = 0; environment && environment[i]; i++)
		free(environment[i]);
	free(environment);
}

static bool is_set_by(const struct sl_kube_program *program, const char *variable)
{
	size_t length = strcspn(variable, "=");

	for (uint32_t i = 0; i < program->variables; i++) {
		if (strlen(program->name[i]) == length &&
			strncmp(program->name[i], variable, length) == 0)
			return true;
	}
	return strlen(INFO) == length && strncmp(INFO, variable, length) == 0;
}

/* This process's environment, with the program's variables in place of those of the same name;
 * NULL: out of memory. */
static char **environment_of(const struct sl_kube_program *program)
{
	json_t *spec = json_pack("{sbsO*}", "interactive", isatty(STDIN_FILENO),
		"cluster", program->cluster);
	json_t *info = json_pack("{sssssO}", "apiVersion", program->version, "kind",
		"ExecCredential", "spec", spec);
	sl_cleanup(sl_freep) char *text = json_dumps(info, JSON_COMPACT);
	size_t count = 0, used = 0;
	char **all;
	bool is_whole;

	json_decref(info);
	json_decref(spec);
	while (environ[count])
		count++;
	all = calloc(count + program->variables + 2, sizeof(*all));
	is_whole = all && text && asprintf(&all[used++], INFO "=%s", text) >= 0;
	for (uint32_t i = 0; is_whole && i < program->variables; i++)
		is_whole = asprintf(&all[used++], "%s=%s", program->name[i],
				   program->value[i]) >= 0;
	for (size_t i = 0; is_whole && i < count; i++) {
		if (!is_set_by(program, environ[i]))
			is_whole = (all[used++] = strdup(environ[i])) != NULL;
	}
	if (is_whole)
		return all;
	free_environment(all);
	return NULL;
}

/* Starts the program with `out` as its standard output. */
static int start(const struct sl_kube_program *program, int out, pid_t *child)
{
	const char *words[SL_KUBE_PROGRAM_WORDS + 2] = {program->command};
	char **environment = environment_of(program);
	posix_spawn_file_actions_t actions;
	int r;

	(void)memcpy(words + 1, program->word, program->words * sizeof(words[0]));
	r = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
	if (r == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
		if (r == 0)
			r = posix_spawnp(child, program->command, &actions, NULL,
				(char *const *)words, environment);
		(void)posix_spawn_file_actions_destroy(&actions);
	}
	free_environment(environment);
	return -r;
}

/* Reads until the program closes its end; text has space for ANSWER_MAX + 1 bytes. */
static ssize_t read_all(int fd, char *text)
{
	size_t used = 0;
	ssize_t n;

	do {
		n = read(fd, text + used, ANSWER_MAX - used);
		if (n > 0)
			used += (size_t)n;
	} while ((n > 0 && used < ANSWER_MAX) || (n < 0 && errno == EINTR));
	text[used] = '\0';
	return n < 0 ? -errno : (ssize_t)used;
}

/* Runs the program; its answer goes into text, whose size is returned. */
static ssize_t run(
	const struct sl_kube_program *program, char *text, struct sl_error *err)
{
	sl_cleanup(sl_closep) int from = -1, to = -1;
	int ends[2], status = 0, r;
	pid_t child;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return sl_err_origin(-errno);
	from = ends[0];
	to = ends[1];
	r = start(program, to, &child);
	if (r < 0) {
		sl_error_set(err,
			"%.100s, which gives the user's credentials, cannot be run: "
			"%s%s%.300s",
			program->command, strerror(-r), program->hint ? "; " : "",
			program->hint ? program->hint : "");
		return sl_err_origin(r);
	}
	sl_closep(&to);
	to = -1;
	n = read_all(from, text);
	sl_closep(&from);
	from = -1;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return n;
	sl_error_set(err,
		"%.100s, which gives the user's credentials, ended with %s %d; log in as "
		"it says, "
		"and see that kubectl get pods works",
		program->command, WIFEXITED(status) ? "exit status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return sl_err_origin(-EACCES);
}

int sl_kube_credential(
	const struct sl_kube_program *program, json_t **out, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = malloc(ANSWER_MAX + 1);
	json_t *answer, *status;
	ssize_t n;

	*out = NULL;
	if (!text)
		return sl_err_origin(-ENOMEM);
	n = run(program, text, err);
	if (n < 0)
		return (int)n;
	answer = sl_kube_parse(text, (size_t)n);
	explicit_bzero(text, (size_t)n);
	status = sl_kube_at(answer, "status", NULL);
	if (strcmp(sl_kube_text_at(answer, "apiVersion", NULL), program->version) == 0 &&
		(sl_kube_text_at(status, "token", NULL)[0] ||
			(sl_kube_text_at(status, "clientCertificateData", NULL)[0] &&
				sl_kube_text_at(status, "clientKeyData", NULL)[0])))
		*out = json_incref(status);
	json_decref(answer);
	if (*out)
		return 0;
	sl_error_set(err,
		"%.100s, which gives the user's credentials, printed no ExecCredential "
		"of %.60s "
		"with a token or certificate; see that kubectl get pods works",
		program->command, program->version);
	return sl_err_origin(-EBADMSG);
}
