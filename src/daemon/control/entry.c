/*
 * entry - see the header
 */
#include "daemon/control/entry.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/core/fields.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/names.h"
#include "daemon/link/listener.h"
#include "daemon/link/places.h"
#include "daemon/report/events.h"
#include "daemon/state/process.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/container.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

#define SOCKET_NAME  "/sluiced.sock"
#define PRELOAD_NAME "/ld.so.preload"
#define LEAVING      "another workload is leaving its GPUs; try again in a moment"

struct sl_entry {
	struct sl_daemon *daemon;
	uint64_t workload;
	uid_t uid;
	bool is_run;
	char key[SL_ENTRY_KEY_MAX]; /* of a run: RUN_KEY */
	int fd;                     /* -1: not open */
	sd_event_source *io;
};

bool sl_entry_is_key(const char *key)
{
	for (const char *c = key; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.')
			return false;
	}
	return key[0] && key[0] != '.' && strlen(key) < SL_ENTRY_KEY_MAX;
}

const char *sl_entry_key(const struct sl_workload *workload)
{
	return workload->entry ? workload->entry->key : "";
}

/* What the journal keeps of a run. */
#define RUN_KEY "/"

static struct sl_workload *find(struct sl_daemon *daemon, const char *key)
{
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload->is_claimed && strcmp(workload->entry->key, key) == 0)
			return workload;
	}
	return NULL;
}

/* --- folder and socket -------------------------------------------------------------------- */

/* FOLDER, or FOLDER/KEY. 0, or -ENAMETOOLONG (err): the path of its socket would be too long. */
static int folder_path(const struct sl_daemon *daemon, const char *key,
	char path[SL_SOCKET_PATH_MAX], struct sl_error *err)
{
	const char *slash = strrchr(daemon->socket_path, '/');
	int used = snprintf(path, SL_SOCKET_PATH_MAX, "%.*s/entries%s%s",
		(int)(slash - daemon->socket_path), daemon->socket_path,
		key[0] ? "/" : "", key);

	if (used + (int)strlen(SOCKET_NAME) < SL_SOCKET_PATH_MAX)
		return 0;
	sl_error_set(err,
		"the socket of %.64s would have a path of %d bytes, and a Unix socket's "
		"may have %d; start sluiced with a shorter --socket",
		key, used + (int)strlen(SOCKET_NAME), SL_SOCKET_PATH_MAX - 1);
	return sl_err_origin(-ENAMETOOLONG);
}

/* The folder of the entry's socket, or of those of its kind (whole false). */
static int path_of(const struct sl_entry *entry, bool whole,
	char path[SL_SOCKET_PATH_MAX], struct sl_error *err)
{
	int r;

	if (!entry->is_run)
		return folder_path(entry->daemon, whole ? entry->key : "", path, err);
	r = sl_container_folder(
		entry->daemon, entry->uid, whole ? entry->workload : 0, path);
	if (r == 0 && strlen(path) + strlen(SOCKET_NAME) < SL_SOCKET_PATH_MAX)
		return 0;
	sl_error_set(err,
		"the path of a container's socket would be too long for a Unix socket; "
		"start sluiced with a shorter --socket");
	return sl_err_origin(-ENAMETOOLONG);
}

/* Makes a folder of our user, with that mode whatever the umask. */
static int make_folder(const char *path, mode_t mode, struct sl_error *err)
{
	struct stat stat = {0};
	int r = mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;

	if (r == 0 && lstat(path, &stat) < 0)
		r = -errno;
	if (r == 0 && (!S_ISDIR(stat.st_mode) || stat.st_uid != geteuid()))
		r = -EPERM;
	if (r == 0 && chmod(path, mode) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	sl_error_set(err, "cannot make the folder %.200s: %s%s", path, strerror(-r),
		r == -EPERM ? "; it must be a folder of sluiced's user" : "");
	return sl_err_origin(r);
}

/* Lets that user, too, pass through our folder. The folder stays ours: a user who owned it could
 * put a link to elsewhere in it. */
static int let_pass(const char *path, uid_t uid, struct sl_error *err)
{
	struct {
		struct posix_acl_xattr_header head;
		struct posix_acl_xattr_entry rows[5];
	} acl = {
		.head.a_version = htole32(POSIX_ACL_XATTR_VERSION),
		.rows = {{htole16(ACL_USER_OBJ), htole16(7), htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_USER), htole16(ACL_EXECUTE), htole32(uid)},
			{htole16(ACL_GROUP_OBJ), 0, htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_MASK), htole16(ACL_EXECUTE),
				htole32(ACL_UNDEFINED_ID)},
			{htole16(ACL_OTHER), 0, htole32(ACL_UNDEFINED_ID)}},
	};

	if (uid == 0 || uid == geteuid() ||
		setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0)
		return 0;
	sl_error_set(err,
		"cannot open the folder %.200s to user %u: %s; start sluiced with "
		"--socket "
		"in a file system with access control lists, such as /run",
		path, (unsigned int)uid, strerror(errno));
	return sl_err_origin(-errno);
}

