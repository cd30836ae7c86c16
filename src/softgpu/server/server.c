/*
 * server - stands for the kernel's part of the driver
 *
 * One thread, one epoll. A client is a connected socket. Its memory is freed when the last copy of
 * that socket is closed, as with the device file of a real GPU. A forked child that keeps the
 * socket open keeps the memory. If the box has a teardown time, a dead client's bytes stay for that
 * time, also in NVML's lists. In any case they stay until the client's companions are gone, since a
 * running kernel still writes to those pages.
 *
 * A client that sends invalid messages, or does not read its reply, is dropped. The server never
 * waits for a client.
 */
#include "softgpu/server/ledger.h"

#include "base/cuda_types.h"

#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/server/server.h"
#include "softgpu/server/internal.h"

/* Pause before accepting connections is tried again. */
#define DOOR_NS 100000000u

struct sl_server sl_server;
static struct sl_server *const s = &sl_server;

static volatile sig_atomic_t stopping;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int sl_server_watch(struct watch *w, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = w};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->fd, &e) < 0 ? -errno : 0;
}

/* Closing alone is not enough. A companion holds a copy of the descriptor until its exec, and while
 * a copy exists epoll goes on reporting the watch, which is freed by then. */
void sl_server_unwatch(struct watch *w)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	close(w->fd);
	w->fd = -1;
}

/* Clients ------------------------------------------------------------------------------------ */

static void client_free(struct client *c)
{
	sl_ledger_holder_fini(&s->ledger, &c->holder);
	sl_list_unlink(&c->link);
	free(c);
}

/* The socket is closed; the memory is freed after its companions are gone and the teardown time is
 * over. */
static void client_drop(struct client *c)
{
	struct sl_link *link;

	sl_server_unwatch(&c->watch);
	sl_server_control_drop(c);
	sl_server_event_drop(c);
	/* They end by themselves once they notice; a stopped one never would. */
	for (link = c->companions.next; link != &c->companions; link = link->next)
		sl_server_companion_kill(SL_LIST_ENTRY(link, struct companion, link));
	if (!s->ledger.config.teardown_ms && sl_list_is_empty(&c->companions)) {
		client_free(c);
		return;
	}
	c->gone_ns = now_ns() + s->ledger.config.teardown_ms * 1000000u;
	sl_list_unlink(&c->link);
	sl_list_push_tail(&s->dying, &c->link);
}

/* Without descriptors no connection can be accepted, and a waiting one would keep epoll awake. So
 * the listening socket is left out for a while. */
static void door_close(void)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->listen.fd, NULL);
	s->door_opens_ns = now_ns() + DOOR_NS;
}

static void door_open(void)
{
	s->door_opens_ns =
		sl_server_watch(&s->listen, EPOLLIN) < 0 ? now_ns() + DOOR_NS : 0;
}

static void client_accept(void)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			door_close();
		return;
	}
	struct client *c = calloc(1, sizeof(*c));
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->watch = (struct watch){KIND_CLIENT, fd};
	c->pid = (uint32_t)peer.pid;
	c->uid = peer.uid;
	c->control = (struct watch){KIND_CONTROL, -1};
	c->is_owner = peer.uid == geteuid() || peer.uid == 0;
	sl_list_init(&c->companions);
	sl_list_init(&c->events);
	sl_ledger_holder_init(&s->ledger, &c->holder);
	sl_list_push_tail(&s->clients, &c->link);
	if (sl_server_watch(&c->watch, EPOLLIN) < 0) {
		close(fd);
		client_free(c);
	}
}

/* Exports ------------------------------------------------------------------------------------ */

static void export_free(struct export *e)
{
	sl_server_unwatch(&e->watch);
	sl_ledger_holder_fini(&s->ledger, &e->holder);
	sl_list_unlink(&e->link);
	free(e);
}

