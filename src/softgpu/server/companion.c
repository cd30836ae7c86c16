/*
 * companion - runs kernels apart from the program that launches them
 *
 * A kernel is machine code from a shared object. It runs in a separate process, so it cannot harm
 * the program: memory is mapped at the program's addresses, and nothing else of the program is
 * there. A bad access is a signal in the kernel's thread; the handler jumps out of the kernel, and
 * the launch is answered with an error, which sticks to the client's context.
 *
 * The first thread serves the control socket (mapping, loading) and watches the client. Every
 * stream of the client has its own socket and thread, so streams run at the same time. When the
 * client dies the whole process ends, endless kernels included.
 */
#include "softgpu/server/companion.h"

#include "base/cuda_types.h"
#include "softgpu/link/proto.h"
#include "softgpu/server/engine.h"
#include "softgpu/ptx/ptx.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define MODULES_MAX 4096
#define STACK_BYTES \
	(64 * SL_MIB) /* of a kernel thread: SL_SHARED is on it; touched lazily */
#define SIGNAL_BYTES (64 * 1024)
#define THREADS_MAX  1024u /* of a block, if the kernel has no bound */
#define REGISTERS    32u   /* of a thread, likewise */
#define MESSAGE_BYTES \
	(sizeof(struct sl_cp_request) + SL_SG_EXTENTS_MAX * sizeof(struct sl_sg_extent))

struct module {
	void *handle; /* of dlopen */
	int fd; /* kept open: the loader identifies objects by the name made from it */
	const struct sl_host_module *table;
};

static struct companion {
	int memfd[SL_SOFTGPU_GPUS_MAX];
	uint32_t device;
	sl_ns engine; /* its slice; 0: none */
	/* Written by the first thread before the client learns of a module; then only read. */
	struct module module[MODULES_MAX];
} c;

/* Where a kernel thread continues after a signal. */
static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t in_kernel;

static int result_of(int signal)
{
	switch (signal) {
	case SIGSEGV:
	case SIGBUS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case SIGILL: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case SIGABRT: return CUDA_ERROR_ASSERT;
	case SIGSYS: return CUDA_ERROR_MISALIGNED_ADDRESS; /* ptx/prelude.def raises it */
	default: return CUDA_ERROR_LAUNCH_FAILED;
	}
}

static void on_fault(int signal)
{
	if (in_kernel)
		siglongjmp(escape, signal);
	_exit(128 + signal);
}