/* Runs have one folder more: that of their user, in which only that user finds the others. */
static int make_folders(
	const struct sl_entry *entry, char path[SL_SOCKET_PATH_MAX], struct sl_error *err)
{
	int r = path_of(entry, false, path, err);

	if (r == 0 && entry->is_run) {
		char *slash = strrchr(path, '/');

		*slash = '\0';
		r = make_folder(path, 0711, err);
		*slash = '/';
	}
	if (r == 0)
		r = make_folder(path, 0700, err);
	if (r == 0 && entry->is_run)
		r = let_pass(path, entry->uid, err);
	if (r == 0)
		r = path_of(entry, true, path, err);
	return r == 0 ? make_folder(path, 0755, err) : r;
}

/* The loader of each of the container's programs reads it, whatever their environment is. */
static int write_preload(const char *folder, struct sl_error *err)
{
	static const char text[] = SL_PATHS_CONTAINER_LIBRARY "\n";
	char path[SL_SOCKET_PATH_MAX + sizeof(PRELOAD_NAME)];
	int r;

	(void)snprintf(path, sizeof(path), "%s" PRELOAD_NAME, folder);
	r = sl_file_replace_as(path, text, sizeof(text) - 1, 0644, false);
	if (r < 0)
		sl_error_set(err, "cannot write %.200s: %s", path, strerror(-r));
	return r;
}

static int on_connection(
	sd_event_source *source, int listen_fd, uint32_t events, void *context)
{
	const struct sl_entry *entry = context;

	sl_listener_take(entry->daemon, listen_fd, entry->workload);
	return 0;
}

static int open_socket(struct sl_entry *entry, struct sl_error *err)
{
	struct sl_daemon *daemon = entry->daemon;
	char path[SL_SOCKET_PATH_MAX];
	int r = make_folders(entry, path, err);

	if (r == 0)
		r = write_preload(path, err);
	if (r < 0)
		return r;
	/* path_of() has made sure that it fits. */
	strcat(path, SOCKET_NAME);
	sl_closep(&entry->fd);
	if (unlink(path) < 0 && errno != ENOENT) {
		sl_error_set(err, "cannot remove the stale socket %.200s: %s", path,
			strerror(errno));
		return sl_err_origin(-errno);
	}
	r = sl_listener_bind(path, &entry->fd, err);
	if (r == 0 && chmod(path, 0666) < 0) {
		sl_error_set(err, "cannot open %.200s to its users: %s", path,
			strerror(errno));
		r = sl_err_origin(-errno);
	}
	if (r == 0)
		r = sl_listener_start(
			daemon, path, entry->fd, on_connection, entry, &entry->io, err);
	return r;
}

static void close_socket(struct sl_entry *entry)
{
	char path[SL_SOCKET_PATH_MAX];

	entry->io = sd_event_source_disable_unref(entry->io);
	sl_closep(&entry->fd);
	if (path_of(entry, true, path, NULL) == 0) {
		strcat(path, SOCKET_NAME);
		(void)unlink(path);
	}
}

/* Also removes a folder that an earlier daemon left, of a workload unknown to this one. */
static void remove_folder(char path[SL_SOCKET_PATH_MAX])
{
	static const char *const files[] = {SOCKET_NAME, PRELOAD_NAME};
	size_t size = strlen(path);

	for (size_t i = 0; i < SL_ARRAY_LEN(files); i++) {
		strcpy(path + size, files[i]);
		(void)unlink(path);
	}
	path[size] = '\0';
	if (rmdir(path) < 0 && errno != ENOENT)
		sl_warning("cannot remove %s: %s", path, strerror(errno));
}

void sl_entry_close(struct sl_workload *workload)
{
	if (!workload->entry)
		return;
	close_socket(workload->entry);
	free(workload->entry);
	workload->entry = NULL;
	workload->is_claimed = false;
}

