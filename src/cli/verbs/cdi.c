/*
 * sluice cdi: a workload that outlives its containers, and its CDI specification.
 *
 * The workload is a claim, as sluice-kube makes them: it has a socket of its own, and the daemon
 * keeps it until it is removed. sluice-kube ends claims that no pod has; the prefix of the key
 * keeps it from this one. All local checks come before the workload is made.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cdi.h"
#include "base/file.h"
#include "base/library.h"
#include "cli/conn/conn.h"
#include "cli/conn/told.h"
#include "cli/line/cli.h"
#include "cli/line/text.h"
#include "cli/run/contents.h"
#include "cli/run/launch.h"

#define DIR            "/etc/cdi"
#define KIND           "sluice.dev/workload"
#define KEY            "cdi."
#define NAME_MAX_BYTES 59 /* its key has 63 */

struct settings {
	struct sl_launch launch; /* first: its rows are used */
	const char *name, *gpu;
	bool write, remove;
};

const struct sl_option sl_verb_cdi_options[] = {
	SL_OPT(struct sl_launch, request, AMOUNT, "AMOUNT", 0, 0,
		"Guaranteed GPU memory, on each GPU. Default: the limit, or 0."),
	SL_OPT(struct sl_launch, limit, AMOUNT, "AMOUNT", 0, 0,
		"The most its containers may hold together on each GPU. Default: the "
		"request, or all."),
	SL_OPT(struct settings, gpu, STRING, "N", 0, 0,
		"The GPU, as sluice gpus numbers it; several as N,M. Default: one "
		"that the daemon chooses."),
	SL_OPT(struct settings, write, FLAG, NULL, 0, 0,
		"Write the specification as " DIR "/sluice-NAME.json."),
	SL_OPT(struct settings, remove, FLAG, NULL, 0, 0,
		"End the workload, and remove that file."),
	SL_OPT_OPERAND(struct settings, name, "NAME",
		"Name of the workload, and of the device: --device " KIND "=NAME."),
	SL_OPT_END,
};

static int usage(const char *text)
{
	return sl_cli_usage(SL_VERB_cdi, false, text);
}

/* -1 to go on, else the exit status, as below. */
static int check_words(struct settings *s)
{
	if (!s->name)
		return usage("NAME is missing");
	if (!sl_cdi_is_name(s->name) || strlen(s->name) > NAME_MAX_BYTES)
		return sl_cli_fail(SL_VERB_cdi, false, SL_EXIT_USAGE,
			"%.64s cannot be the name of a CDI device: give 1 to %d letters, "
			"digits and -, with no - at the beginning or the end",
			s->name, NAME_MAX_BYTES);
	if (s->remove &&
		(s->write || s->gpu || s->launch.request.kind || s->launch.limit.kind))
		return usage("--remove excludes all other options");
	if (s->gpu && (!s->gpu[0] || s->gpu[strspn(s->gpu, "0123456789,")]))
		return usage("--gpu takes numbers of sluice gpus, such as 0 or 0,1");
	return sl_launch_amounts(SL_VERB_cdi, &s->launch);
}

static int fail_file(const char *doing, const char *path, int error)
{
	return sl_cli_fail(SL_VERB_cdi, false,
		error == EACCES || error == EPERM ? SL_EXIT_DENIED : SL_EXIT_SYSTEM,
		"cannot %s %s: %s%s", doing, path, strerror(error),
		error == ENOENT   ? "; mkdir -p " DIR
		: error == EACCES ? "; run it as root"
				  : "");
}

/* --- the daemon -------------------------------------------------------------------------- */

static int call(const union sl_msg *ask, union sl_msg *reply)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_error err = {0};
	int status = sl_conn_open(&conn, &err);

	if (!status)
		status = sl_conn_call(&conn, ask, SL_MSG_ENTRY_REPLY, reply, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_cdi, false, (enum sl_exit)status, "%s", err.text);
	if (!reply->entry_reply.ok)
		return sl_told_refusal(SL_VERB_cdi, false, reply->entry_reply.reason,
			reply->entry_reply.text, NULL);
	return -1;
}

static void fill(const struct settings *s, union sl_msg *msg)
{
	struct sl_msg_entry_add *add = &msg->entry_add;

	sl_wire_init(msg, SL_MSG_ENTRY_ADD);
	add->request_kind = s->launch.request.kind;
	add->request_value = s->launch.request.value;
	add->limit_kind = s->launch.limit.kind;
	add->limit_value = s->launch.limit.value;
	add->gpu_count = 1;
	add->priority_biased = SL_PRIORITY_BIAS;
	for (const char *c = s->gpu; c && *c; c++)
		add->gpu_count += *c == ',';
	if (s->gpu) {
		add->flags |= SL_RUN_VISIBLE_SET;
		sl_wire_str(add->visible, sizeof(add->visible), s->gpu);
	}
	(void)snprintf(add->key, sizeof(add->key), KEY "%s", s->name);
	sl_wire_str(add->name, sizeof(add->name), s->name);
	sl_wire_str(add->project, sizeof(add->project), s->launch.project);
	(void)snprintf(add->command, sizeof(add->command), "sluice cdi %s", s->name);
}