/* Leaves the descriptor to send in *fd. A CUresult. */
static int export_new(struct sl_ledger_handle *handle, int *fd)
{
	struct export *e = calloc(1, sizeof(*e));
	struct stat st;
	int ends[2];

	if (!e || pipe2(ends, O_CLOEXEC) < 0) {
		free(e);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	e->watch = (struct watch){KIND_EXPORT, ends[0]};
	e->id = handle->id;
	sl_ledger_holder_init(&s->ledger, &e->holder);
	sl_list_push_tail(&s->exports, &e->link);
	if (fstat(ends[0], &st) < 0 ||
		sl_ledger_hold(&s->ledger, &e->holder, handle) < 0 ||
		sl_server_watch(&e->watch, 0) < 0) { /* a hang-up is always reported */
		close(ends[1]);
		export_free(e);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	e->dev = st.st_dev;
	e->ino = st.st_ino;
	*fd = ends[1];
	return CUDA_SUCCESS;
}

static struct sl_ledger_handle *export_find(int fd)
{
	struct sl_link *link;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	for (link = s->exports.next; link != &s->exports; link = link->next) {
		struct export *e = SL_LIST_ENTRY(link, struct export, link);
		if (e->dev == st.st_dev && e->ino == st.st_ino)
			return sl_ledger_find(&s->ledger, &e->holder, e->id);
	}
	return NULL;
}

/* Requests ----------------------------------------------------------------------------------- */

static int answer(struct client *c, struct sl_sg_reply *reply,
	struct sl_ledger_handle *handle, const int *fds, unsigned fd_count)
{
	size_t extents = 0;

	if (handle) {
		reply->id = handle->id;
		reply->device = handle->device;
		reply->value = handle->bytes;
		reply->extent_count = handle->extent_count;
		extents = handle->extent_count * sizeof(*handle->extent);
	}
	return sl_sg_send(c->watch.fd, reply, sizeof(*reply),
		handle ? handle->extent : NULL, extents, fds, fd_count);
}

static int do_hello(struct client *c, const struct sl_sg_request *q)
{
	int fds[SL_SG_FDS_MAX];

	if (q->value != SL_SG_VERSION)
		return -EPROTO;
	for (unsigned i = 0; i < s->ledger.config.gpus; i++)
		fds[i] = s->ledger.device[i].memfd;
	return sl_sg_send(c->watch.fd, &s->hello, sizeof(s->hello), NULL, 0, fds,
		(unsigned)s->ledger.config.gpus);
}

static int do_export(
	struct client *c, const struct sl_sg_request *q, struct sl_sg_reply *reply)
{
	struct sl_ledger_handle *handle = sl_ledger_find(&s->ledger, &c->holder, q->id);
	int fd = -1, r;

	reply->result = handle && handle->extent_count ? export_new(handle, &fd)
						       : CUDA_ERROR_INVALID_VALUE;
	r = answer(c, reply, NULL, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return r;
}

/* Makes the client a holder of another's handle. */
static int do_share(
	struct client *c, struct sl_ledger_handle *handle, struct sl_sg_reply *reply)
{
	if (handle && !handle->extent_count)
		handle = NULL;
	if (handle && sl_ledger_hold(&s->ledger, &c->holder, handle) < 0)
		handle = NULL;
	reply->result = handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return answer(c, reply, handle, NULL, 0);
}

/* Tracks a companion until it is gone. Without that it may not run. */
static int companion_watch(struct client *c, pid_t pid, uint32_t device)
{
	struct companion *o = calloc(1, sizeof(*o));

	errno = ENOMEM;
	if (o) {
		o->watch = (struct watch){
			KIND_COMPANION, (int)syscall(SYS_pidfd_open, pid, 0)};
		o->device = device;
		if (o->watch.fd >= 0 && sl_server_watch(&o->watch, EPOLLIN) == 0) {
			sl_list_push_tail(&c->companions, &o->link);
			return 0;
		}
		if (o->watch.fd >= 0) {
			close(o->watch.fd);
			errno = EMFILE;
		}
		free(o);
	}
	if (errno != ESRCH)
		kill(pid, SIGKILL);
	return EMFILE;
}

static void companion_gone(struct companion *o)
{
	sl_server_unwatch(&o->watch);
	sl_list_unlink(&o->link);
	free(o);
}

/* Starts a companion as the server's child: a program must not get children that it did not
 * start. */
static int do_companion(
	struct client *c, uint32_t device, int fd, struct sl_sg_reply *reply)
{
	char number[16], engine[24];
	char *const argv[] = {"sluice-softgpu", "companion", number, engine, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r = EBADF;

	(void)snprintf(number, sizeof(number), "%u", device);
	(void)snprintf(engine, sizeof(engine), "%" PRIu64, s->ledger.config.engine_us);
	if (fd >= 0 && posix_spawn_file_actions_init(&actions) == 0) {
		posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_RDWR, 0);
		posix_spawn_file_actions_adddup2(&actions, fd, 3);
		r = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
		if (r == 0)
			r = companion_watch(c, pid, device);
	}
	reply->result = r ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
	return answer(c, reply, NULL, NULL, 0);
}

static int do_create(
	struct client *c, const struct sl_sg_request *q, struct sl_sg_reply *reply)
{
	struct sl_ledger_handle *handle = NULL;

	reply->result =
		sl_ledger_create(&s->ledger, &c->holder, q->device, q->value, &handle);
	return answer(c, reply, handle, NULL, 0);
}

static int do_figures(struct client *c, const struct sl_sg_request *q)
{
	struct sl_sg_figures *f = &s->figures[q->device];
	size_t bytes = offsetof(struct sl_sg_figures, process);

	if (!s->ledger.config.nvml_lag_ms)
		sl_server_figures_take(now_ns());
	bytes += f->process_count * sizeof(f->process[0]);
	return sl_sg_send(c->watch.fd, f, bytes, NULL, 0, NULL, 0);
}

static int do_event_words(struct client *c, struct sl_sg_reply *reply)
{
	int fd = sl_server_event_memfd();

	reply->result = fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	return answer(c, reply, NULL, &fd, fd >= 0);
}

/* Serves one request. Negative: drop the client. */
static int serve_request(struct client *c, const struct sl_sg_request *q, int fd)
{
	struct sl_sg_reply reply = {.result = CUDA_SUCCESS, .device = q->device};
	struct sl_ledger_handle *handle = NULL;
	bool later = false;

	if (q->device >= s->ledger.config.gpus)
		return -EPROTO;
	switch (q->op) {
	case SL_SG_HELLO: return do_hello(c, q);
	case SL_SG_CREATE: return do_create(c, q, &reply);
	case SL_SG_EXPORT: return do_export(c, q, &reply);
	case SL_SG_IMPORT: return do_share(c, export_find(fd), &reply);
	case SL_SG_OPEN:
		return do_share(c, sl_ledger_find(&s->ledger, NULL, q->id), &reply);
	case SL_SG_FIGURES: return do_figures(c, q);
	case SL_SG_COMPANION: return do_companion(c, q->device, fd, &reply);
	case SL_SG_LOSE:
	case SL_SG_REVIVE:
	case SL_SG_XID:
		/* Other users of a shared box may use it, but not cause events in it. */
		reply.result =
			c->is_owner ? sl_server_health(q) : CUDA_ERROR_NOT_PERMITTED;
		break;
	case SL_SG_EVENT_WORDS: return do_event_words(c, &reply);
	case SL_SG_EVENT_NEW: reply.result = sl_server_event_new(c, &reply); break;
	case SL_SG_EVENT_OPEN:
		reply.result = sl_server_event_open(c, q->id, &reply);
		break;
	case SL_SG_EVENT_CLOSE: reply.result = sl_server_event_close(c, q->id); break;
	case SL_SG_CONTROL:
		reply.result = sl_server_control_new(c, fd, (uint32_t)q->value);
		break;
	case SL_SG_STATE: sl_server_state(q, &reply); break;
	case SL_SG_LOCK:
	case SL_SG_CHECKPOINT:
	case SL_SG_RESTORE:
	case SL_SG_UNLOCK: reply.result = sl_server_order(c, q, &later); break;
	case SL_SG_AWAY: reply.result = sl_ledger_away(&s->ledger, &c->holder); break;
	case SL_SG_BACK: reply.result = sl_server_back(c, q->id); break;
	case SL_SG_EXTENTS:
		handle = sl_ledger_find(&s->ledger, &c->holder, q->id);
		reply.result = handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		break;
	case SL_SG_RELEASE:
		reply.result = sl_ledger_release(&s->ledger, &c->holder, q->id);
		break;
	case SL_SG_HIDE:
		reply.result =
			sl_ledger_hide(&s->ledger, &c->holder, q->device, q->value);
		break;
	case SL_SG_UNHIDE:
		sl_ledger_unhide(&s->ledger, &c->holder, q->device, q->value);
		break;
	case SL_SG_CONTEXT: c->holder.contexts[q->device] += (int32_t)q->value; break;
	case SL_SG_BUSY:
		s->busy_ns[q->device] += q->value;
		c->busy_ns[q->device] += q->value;
		return 0; /* no reply */
	case SL_SG_INFO:
		reply.total_bytes = sl_ledger_capacity(&s->ledger);
		reply.free_bytes = sl_sub_sat(
			reply.total_bytes, sl_ledger_used(&s->ledger, q->device));
		break;
	default: return -EPROTO;
	}
	return later ? 0 : answer(c, &reply, handle, NULL, 0);
}

static void client_read(struct client *c)
{
	struct sl_sg_request q;
	unsigned fds = 1;
	int fd = -1;
	ssize_t n = sl_sg_receive(c->watch.fd, &q, sizeof(q), &fd, &fds);

	if (n == -EAGAIN)
		return;
	if (n != (ssize_t)sizeof(q) || serve_request(c, &q, fd) < 0)
		client_drop(c);
	if (fd >= 0)
		close(fd);
}

/* Life --------------------------------------------------------------------------------------- */

static void on_stop(int signal)
{
	(void)signal;
	stopping = 1;
}

/* Carries out what is due. Returns the milliseconds until the next time, or -1. */
static int step(void)
{
	uint64_t now = now_ns(), next = UINT64_MAX,
		 lag = s->ledger.config.nvml_lag_ms * 1000000u;

	for (struct sl_link *link = s->dying.next, *after; link != &s->dying;
		link = after) {
		struct client *c = SL_LIST_ENTRY(link, struct client, link);

		after = link->next;
		if (c->gone_ns > now)
			next = sl_min_u64(next, c->gone_ns);
		else if (sl_list_is_empty(&c->companions))
			client_free(c);
	}
	sl_server_busy_step(now);
	if (lag && now >= s->figures_ns + lag)
		sl_server_figures_take(now);
	if (lag)
		next = sl_min_u64(next, s->figures_ns + lag);
	if (s->door_opens_ns && now >= s->door_opens_ns)
		door_open();
	if (s->door_opens_ns)
		next = sl_min_u64(next, s->door_opens_ns);
	return next == UINT64_MAX ? -1 : (int)(sl_sub_sat(next, now) / 1000000u) + 1;
}

static void dispatch(struct watch *w)
{
	switch (w->kind) {
	case KIND_LISTEN: client_accept(); break;
	case KIND_KEEP: stopping = 1; break;
	case KIND_CLIENT: client_read((struct client *)w); break;
	case KIND_CONTROL: sl_server_control_read(w); break;
	case KIND_COMPANION: companion_gone((struct companion *)w); break;
	case KIND_EXPORT: export_free((struct export *)w); break;
	}
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	s->listen = (struct watch){KIND_LISTEN,
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	if (s->listen.fd < 0 ||
		bind(s->listen.fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		listen(s->listen.fd, 1024) < 0)
		return -errno;
	return sl_server_watch(&s->listen, EPOLLIN);
}

/* " H100", from the list of models, whose last one repeats; "" without a list. */
static const char *model_of(const char *models, uint32_t gpu, char *buf, size_t size)
{
	buf[0] = '\0';
	for (; models && gpu && strchr(models, ','); gpu--)
		models = strchr(models, ',') + 1;
	if (models)
		snprintf(buf, size, " %.*s", (int)strcspn(models, ","), models);
	return buf;
}

static void fill_hello(const struct sl_softgpu_config *c)
{
	struct sl_sg_hello *h = &s->hello;
	char model[SL_SOFTGPU_MODEL_BYTES + 1];

	h->gpus = c->gpus;
	h->memory_bytes = c->memory_bytes;
	h->reserve_bytes = c->reserve_bytes;
	h->h2d_bytes_per_s = c->h2d_bytes_per_s;
	h->d2h_bytes_per_s = c->d2h_bytes_per_s;
	h->duplex_pct = c->duplex_pct;
	h->pageable_pct = c->pageable_pct;
	h->context_bytes = c->context_bytes;
	h->module_bytes = c->module_bytes;
	h->launch_bytes = c->launch_bytes;
	h->create_us = c->create_us;
	h->map_us = c->map_us;
	h->release_us = c->release_us;
	h->pin_us = c->pin_us;
	h->drop_pins = c->drop_pins;
	h->process_use = c->process_use;
	h->queue_ops = c->queue_ops;
	if (c->faults)
		snprintf(h->faults, sizeof(h->faults), "%s", c->faults);
	for (uint32_t i = 0; i < c->gpus; i++) {
		snprintf(h->device[i].name, sizeof(h->device[i].name),
			"Sluice Software GPU%s",
			model_of(c->models, i, model, sizeof(model)));
		h->device[i].bus = 0x10 + i;
		if (getrandom(h->device[i].uuid, 16, 0) != 16)
			h->device[i].uuid[0] = (unsigned char)i;
		/* Marks a random identifier, as RFC 4122 demands. */
		h->device[i].uuid[6] = (h->device[i].uuid[6] & 0x0f) | 0x40;
		h->device[i].uuid[8] = (h->device[i].uuid[8] & 0x3f) | 0x80;
	}
}

static int start(const struct sl_softgpu_config *config, const char *path, int keep_fd)
{
	struct sigaction stop = {.sa_handler = on_stop}, ignore = {.sa_handler = SIG_IGN};
	struct sigaction no_zombies = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
	struct rlimit files;
	int r;

	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &ignore,
		NULL); /* from the terminal; the box ends with its command */
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGCHLD, &no_zombies, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	sl_list_init(&s->clients);
	sl_list_init(&s->dying);
	sl_list_init(&s->exports);
	s->path = path;
	s->figures = calloc(config->gpus, sizeof(*s->figures));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!s->figures || s->epoll < 0)
		return -ENOMEM;
	r = sl_ledger_init(&s->ledger, config);
	if (r < 0)
		return r;
	s->board = sl_sg_board_map(s->ledger.device[0].memfd, true);
	if (!s->board)
		return -errno;
	fill_hello(&s->ledger.config);
	sl_server_figures_take(now_ns());
	s->keep = (struct watch){KIND_KEEP, keep_fd};
	if (keep_fd >= 0 && sl_server_watch(&s->keep, EPOLLIN) < 0)
		return -errno;
	return listen_at(path);
}

int sl_softgpu_serve(const struct sl_softgpu_config *config, const char *path,
	int keep_fd, int ready_fd)
{
	char directory[108];
	int r = start(config, path, keep_fd);

	if (r < 0) {
		fprintf(stderr, "sluice-softgpu: cannot serve at %s: %s\n", path,
			strerror(-r));
		return 1;
	}
	if (ready_fd >= 0 && write(ready_fd, "r", 1) == 1)
		close(ready_fd);
	while (!stopping) {
		struct epoll_event e;

		/* One at a time: handling one may free another. */
		if (epoll_wait(s->epoll, &e, 1, step()) == 1)
			dispatch(e.data.ptr);
	}
	unlink(path);
	snprintf(directory, sizeof(directory), "%s", path);
	rmdir(dirname(directory)); /* stays if another program put a file into it */
	return 0;
}