void sl_entry_over(struct sl_workload *workload)
{
	char path[SL_SOCKET_PATH_MAX];
	bool is_run = workload->entry && workload->entry->is_run &&
		      path_of(workload->entry, true, path, NULL) == 0;

	sl_entry_close(workload);
	if (is_run)
		remove_folder(path);
}

/* A key that cannot be a claim's is a run's. */
static struct sl_entry *entry_new(
	struct sl_daemon *daemon, struct sl_workload *workload, const char *key)
{
	struct sl_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->daemon = daemon;
	entry->workload = workload->id;
	entry->uid = workload->uid;
	entry->is_run = !sl_entry_is_key(key);
	entry->fd = -1;
	sl_wire_str(entry->key, sizeof(entry->key), key);
	workload->entry = entry;
	workload->is_contained = true;
	workload->is_claimed = !entry->is_run;
	return entry;
}

/* --- after a start ------------------------------------------------------------------------ */

int sl_entry_recover(
	struct sl_daemon *daemon, struct sl_workload *workload, const char *key)
{
	return entry_new(daemon, workload, key) ? 0 : sl_err_origin(-ENOMEM);
}

void sl_entry_open_all(struct sl_daemon *daemon)
{
	sl_list_foreach (link, &daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);
		struct sl_error err = {0};

		if (workload->entry && workload->entry->fd < 0 &&
			open_socket(workload->entry, &err) < 0)
			sl_warning("processes of workload %" PRIu64
				   " (%s) cannot come back: %s",
				workload->id, workload->name, err.text);
	}
}

/* --- ENTRY_ADD ---------------------------------------------------------------------------- */

/* Why there is no workload. */
struct refusal {
	struct sl_error text;
	uint32_t reason; /* the node's, or SL_REASON_NONE */
	bool leaving;    /* a guest is leaving its GPUs */
};

static void answer(struct sl_peer *peer, const struct sl_workload *workload,
	const struct refusal *refusal, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ENTRY_REPLY);
	msg.entry_reply.ok = workload != NULL;
	if (refusal) {
		msg.entry_reply.reason = refusal->reason;
		msg.entry_reply.leaving = refusal->leaving;
	}
	sl_wire_str(msg.entry_reply.text, sizeof(msg.entry_reply.text), text);
	if (workload) {
		char folder[SL_SOCKET_PATH_MAX];

		msg.entry_reply.workload = workload->id;
		msg.entry_reply.reach = workload->reach;
		msg.entry_reply.request_bytes = workload->request_bytes;
		msg.entry_reply.limit_bytes = workload->limit_bytes;
		memcpy(msg.entry_reply.name, workload->name,
			sizeof(msg.entry_reply.name));
		if (path_of(workload->entry, true, folder, NULL) == 0)
			sl_wire_str(msg.entry_reply.folder,
				sizeof(msg.entry_reply.folder), folder);
		sl_workload_visible(peer->daemon, workload, msg.entry_reply.visible_out,
			sizeof(msg.entry_reply.visible_out));
	}
	sl_peer_send(peer, &msg);
}

/* Only root and the daemon's own user may, and not with a token of the page. */
static bool may(struct sl_peer *peer)
{
	if ((peer->uid == 0 || peer->uid == geteuid()) && !peer->who)
		return true;
	sl_peer_reject(peer, SL_REJECT_DENIED,
		"a workload with its own socket is made and ended by root or by "
		"sluiced's "
		"user, and this is user %u",
		(unsigned int)peer->uid);
	return false;
}

static void fill(struct sl_daemon *daemon, const struct sl_msg_entry_add *add, uid_t uid,
	struct sl_workload *workload)
{
	struct sl_error taken = {0};

	workload->uid = uid;
	workload->request = (struct sl_amount){
		.kind = add->request_kind, .value = add->request_value};
	workload->limit =
		(struct sl_amount){.kind = add->limit_kind, .value = add->limit_value};
	workload->priority =
		(int32_t)((int64_t)add->priority_biased - (int64_t)SL_PRIORITY_BIAS);
	workload->flags = sl_workload_flags(daemon, add->flags);
	workload->compute.request_pm = add->compute_request_pm;
	workload->compute.limit_pm = add->compute_limit_pm;
	workload->wait_max = (sl_ns)add->longest_wait_ms * SL_MS;
	workload->warm_after = daemon->config.warm_after;
	workload->detach_after = daemon->config.detach_after;
	workload->idle_grace = daemon->config.idle_grace;
	sl_wire_str(workload->project, sizeof(workload->project), add->project);
	sl_wire_str(workload->command, sizeof(workload->command), add->command);
	sl_field_tame(workload->command);
	if (add->name[0] && sl_jobs_name_is_free(daemon, uid, add->name, 1, &taken))
		sl_wire_str(workload->name, sizeof(workload->name), add->name);
	else
		sl_field_make_name(add->name, "", workload->id, workload->name);
}

