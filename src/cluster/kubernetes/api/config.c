/*
 * config - the service account's folder, or a kubeconfig
 *
 * A kubeconfig is loaded as one YAML document (JSON is YAML, too). Its current context names a
 * cluster and a user; each is looked up by that name in a list of its own.
 */
#include "cluster/kubernetes/api/config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml.h>

#include "base/file.h"
#include "cluster/kubernetes/api/credential.h"
#include "cluster/kubernetes/api/parse.h"

#define FILE_MAX_BYTES SL_MIB

void sl_kube_config_fini(struct sl_kube_config *config)
{
	for (size_t i = 0; i < SL_KUBE_FILES; i++) {
		free(config->path[i]);
		if (config->memory[i] > 0)
			(void)close(config->memory[i]);
	}
	if (config->token)
		explicit_bzero(config->token, strlen(config->token));
	free(config->token);
	free(config->token_path);
	free(config->server);
	free(config->namespace);
	*config = (struct sl_kube_config){0};
}

static SL_PRINTF(2, 3) int print(char **out, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(out, format, args);
	va_end(args);
	if (n >= 0)
		return 0;
	*out = NULL;
	return sl_err_origin(-ENOMEM);
}

/* --- in the cluster ------------------------------------------------------------------------ */

static int check_readable(const char *path, struct sl_error *err)
{
	if (access(path, R_OK) == 0)
		return 0;
	sl_error_set(err,
		"cannot read %.300s: %s; give the pod a service account and leave "
		"automountServiceAccountToken on",
		path, strerror(errno));
	return sl_err_origin(-ENOENT);
}

/* The pod's namespace, which is optional. */
static int read_namespace(struct sl_kube_config *out, const char *folder)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[PATH_MAX];
	size_t size;

	(void)snprintf(path, sizeof(path), "%s/namespace", folder);
	if (sl_file_read(path, 256, &text, &size) < 0)
		return 0;
	text[strcspn(text, "\r\n")] = '\0';
	return text[0] ? print(&out->namespace, "%s", text) : 0;
}

static int fill_inside(
	struct sl_kube_config *out, const char *folder, struct sl_error *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	bool is_v6 = host && strchr(host, ':');
	int r;

	if (!host || !*host) {
		sl_error_set(err, "KUBERNETES_SERVICE_HOST is not set: this is no pod; "
				  "name a kubeconfig");
		return sl_err_origin(-ENOENT);
	}
	out->is_inside = true;
	r = print(&out->server, "https://%s%s%s:%s", is_v6 ? "[" : "", host,
		is_v6 ? "]" : "", port && *port ? port : "443");
	if (r == 0)
		r = print(&out->path[SL_KUBE_CA], "%s/ca.crt", folder);
	if (r == 0)
		r = print(&out->token_path, "%s/token", folder);
	if (r == 0)
		r = check_readable(out->path[SL_KUBE_CA], err);
	if (r == 0)
		r = check_readable(out->token_path, err);
	if (r == 0)
		r = read_namespace(out, folder);
	return r;
}

int sl_kube_config_inside(
	struct sl_kube_config *out, const char *folder, struct sl_error *err)
{
	int r;

	*out = (struct sl_kube_config){0};
	r = fill_inside(out, folder ? folder : SL_KUBE_ACCOUNT_DIR, err);
	if (r < 0)
		sl_kube_config_fini(out);
	return r;
}

/* --- a kubeconfig -------------------------------------------------------------------------- */

struct reader {
	const char *name;    /* of the file */
	const char *context; /* NULL: the current one */
	bool runs_programs;
	yaml_parser_t parser;
	yaml_document_t document;
	struct sl_error *err;
	struct sl_kube_config *out;
};