static void catch_faults(void)
{
	struct sigaction fault = {
		.sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	sigaction(SIGILL, &fault, NULL);
	sigaction(SIGFPE, &fault, NULL);
	sigaction(SIGABRT, &fault, NULL);
	sigaction(SIGSYS, &fault, NULL);
	/* Meant for the program; the companion ends when the program does. */
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGTERM, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
}

/* Kernel threads ----------------------------------------------------------------------------- */

/* Each parameter's place in the packed buffer, by its alignment or else its size. */
static void place_params(const struct sl_kernel_entry *k, uint32_t *at)
{
	uint32_t end = 0;

	for (unsigned i = 0; i < k->param_count; i++) {
		uint32_t n = k->param_bytes[i], align = k->param_align[i];

		if (!align)
			align = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
		at[i] = (uint32_t)sl_round_up(end, align);
		end = at[i] + n;
	}
}

static void run_blocks(const struct sl_kernel_entry *k, const struct sl_cp_launch *l,
	struct sl_kernel_ctx *ctx)
{
	void *params[SL_HOSTMODULE_PARAMS];
	uint32_t at[SL_HOSTMODULE_PARAMS];

	place_params(k, at);
	for (unsigned i = 0; i < k->param_count; i++)
		params[i] = (void *)(l->params + at[i]);
	for (ctx->block[2] = 0; ctx->block[2] < l->grid[2]; ctx->block[2]++)
		for (ctx->block[1] = 0; ctx->block[1] < l->grid[1]; ctx->block[1]++)
			for (ctx->block[0] = 0; ctx->block[0] < l->grid[0];
				ctx->block[0]++) {
				k->run(ctx, params);
				sl_engine_pass();
			}
}

/* Runs the blocks; the number of the signal that ended them, or 0. */
static int run_guarded(const struct sl_kernel_entry *k, const struct sl_cp_launch *l,
	struct sl_kernel_ctx *ctx)
{
	/* The mask is not saved: SA_NODEFER keeps it unchanged, and saving it costs a system call
	 * each time. */
	int signal = sigsetjmp(escape, 0);

	if (!signal) {
		in_kernel = 1;
		run_blocks(k, l, ctx);
	}
	in_kernel = 0;
	return signal;
}

/* Memory for one block at a time; false: out of memory. */
static bool block_memory(const struct sl_kernel_entry *k, const struct sl_cp_launch *l,
	struct sl_kernel_ctx *ctx, char **shared)
{
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

	*shared = malloc(k->shared_bytes + (size_t)l->shared_bytes + 1);
	ctx->shared = *shared ? *shared + k->shared_bytes : NULL;
	ctx->scratch = malloc(k->block_bytes + threads * k->thread_bytes + 1);
	return *shared && ctx->scratch;
}

static int launch(const struct sl_cp_launch *l)
{
	struct sl_kernel_ctx ctx = {.shared_bytes = l->shared_bytes};
	int result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, signal;
	char *shared;

	if (l->module >= MODULES_MAX || !c.module[l->module].table)
		return CUDA_ERROR_INVALID_HANDLE;
	const struct sl_host_module *m = c.module[l->module].table;
	if (l->kernel >= (size_t)(m->kernels_end - m->kernels))
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(ctx.block_dim, l->block, sizeof(ctx.block_dim));
	memcpy(ctx.grid_dim, l->grid, sizeof(ctx.grid_dim));
	if (block_memory(m->kernels[l->kernel], l, &ctx, &shared)) {
		sl_engine_enter();
		signal = run_guarded(m->kernels[l->kernel], l, &ctx);
		sl_engine_leave();
		result = signal ? result_of(signal) : CUDA_SUCCESS;
	}
	free(shared);
	free(ctx.scratch);
	return result;
}

static void *kernel_thread(void *arg)
{
	int socket = (int)(intptr_t)arg;
	stack_t stack = {.ss_sp = malloc(SIGNAL_BYTES), .ss_size = SIGNAL_BYTES};
	struct sl_cp_launch l;

	if (stack.ss_sp)
		sigaltstack(&stack, NULL);
	while (sl_sg_receive(socket, &l, sizeof(l), NULL, NULL) ==
		(ssize_t)SL_CP_LAUNCH_BYTES(&l)) {
		struct sl_cp_reply reply = {.result = launch(&l)};

		if (sl_sg_send(socket, &reply, sizeof(reply), NULL, 0, NULL, 0) < 0)
			break;
	}
	close(socket);
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	return NULL;
}

static int connect_stream(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (fd < 0 || pthread_attr_init(&attr))
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, kernel_thread, (void *)(intptr_t)fd);
	pthread_attr_destroy(&attr);
	if (r)
		close(fd);
	return r ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* Memory ------------------------------------------------------------------------------------- */

static int protection(uint32_t prot)
{
	if (prot == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return PROT_READ | PROT_WRITE;
	return prot == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

/* Takes the whole range first, so a clash with another mapping leaves nothing half done. */
static int take_range(uint64_t address, uint64_t bytes, bool replace)
{
	void *want = (void *)(uintptr_t)address;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	flags |= replace ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	void *got = mmap(want, bytes, PROT_NONE, flags, -1, 0);
	if (got == MAP_FAILED)
		return -errno;
	if (got == want)
		return 0;
	munmap(got, bytes); /* a kernel without MAP_FIXED_NOREPLACE */
	return -EEXIST;
}

static int map_device(const struct sl_cp_request *q, const struct sl_sg_extent *extent)
{
	uint64_t at = q->address, left = q->bytes;

	if (q->device >= SL_SOFTGPU_GPUS_MAX || take_range(at, left, q->value == 1) < 0)
		return CUDA_ERROR_MAP_FAILED;
	for (uint32_t i = 0; i < q->extent_count && left; i++) {
		uint64_t n = sl_min_u64(left, extent[i].count * SL_SG_PAGE);

		if (mmap((void *)(uintptr_t)at, n, protection(q->prot),
			    MAP_SHARED | MAP_FIXED, c.memfd[q->device],
			    (off_t)(extent[i].first * SL_SG_PAGE)) == MAP_FAILED) {
			munmap((void *)(uintptr_t)q->address, q->bytes);
			return CUDA_ERROR_MAP_FAILED;
		}
		at += n;
		left -= n;
	}
	return CUDA_SUCCESS;
}

static int map_fd(const struct sl_cp_request *q, int fd)
{
	if (fd < 0 || take_range(q->address, q->bytes, q->value) < 0)
		return CUDA_ERROR_MAP_FAILED;
	if (mmap((void *)(uintptr_t)q->address, q->bytes, protection(q->prot),
		    MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	return CUDA_SUCCESS;
}

/* Modules ------------------------------------------------------------------------------------ */

/* Turns PTX into a host module; a failure's reason goes into the descriptor of the text. */
static CUresult build_text(int fd, const char *text, int version, int *built)
{
	struct sl_image_log log = {""};
	char *c_text = NULL;
	CUresult r = sl_ptx_translate(text, version, &c_text, &log);

	if (r == CUDA_SUCCESS)
		r = sl_hostcc(c_text, built, &log);
	free(c_text);
	if (r != CUDA_SUCCESS && ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, log.text, strlen(log.text), 0);
	return r;
}

/* A descriptor of the host module in *module: the image itself, or the module made from its
 * text. */
static CUresult host_module(int fd, int version, int *module)
{
	struct stat st;
	CUresult r = CUDA_SUCCESS;
	char start[SELFMAG] = {0}, *text = NULL;
	size_t bytes = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;

	if (bytes && pread(fd, start, sizeof(start), 0) >= 0 &&
		memcmp(start, ELFMAG, SELFMAG) != 0)
		text = calloc(1, bytes + 1);
	if (text && pread(fd, text, bytes, 0) == (ssize_t)bytes)
		r = build_text(fd, text, version, module);
	else
		*module = dup(fd);
	free(text);
	return r;
}

static CUresult open_module(int fd, struct module *m)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	const struct sl_host_module *table = dlsym(handle, SL_HOSTMODULE_SYMBOL);
	if (!table || table->abi != SL_HOSTMODULE_ABI) {
		dlclose(handle);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	*m = (struct module){handle, fd, table};
	return CUDA_SUCCESS;
}

static int load(int fd, int version, struct sl_cp_reply *reply)
{
	const struct sl_host_module *table;
	unsigned i = 0;
	int module = -1;
	CUresult r;

	while (i < MODULES_MAX && c.module[i].handle)
		i++;
	if (fd < 0 || i == MODULES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = host_module(fd, version, &module);
	if (r == CUDA_SUCCESS)
		r = open_module(module, &c.module[i]);
	if (r != CUDA_SUCCESS) {
		if (module >= 0)
			close(module);
		return r;
	}
	table = c.module[i].table;
	reply->value = i;
	reply->kernels = (uint32_t)(table->kernels_end - table->kernels);
	reply->globals = (uint32_t)(table->globals_end - table->globals);
	return CUDA_SUCCESS;
}

static struct module *module_of(const struct sl_cp_request *q)
{
	return q->value < MODULES_MAX && c.module[q->value].handle ? &c.module[q->value]
								   : NULL;
}

static void unload(struct module *m)
{
	dlclose(m->handle);
	close(m->fd);
	*m = (struct module){0};
}

static int describe(const struct sl_cp_request *q, struct sl_cp_symbol *out)
{
	struct module *m = module_of(q);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	if (q->op == SL_CP_KERNEL &&
		q->index < m->table->kernels_end - m->table->kernels) {
		const struct sl_kernel_entry *k = m->table->kernels[q->index];

		snprintf(out->name, sizeof(out->name), "%s", k->name);
		out->param_count = k->param_count;
		memcpy(out->param_bytes, k->param_bytes, sizeof(out->param_bytes));
		place_params(k, out->param_at);
		out->shared_bytes = k->shared_bytes;
		out->local_bytes = k->local_bytes;
		out->max_threads = k->max_threads ? k->max_threads : THREADS_MAX;
		out->registers = k->registers ? k->registers : REGISTERS;
		out->const_bytes = k->const_bytes;
		return CUDA_SUCCESS;
	}
	if (q->op == SL_CP_GLOBAL &&
		q->index < m->table->globals_end - m->table->globals) {
		const struct sl_global_entry *g = m->table->globals[q->index];

		snprintf(out->name, sizeof(out->name), "%s", g->name);
		out->bytes = g->bytes;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

static int set_global(const struct sl_cp_request *q)
{
	struct module *m = module_of(q);

	if (!m || q->index >= m->table->globals_end - m->table->globals)
		return CUDA_ERROR_INVALID_HANDLE;
	*m->table->globals[q->index]->where = (void *)(uintptr_t)q->address;
	for (size_t i = 0, n = (size_t)(m->table->globals_end - m->table->globals);
		q->index + 1 == n && i < n; i++)
		if (m->table->globals[i]->fill)
			m->table->globals[i]->fill();
	return CUDA_SUCCESS;
}

/* Control ------------------------------------------------------------------------------------ */

/* Takes the first descriptor by setting it to -1. */
static int serve_request(struct sl_cp_request *q, const struct sl_sg_extent *extent,
	int *fds, unsigned fd_count, struct sl_cp_symbol *out)
{
	struct module *m = module_of(q);

	switch (q->op) {
	case SL_CP_INIT:
		for (unsigned i = 0; i < fd_count; i++) {
			if (c.memfd[i] >= 0)
				close(c.memfd[i]);
			c.memfd[i] = sl_steal_fd(&fds[i]);
		}
		sl_engine_init(c.memfd[c.device], c.engine);
		return CUDA_SUCCESS;
	case SL_CP_MAP: return map_device(q, extent);
	case SL_CP_MAP_FD: return map_fd(q, fds[0]);
	case SL_CP_UNMAP:
		munmap((void *)(uintptr_t)q->address, q->bytes);
		return CUDA_SUCCESS;
	case SL_CP_LOAD: return load(fds[0], (int)q->value, &out->reply);
	case SL_CP_UNLOAD:
		if (m)
			unload(m);
		return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	case SL_CP_KERNEL:
	case SL_CP_GLOBAL: return describe(q, out);
	case SL_CP_SET_GLOBAL: return set_global(q);
	case SL_CP_CONNECT: return connect_stream(sl_steal_fd(&fds[0]));
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* One message. False at the end of the connection. */
static bool serve_once(int socket)
{
	static union {
		struct sl_cp_request q;
		char bytes[MESSAGE_BYTES];
	} in;
	struct sl_cp_symbol out;
	int fds[SL_SG_FDS_MAX];
	unsigned fd_count = SL_SG_FDS_MAX;

	memset(fds, -1, sizeof(fds));
	memset(&out, 0, sizeof(out));
	ssize_t n = sl_sg_receive(socket, &in, sizeof(in), fds, &fd_count);
	if (n < (ssize_t)sizeof(in.q))
		return false;
	const struct sl_sg_extent *extent =
		(const struct sl_sg_extent *)(in.bytes + sizeof(in.q));
	if (in.q.extent_count > ((size_t)n - sizeof(in.q)) / sizeof(*extent))
		return false;
	out.reply.result = serve_request(&in.q, extent, fds, fd_count, &out);
	for (unsigned i = 0; i < fd_count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return sl_sg_send(socket, &out, sizeof(out), NULL, 0, NULL, 0) == 0;
}

int sl_companion_serve(int socket, uint32_t device, sl_ns engine)
{
	struct pollfd watch[2] = {
		{.fd = socket, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	struct rlimit no_core = {0, 0};
	struct ucred peer;
	socklen_t len = sizeof(peer);

	/* Inherited from the server by mistake. */
	syscall(SYS_close_range, 4u, ~0u, 0u);
	setrlimit(RLIMIT_CORE, &no_core);
	catch_faults();
	memset(c.memfd, -1, sizeof(c.memfd));
	c.device = device < SL_SOFTGPU_GPUS_MAX ? device : 0;
	c.engine = engine;
	/* The socket alone does not suffice: a forked child of the client may keep it open. */
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		watch[1].fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (watch[1].fd < 0 && errno == ESRCH)
		_exit(0); /* the client died before the watch began */
	for (;;) {
		if (poll(watch, 2, -1) < 0 && errno != EINTR)
			break;
		if (watch[1].revents)
			break;
		if (watch[0].revents && !serve_once(socket))
			break;
	}
	_exit(0);
}