/* Guests in the way go home first. */
static void find_guests(struct sl_daemon *daemon, uint32_t gpus, struct refusal *refusal)
{
	if (refusal->reason == SL_REASON_REQUESTS_TAKEN ||
		refusal->reason == SL_REASON_COMPUTE_TAKEN ||
		refusal->reason == SL_REASON_CONTEXTS_FULL)
		refusal->leaving = sl_jobs_clear(daemon, gpus, &refusal->text);
	if (refusal->leaving)
		sl_error_set(&refusal->text, LEAVING);
}

static bool propose(struct sl_daemon *daemon, const struct sl_msg_entry_add *add,
	struct sl_workload *workload, struct refusal *refusal)
{
	bool masked = add->flags & SL_RUN_VISIBLE_SET;
	uint32_t gpus = sl_inventory_usable(daemon, masked ? add->visible : NULL);
	struct sl_event event = sl_workload_event(workload, add->gpu_count, gpus);

	if (!sl_workload_propose(daemon, &event)) {
		refusal->reason = daemon->admission.reason;
		sl_refusal_text(
			daemon, workload, add->gpu_count, gpus, masked, &refusal->text);
		if (masked)
			find_guests(daemon, gpus, refusal);
		return false;
	}
	workload->request_bytes = daemon->admission.request_bytes;
	workload->limit_bytes = daemon->admission.limit_bytes;
	sl_workload_bind(daemon, workload, daemon->admission.gpu_mask);
	if (add->flags & SL_ENTRY_REACHES && sl_jobs_moves_any(daemon))
		workload->reach = sl_jobs_reach(daemon, daemon->admission.gpu_mask);
	return true;
}

/* A guest gives its request up before its memory has left. */
static bool is_being_left(struct sl_daemon *daemon, const struct sl_msg_entry_add *add)
{
	return add->flags & SL_RUN_VISIBLE_SET &&
	       sl_jobs_leaves(daemon, sl_inventory_usable(daemon, add->visible));
}

/* NULL: refused. */
static struct sl_workload *make(
	struct sl_peer *peer, const struct sl_msg_entry_add *add, struct refusal *refusal)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_workload *workload = sl_workload_new(daemon, daemon->next_workload++);
	struct sl_entry *entry = workload ? entry_new(daemon, workload, add->key) : NULL;

	if (!entry) {
		sl_error_set(&refusal->text, "sluiced is out of memory; try again");
		if (workload)
			sl_workload_discard(daemon, workload);
		return NULL;
	}
	fill(daemon, add, peer->uid, workload);
	if (!propose(daemon, add, workload, refusal)) {
		sl_workload_discard(daemon, workload);
		return NULL;
	}
	if (open_socket(entry, &refusal->text) < 0) {
		sl_workload_dismiss(daemon, workload);
		return NULL;
	}
	sl_info("workload %" PRIu64 " (%s) has its own socket, %s", workload->id,
		workload->name, add->key);
	sl_events_add(daemon, &(struct sl_node_because){.reason = SL_REASON_STARTED,
				      .workload = workload->id});
	sl_jobs_claims_changed(daemon);
	return workload;
}

static const char *mistake_of(const struct sl_msg_entry_add *add)
{
	struct sl_msg_run run = {.request_kind = add->request_kind,
		.limit_kind = add->limit_kind,
		.request_value = add->request_value,
		.limit_value = add->limit_value,
		.gpu_count = add->gpu_count,
		.priority_biased = add->priority_biased,
		.compute_request_pm = add->compute_request_pm,
		.compute_limit_pm = add->compute_limit_pm,
		.flags = add->flags};

	memcpy(run.name, add->name, sizeof(run.name));
	memcpy(run.project, add->project, sizeof(run.project));
	if (!sl_entry_is_key(add->key))
		return "the key must be 1 to 63 letters, digits, - and ., and not begin "
		       "with a .";
	return sl_field_mistake(&run);
}