static SL_PRINTF(2, 3) int bad(struct reader *reader, const char *format, ...)
{
	char text[SL_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_error_set(reader->err, "%.200s: %s", reader->name, text);
	return sl_err_origin(-EINVAL);
}

static const char *scalar(const yaml_node_t *node)
{
	if (!node || node->type != YAML_SCALAR_NODE ||
		strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL;
	return (const char *)node->data.scalar.value;
}

static const yaml_node_t *member(
	struct reader *reader, const yaml_node_t *mapping, const char *key)
{
	const yaml_node_pair_t *pair;

	if (!mapping || mapping->type != YAML_MAPPING_NODE)
		return NULL;
	pair = mapping->data.mapping.pairs.start;
	for (; pair < mapping->data.mapping.pairs.top; pair++) {
		const char *name =
			scalar(yaml_document_get_node(&reader->document, pair->key));

		if (name && strcmp(name, key) == 0)
			return yaml_document_get_node(&reader->document, pair->value);
	}
	return NULL;
}

/* The text of a member; NULL if it is absent or empty. */
static const char *text_of(
	struct reader *reader, const yaml_node_t *mapping, const char *key)
{
	const char *text = scalar(member(reader, mapping, key));

	return text && *text ? text : NULL;
}

/* The member `inner` of the entry called `name` in the list `list`. */
static const yaml_node_t *entry(
	struct reader *reader, const char *list, const char *name, const char *inner)
{
	const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
	const yaml_node_t *all = member(reader, root, list);
	const yaml_node_item_t *item;

	if (!all || all->type != YAML_SEQUENCE_NODE || !name)
		return NULL;
	item = all->data.sequence.items.start;
	for (; item < all->data.sequence.items.top; item++) {
		const yaml_node_t *one = yaml_document_get_node(&reader->document, *item);
		const char *called = text_of(reader, one, "name");

		if (called && strcmp(called, name) == 0)
			return member(reader, one, inner);
	}
	return NULL;
}

/* Relative paths count from the kubeconfig's folder. */
static int set_path(struct reader *reader, char **out, const char *path)
{
	const char *slash = strrchr(reader->name, '/');

	if (path[0] == '/' || !slash)
		return print(out, "%s", path);
	return print(out, "%.*s%s", (int)(slash + 1 - reader->name), reader->name, path);
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 in place of text; out has room for as many bytes. Returns their number, or -1. */
static ssize_t decode(const char *text, unsigned char *out)
{
	uint32_t held = 0;
	unsigned int bits = 0;
	size_t n = 0;

	for (; *text && *text != '='; text++) {
		int value = digit(*text);

		if (strchr(" \t\r\n", *text))
			continue;
		if (value < 0)
			return -1;
		held = held << 6 | (uint32_t)value;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (unsigned char)(held >> bits);
		}
	}
	return text[strspn(text, "= \t\r\n")] ? -1 : (ssize_t)n;
}

/* All TLS libraries behind libcurl accept PEM as paths, but some (GnuTLS) not from memory. */
static int set_pem(struct reader *reader, unsigned int which, const char *key,
	const void *bytes, size_t size)
{
	sl_cleanup(sl_closep) int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return bad(reader, "no memory for %s: %s", key, strerror(errno));
	r = sl_file_write_all(fd, bytes, size);
	if (r == 0)
		r = print(&reader->out->path[which], "/proc/self/fd/%d", fd);
	if (r == 0)
		reader->out->memory[which] = sl_steal_fd(&fd);
	return r;
}

static int set_data(
	struct reader *reader, unsigned int which, const char *key, const char *text)
{
	sl_cleanup(sl_freep) unsigned char *bytes = malloc(strlen(text) + 1);
	ssize_t n;
	int r;

	if (!bytes)
		return sl_err_origin(-ENOMEM);
	n = decode(text, bytes);
	if (n <= 0)
		return bad(reader, "%s is not base64; copy it again", key);
	r = set_pem(reader, which, key, bytes, (size_t)n);
	explicit_bzero(bytes, (size_t)n);
	return r;
}

/* Uses `key`-data if present, else `key`, else neither. */
static int set_file(struct reader *reader, const yaml_node_t *mapping, const char *key,
	unsigned int which)
{
	char data_key[64];
	const char *path = text_of(reader, mapping, key), *data;

	(void)snprintf(data_key, sizeof(data_key), "%s-data", key);
	data = text_of(reader, mapping, data_key);
	if (data)
		return set_data(reader, which, data_key, data);
	return path ? set_path(reader, &reader->out->path[which], path) : 0;
}

static int set_cluster(struct reader *reader, const yaml_node_t *cluster)
{
	const char *server = text_of(reader, cluster, "server");
	const char *insecure = text_of(reader, cluster, "insecure-skip-tls-verify");
	size_t length;

	if (!server)
		return bad(reader,
			"the current context has no cluster with a server; see "
			"kubectl config view --minify");
	if (insecure && strcmp(insecure, "true") == 0)
		return bad(reader,
			"insecure-skip-tls-verify would send the token to whoever "
			"answers; "
			"put the cluster's CA into certificate-authority-data instead");
	if (strncmp(server, "https://", 8) != 0 || !server[8])
		return bad(reader, "server %.100s is not https://HOST:PORT", server);
	length = strlen(server);
	while (server[length - 1] == '/')
		length--;
	if (print(&reader->out->server, "%.*s", (int)length, server) < 0)
		return -ENOMEM;
	return set_file(reader, cluster, "certificate-authority", SL_KUBE_CA);
}

static int set_token(struct reader *reader, const yaml_node_t *user)
{
	const char *token = text_of(reader, user, "token");
	const char *path = text_of(reader, user, "tokenFile");

	/* As in kubectl: the file goes before the token. */
	if (path)
		return set_path(reader, &reader->out->token_path, path);
	if (token && strpbrk(token, "\r\n"))
		return bad(reader, "the token has a line break; write it on one line");
	return token ? print(&reader->out->token, "%s", token) : 0;
}

/* --- a program that provides credentials --------------------------------------------------- */

static const yaml_node_t *item_of(
	struct reader *reader, const yaml_node_t *list, uint32_t i)
{
	if (!list || list->type != YAML_SEQUENCE_NODE ||
		list->data.sequence.items.start + i >= list->data.sequence.items.top)
		return NULL;
	return yaml_document_get_node(
		&reader->document, list->data.sequence.items.start[i]);
}

static void read_words(
	struct reader *reader, const yaml_node_t *exec, struct sl_kube_program *program)
{
	const yaml_node_t *words = member(reader, exec, "args");
	const yaml_node_t *variables = member(reader, exec, "env"), *item;

	for (uint32_t i = 0; (item = item_of(reader, words, i)) &&
			     program->words < SL_KUBE_PROGRAM_WORDS;
		i++) {
		const char *word = scalar(item);

		program->word[program->words++] = word ? word : "";
	}
	for (uint32_t i = 0; (item = item_of(reader, variables, i)) &&
			     program->variables < SL_KUBE_PROGRAM_WORDS;
		i++) {
		const char *name = text_of(reader, item, "name");
		const char *value = text_of(reader, item, "value");

		if (!name)
			continue;
		program->name[program->variables] = name;
		program->value[program->variables++] = value ? value : "";
	}
}

/* For programs that contact the cluster themselves. */
static json_t *told_cluster(
	struct reader *reader, const yaml_node_t *exec, const yaml_node_t *cluster)
{
	const char *tells = text_of(reader, exec, "provideClusterInfo");

	if (!tells || strcmp(tells, "true") != 0)
		return NULL;
	return json_pack("{ssss*}", "server", text_of(reader, cluster, "server"),
		"certificate-authority-data",
		text_of(reader, cluster, "certificate-authority-data"));
}

static int take_credential(struct reader *reader, const json_t *status)
{
	const char *token = sl_kube_text_at(status, "token", NULL);
	const char *certificate = sl_kube_text_at(status, "clientCertificateData", NULL);
	const char *key = sl_kube_text_at(status, "clientKeyData", NULL);
	int r = 0;

	if (strpbrk(token, "\r\n"))
		return bad(reader, "the token that its program printed has a line break");
	if (token[0])
		r = print(&reader->out->token, "%s", token);
	if (r == 0 && certificate[0] && key[0])
		r = set_pem(reader, SL_KUBE_CERT, "clientCertificateData", certificate,
			strlen(certificate));
	if (r == 0 && certificate[0] && key[0])
		r = set_pem(reader, SL_KUBE_KEY, "clientKeyData", key, strlen(key));
	return r;
}

static int run_program(
	struct reader *reader, const yaml_node_t *exec, const yaml_node_t *cluster)
{
	const char *command = text_of(reader, exec, "command");
	sl_cleanup(sl_freep) char *path = NULL;
	struct sl_kube_program program = {.version = text_of(reader, exec, "apiVersion"),
		.hint = text_of(reader, exec, "installHint")};
	struct sl_error why = {0};
	json_t *status;
	int r = 0;

	if (!command || !program.version)
		return bad(reader, "the user's exec has no command and apiVersion");
	if (!reader->runs_programs)
		return bad(reader,
			"the user's credentials come from %.100s (exec), which are good "
			"for "
			"some minutes; make a kubeconfig with kubectl create token for "
			"a program that stays, or run it in the cluster",
			command);
	r = strchr(command, '/') ? set_path(reader, &path, command)
				 : print(&path, "%s", command);
	if (r < 0)
		return r;
	program.command = path;
	program.cluster = told_cluster(reader, exec, cluster);
	read_words(reader, exec, &program);
	r = sl_kube_credential(&program, &status, &why);
	json_decref(program.cluster);
	if (r < 0)
		return bad(reader, "%s", why.text);
	r = take_credential(reader, status);
	json_decref(status);
	return r;
}

static int set_user(
	struct reader *reader, const yaml_node_t *user, const yaml_node_t *cluster)
{
	const yaml_node_t *exec = member(reader, user, "exec");
	struct sl_kube_config *out = reader->out;
	int r = set_token(reader, user);

	if (r == 0)
		r = set_file(reader, user, "client-certificate", SL_KUBE_CERT);
	if (r == 0)
		r = set_file(reader, user, "client-key", SL_KUBE_KEY);
	if (r < 0)
		return r;
	if (!out->path[SL_KUBE_CERT] != !out->path[SL_KUBE_KEY])
		return bad(reader, "client-certificate and client-key belong together");
	if (out->token || out->token_path || out->path[SL_KUBE_CERT])
		return 0;
	if (exec)
		return run_program(reader, exec, cluster);
	return bad(reader,
		"the current context has no user with a token or client-certificate "
		"(auth-provider and passwords are not understood); make one with "
		"kubectl create token");
}

static int read_document(struct reader *reader)
{
	const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
	const char *current = reader->context ? reader->context
					      : text_of(reader, root, "current-context");
	const yaml_node_t *context = entry(reader, "contexts", current, "context");
	const char *namespace = text_of(reader, context, "namespace");
	const yaml_node_t *cluster;
	int r;

	if (!context && reader->context)
		return bad(reader,
			"there is no context %.100s; see kubectl config get-contexts",
			reader->context);
	if (!context)
		return bad(reader, "no current-context; choose one with kubectl config "
				   "use-context NAME");
	cluster =
		entry(reader, "clusters", text_of(reader, context, "cluster"), "cluster");
	r = set_cluster(reader, cluster);
	if (r == 0 && namespace)
		r = print(&reader->out->namespace, "%s", namespace);
	if (r < 0)
		return r;
	return set_user(reader,
		entry(reader, "users", text_of(reader, context, "user"), "user"),
		cluster);
}

static int read_text(struct reader *reader, const char *text, size_t size)
{
	int r;

	if (!yaml_parser_initialize(&reader->parser))
		return sl_err_origin(-ENOMEM);
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, size);
	if (!yaml_parser_load(&reader->parser, &reader->document)) {
		r = bad(reader, "line %zu: not YAML: %.200s",
			reader->parser.problem_mark.line + 1,
			reader->parser.problem ? reader->parser.problem : "unreadable");
	} else {
		r = read_document(reader);
		yaml_document_delete(&reader->document);
	}
	yaml_parser_delete(&reader->parser);
	return r;
}

static int read_file(struct sl_kube_config *out, const char *path, const char *context,
	bool runs_programs, struct sl_error *err)
{
	struct reader reader = {.name = path,
		.context = context,
		.runs_programs = runs_programs,
		.out = out,
		.err = err};
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r;

	*out = (struct sl_kube_config){0};
	r = sl_file_read(path, FILE_MAX_BYTES, &text, &size);
	if (r < 0)
		sl_error_set(
			err, "cannot read the kubeconfig %.200s: %s", path, strerror(-r));
	else
		r = read_text(&reader, text, size);
	if (text)
		explicit_bzero(text, size);
	if (r < 0)
		sl_kube_config_fini(out);
	return r;
}

int sl_kube_config_file(
	struct sl_kube_config *out, const char *path, struct sl_error *err)
{
	return read_file(out, path, NULL, false, err);
}

static int find(struct sl_kube_config *out, const char *path, const char *context,
	bool runs_programs, struct sl_error *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *named = getenv("KUBECONFIG"), *home = getenv("HOME");
	char at_home[PATH_MAX];

	if (path)
		return read_file(out, path, context, runs_programs, err);
	if (host && *host && !context)
		return sl_kube_config_inside(out, NULL, err);
	if (named && *named)
		return read_file(out, named, context, runs_programs, err);
	(void)snprintf(at_home, sizeof(at_home), "%s/.kube/config", home ? home : "");
	return read_file(out, at_home, context, runs_programs, err);
}

int sl_kube_config_find(
	struct sl_kube_config *out, const char *path, struct sl_error *err)
{
	return find(out, path, NULL, false, err);
}

int sl_kube_config_choose(struct sl_kube_config *out, const char *path,
	const char *context, struct sl_error *err)
{
	return find(out, path, context, true, err);
}