static bool differs(const struct sl_amount *asked, uint64_t bytes)
{
	return asked->kind == SL_AMOUNT_BYTES && asked->value != bytes;
}

/* A workload that is there already keeps its amounts. */
static void warn(const struct settings *s, struct sl_msg_entry_reply *got)
{
	char request[32], limit[32];

	sl_text_tame(got->name);
	if (!got->text[0] && (differs(&s->launch.request, got->request_bytes) ||
				     differs(&s->launch.limit, got->limit_bytes)))
		(void)snprintf(got->text, sizeof(got->text),
			"%s exists with request %s and limit %s; sluice set %s changes "
			"them",
			s->name,
			sl_bytes_format(got->request_bytes, request, sizeof(request)),
			sl_bytes_format(got->limit_bytes, limit, sizeof(limit)),
			got->name);
	sl_told_warning(SL_VERB_cdi, got->text);
	if (strcmp(got->name, s->name) == 0)
		return;
	(void)snprintf(got->text, sizeof(got->text),
		"another workload is called %s; this one is %s in lists", s->name,
		got->name);
	sl_told_warning(SL_VERB_cdi, got->text);
}

/* --- actions ------------------------------------------------------------------------------ */

static int print(const struct settings *s, const char *path, const char *text,
	const struct sl_msg_entry_reply *got)
{
	char request[32], limit[32];
	int r;

	if (!s->write) {
		puts(text);
		return sl_cli_finish(SL_VERB_cdi, SL_EXIT_OK);
	}
	r = sl_file_replace_as(path, text, strlen(text), 0644, false);
	if (r < 0)
		return fail_file("write", path, -r);
	printf("%s: request %s, limit %s, on GPU %s\n", path,
		sl_bytes_format(got->request_bytes, request, sizeof(request)),
		sl_bytes_format(got->limit_bytes, limit, sizeof(limit)),
		got->visible_out);
	return sl_cli_finish(SL_VERB_cdi, SL_EXIT_OK);
}

static int make(const struct settings *s, const char *path)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char library[SL_PATH_MAX];
	struct sl_contents contents;
	struct sl_error err = {0};
	union sl_msg ask, reply;
	json_t *list;
	int status;

	if (s->write && access(DIR, W_OK) < 0)
		return fail_file("write", path, errno);
	if (sl_library_find(library, sizeof(library), &err))
		return sl_cli_fail(SL_VERB_cdi, false, SL_EXIT_INSTALL, "%s", err.text);
	fill(s, &ask);
	status = call(&ask, &reply);
	if (status >= 0)
		return status;
	warn(s, &reply.entry_reply);
	sl_contents_set(&contents, &reply.entry_reply, library);
	list = json_pack("[o]", sl_cdi_device_json(s->name, &contents.device));
	if (list)
		text = sl_cdi_text(KIND, list);
	if (!text)
		return sl_cli_fail(SL_VERB_cdi, false, SL_EXIT_SYSTEM,
			"the specification needs memory, and absolute paths in "
			"SLUICE_LIBRARY and LD_LIBRARY_PATH");
	return print(s, path, text, &reply.entry_reply);
}

/* The file goes first, so that no container starts meanwhile. */
static int end(const struct settings *s, const char *path)
{
	union sl_msg ask, reply;
	int status;

	if (unlink(path) < 0 && errno != ENOENT)
		return fail_file("remove", path, errno);
	sl_wire_init(&ask, SL_MSG_ENTRY_END);
	(void)snprintf(ask.entry_end.key, sizeof(ask.entry_end.key), KEY "%s", s->name);
	status = call(&ask, &reply);
	return status < 0 ? SL_EXIT_OK : status;
}

int sl_verb_cdi(int argc, char **argv)
{
	struct settings s = {.launch = SL_LAUNCH_PRESET};
	char path[sizeof(DIR "/sluice-.json") + NAME_MAX_BYTES];
	int first, status = sl_cli_parse(SL_VERB_cdi, &s, argc, argv, &first);

	if (status < 0)
		status = check_words(&s);
	if (status >= 0)
		return status;
	(void)snprintf(path, sizeof(path), DIR "/sluice-%s.json", s.name);
	return s.remove ? end(&s, path) : make(&s, path);
}