/* Was the workload given these GPUs, and has it an open socket? Amounts may have changed since. */
static bool is_same(struct sl_daemon *daemon, const struct sl_msg_entry_add *add,
	const struct sl_workload *workload, struct sl_error *err)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < workload->gpu_count; i++)
		gpus |= 1u << workload->first[i];
	if (add->flags & SL_RUN_VISIBLE_SET &&
		(sl_inventory_usable(daemon, add->visible) | gpus) != gpus) {
		sl_error_set(err, "%s is on other GPUs; end it first", workload->name);
		return false;
	}
	return workload->entry->io || open_socket(workload->entry, err) == 0;
}

static struct sl_workload *find_or_make(
	struct sl_peer *peer, const struct sl_msg_entry_add *add, struct refusal *refusal)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *mistake = mistake_of(add);
	struct sl_workload *workload = mistake ? NULL : find(daemon, add->key);

	if (mistake)
		sl_error_set(&refusal->text, "%s", mistake);
	else if (workload)
		return is_same(daemon, add, workload, &refusal->text) ? workload : NULL;
	else if (sl_places_workloads_full(daemon, peer->uid))
		sl_error_set(&refusal->text,
			"no place for another workload; end some (sluice ps), or raise "
			"max_clients in sluiced's configuration");
	else if (!(refusal->leaving = is_being_left(daemon, add)))
		return make(peer, add, refusal);
	else
		sl_error_set(&refusal->text, LEAVING);
	return NULL;
}

void sl_entry_add(struct sl_peer *peer, const struct sl_msg_entry_add *add)
{
	struct refusal refusal = {.reason = SL_REASON_NONE};
	struct sl_workload *workload;
	struct sl_error text = {0};

	if (!may(peer))
		return;
	workload = find_or_make(peer, add, &refusal);
	if (!workload) {
		answer(peer, NULL, &refusal, refusal.text.text);
		return;
	}
	sl_peer_hold(peer);
	sl_commit_soon(peer->daemon);
	sl_refusal_add_cut(workload, &text);
	answer(peer, workload, NULL, text.text);
}

/* --- ENTRY_OPEN --------------------------------------------------------------------------- */

void sl_entry_open(struct sl_peer *peer, const struct sl_msg_entry_open *open)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_workload *workload = sl_map_get(&daemon->workloads, open->workload);
	struct sl_error text = {0};

	if (!workload || !workload->root || workload->root->pid != peer->pid ||
		workload->has_shim || workload->entry) {
		answer(peer, NULL, NULL,
			"only the process that got this workload by RUN can give it a "
			"socket of its own");
		return;
	}
	if (!entry_new(daemon, workload, RUN_KEY)) {
		answer(peer, NULL, NULL, "sluiced is out of memory; try again");
		return;
	}
	if (open_socket(workload->entry, &text) < 0) {
		sl_entry_close(workload);
		answer(peer, NULL, NULL, text.text);
		return;
	}
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	answer(peer, workload, NULL, "");
}

/* --- ENTRY_END ---------------------------------------------------------------------------- */

void sl_entry_end(struct sl_peer *peer, const struct sl_msg_entry_end *end)
{
	struct sl_daemon *daemon = peer->daemon;
	char path[SL_SOCKET_PATH_MAX];
	struct sl_workload *workload;
	union sl_msg msg;

	if (!may(peer))
		return;
	workload = sl_entry_is_key(end->key) ? find(daemon, end->key) : NULL;
	if (workload)
		sl_entry_close(workload);
	if (sl_entry_is_key(end->key) && folder_path(daemon, end->key, path, NULL) == 0)
		remove_folder(path);
	if (workload) {
		sl_workload_check_end(daemon, workload);
		sl_peer_hold(peer);
		sl_commit_soon(daemon);
	}
	sl_wire_init(&msg, SL_MSG_ENTRY_REPLY);
	msg.entry_reply.ok = 1;
	sl_peer_send(peer, &msg);
}

/* --- LIST --------------------------------------------------------------------------------- */

bool sl_entry_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	for (const struct sl_link *link = daemon->workload_list.next;
		link != &daemon->workload_list; link = link->next) {
		const struct sl_workload *workload =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_workload, link);
		uint32_t clients = 0;

		if (!workload->is_claimed || workload->id < list->workload)
			continue;
		list->workload = workload->id + 1;
		sl_list_foreach (at, &workload->clients)
			clients++;
		sl_wire_init(msg, SL_MSG_ENTRY_ROW);
		msg->entry_row.workload = workload->id;
		msg->entry_row.clients = clients;
		memcpy(msg->entry_row.key, workload->entry->key,
			sizeof(msg->entry_row.key));
		memcpy(msg->entry_row.name, workload->name, sizeof(msg->entry_row.name));
		return true;
	}
	return false;
}
