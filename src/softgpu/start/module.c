/*
 * module - host modules: loading, functions, variables
 *
 * An image is an ELF shared object for this machine (base/hostmodule.h). It goes to the device's
 * companion in a memfd and is opened there; this process never runs any of it. PTX goes there
 * unchanged and becomes a host module (ptx/). Anything else (a GPU's own code) is refused, as a
 * driver refuses code for another GPU. A library is a module that is loaded into the current
 * context.
 */
#include "softgpu/driver/api.h"
#include "softgpu/memory/space.h"
#include "softgpu/ptx/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#else
#define ELF_MACHINE EM_AARCH64
#endif
#define IMAGE_MAX (1024 * SL_MIB)

struct CUlib_st {
	struct sl_object o;
	CUmodule module;
};
/* A kernel of a library is its function, under another type. */

/*
 * Size of the image, or 0 with the reason in *why. For an image in memory only its own headers tell
 * the size. A file has `limit` bytes, and no header may point beyond them.
 */
static uint64_t image_bytes(
	const void *image, uint64_t limit, CUresult *why, struct sl_image_log *log)
{
	const Elf64_Ehdr *h = image;
	uint64_t end = 0;

	*why = CUDA_ERROR_INVALID_IMAGE;
	if (sl_image_is_ptx(image))
		return strlen(image);
	*why = sl_image_refuse(image, log);
	if (*why != CUDA_SUCCESS)
		return 0;
	*why = CUDA_ERROR_INVALID_IMAGE;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != ELF_MACHINE ||
		h->e_type != ET_DYN) {
		*why = CUDA_ERROR_NO_BINARY_FOR_GPU;
		return 0;
	}
	if (h->e_phoff > limit ||
		(uint64_t)h->e_phnum * h->e_phentsize > limit - h->e_phoff ||
		h->e_phentsize < sizeof(Elf64_Phdr))
		return 0;
	end = h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		const Elf64_Phdr *p =
			(const Elf64_Phdr *)((const char *)image + h->e_phoff +
					     (uint64_t)i * h->e_phentsize);

		end = sl_max_u64(end, p->p_offset + p->p_filesz);
	}
	return end < IMAGE_MAX ? end : 0;
}

static int image_fd(const void *image, uint64_t bytes)
{
	int fd = memfd_create("sluice-softgpu-module", MFD_CLOEXEC);
	const char *at = image;

	while (fd >= 0 && bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			close(fd);
			return -1;
		}
		at += n;
		bytes -= (uint64_t)n;
	}
	return fd;
}

/* Loading ------------------------------------------------------------------------------------- */

static CUresult ask(CUmodule m, enum sl_cp_op op, uint32_t index, uint64_t address,
	struct sl_cp_symbol *out)
{
	struct sl_cp_request q = {
		.op = op, .index = index, .value = m->remote, .address = address};

	return sl_companion_call(m->ctx->device, &q, NULL, -1, out);
}

static CUresult read_functions(CUmodule m)
{
	struct sl_cp_symbol s;
	CUresult r = CUDA_SUCCESS;

	m->functions = calloc(m->kernel_count + 1, sizeof(*m->functions));
	if (!m->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < m->kernel_count && r == CUDA_SUCCESS; i++) {
		CUfunction f = sl_object_new(SL_MAGIC_FUNC, sizeof(*f));

		if (!f)
			return CUDA_ERROR_OUT_OF_MEMORY;
		m->functions[i] = f;
		f->module = m;
		r = ask(m, SL_CP_KERNEL, i, 0, &s);
		if (r != CUDA_SUCCESS)
			break;
		memcpy(f->info.name, s.name, sizeof(f->info.name));
		f->info.index = i;
		f->info.param_count = s.param_count;
		memcpy(f->info.param_bytes, s.param_bytes, sizeof(f->info.param_bytes));
		memcpy(f->info.param_at, s.param_at, sizeof(f->info.param_at));
		f->info.shared_bytes = s.shared_bytes;
		f->info.local_bytes = s.local_bytes;
		f->info.max_threads = s.max_threads;
		f->info.registers = s.registers;
		f->info.const_bytes = s.const_bytes;
	}
	return r;
}

/* Synchronous: no other call knows the memory yet, and no stream should wait for a module. */
static bool zero_out(CUdevice device, uint64_t address, uint64_t bytes)
{
	while (bytes) {
		uint64_t n = bytes;
		struct sl_phys *phys;
		char *where;

		if (!sl_space_pin(address, device, true, &n, &where, &phys))
			return false;
		memset(where, 0, n);
		sl_space_unpin(phys);
		address += n;
		bytes -= n;
	}
	return true;
}

/* The module's variables lie in one block of device memory, zeroed, 256 bytes apart. */
static CUresult place_globals(CUmodule m)
{
	struct sl_cp_symbol s;
	uint64_t bytes = 0;
	CUresult r = CUDA_SUCCESS;

	if (!m->global_count)
		return r;
	m->globals = calloc(m->global_count, sizeof(*m->globals));
	if (!m->globals)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < m->global_count && r == CUDA_SUCCESS; i++) {
		r = ask(m, SL_CP_GLOBAL, i, 0, &s);
		memcpy(m->globals[i].name, s.name, sizeof(s.name));
		m->globals[i].bytes = s.bytes;
		m->globals[i].address = bytes;
		bytes = sl_round_up(bytes + s.bytes, 256);
	}
	if (r == CUDA_SUCCESS)
		r = sl_space_alloc(m->ctx, bytes, SL_BLOCK_DEVICE, &m->global_block);
	if (r != CUDA_SUCCESS)
		return r;
	if (!zero_out(m->ctx->device, m->global_block, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < m->global_count && r == CUDA_SUCCESS; i++) {
		m->globals[i].address += m->global_block;
		r = ask(m, SL_CP_SET_GLOBAL, i, m->globals[i].address, &s);
	}
	return r;
}

static void module_free(CUmodule m)
{
	struct sl_cp_symbol ignored;

	sl_object_kill(m);
	for (uint32_t i = 0; m->functions && i < m->kernel_count; i++)
		if (m->functions[i]) {
			sl_object_kill(m->functions[i]);
			sl_object_unref(m->functions[i]);
		}
	free(m->functions);
	free(m->globals);
	if (m->global_block)
		(void)!sl_space_free(m->global_block);
	(void)!ask(m, SL_CP_UNLOAD, 0, 0, &ignored);
	sl_link_unhide(m->ctx->device, sl_drv.hello.module_bytes);
	m->functions = NULL;
	m->globals = NULL;
	sl_object_unref(m);
}

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_link modules = SL_LIST_INIT(modules);

/* The companion wrote its log in place of a refused image. */
static void read_log(int fd, struct sl_image_log *log)
{
	ssize_t n = pread(fd, log->text, sizeof(log->text) - 1, 0);

	log->text[n > 0 ? n : 0] = '\0';
}

static CUresult load_fd(CUcontext ctx, int fd, struct sl_image_log *log, CUmodule *out)
{
	struct sl_cp_request q = {
		.op = SL_CP_LOAD, .value = (uint64_t)sl_softgpu_cuda_version()};
	struct sl_cp_symbol s;
	CUmodule m = NULL;
	CUresult r = sl_companion_start(ctx->device);

	if (r == CUDA_SUCCESS)
		r = sl_link_hide(ctx->device, sl_drv.hello.module_bytes);
	if (r != CUDA_SUCCESS)
		return r;
	r = sl_companion_call(ctx->device, &q, NULL, fd, &s);
	if (r == CUDA_SUCCESS && !(m = sl_object_new(SL_MAGIC_MODULE, sizeof(*m))))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!m) {
		sl_link_unhide(ctx->device, sl_drv.hello.module_bytes);
		read_log(fd, log);
		return r;
	}
	m->ctx = ctx;
	m->remote = s.reply.value;
	m->kernel_count = s.reply.kernels;
	m->global_count = s.reply.globals;
	r = read_functions(m);
	if (r == CUDA_SUCCESS)
		r = place_globals(m);
	if (r != CUDA_SUCCESS) {
		module_free(m);
		return r;
	}
	pthread_mutex_lock(&list_lock);
	sl_list_push_tail(&modules, &m->o.link);
	pthread_mutex_unlock(&list_lock);
	*out = m;
	return r;
}

/* The program's requests to the compiler. Sizes are returned in place. */
struct jit {
	unsigned count;
	CUjit_option *options;
	void **values;
};

static const struct jit no_jit;

static void **jit_slot(const struct jit *jit, CUjit_option option)
{
	for (unsigned i = 0; i < jit->count; i++)
		if (jit->options[i] == option)
			return &jit->values[i];
	return NULL;
}

/* size: the buffer's size before, the bytes filled after. */
static void fill_log(
	const struct jit *jit, CUjit_option buffer, CUjit_option size, const char *text)
{
	void **at = jit_slot(jit, buffer), **bytes = jit_slot(jit, size);
	size_t room = bytes ? (uint32_t)(uintptr_t)*bytes : 0, n = strlen(text);

	if (!bytes)
		return;
	n = room ? sl_min_u64(n, room - 1) : 0;
	if (at && *at && room) {
		memcpy(*at, text, n);
		((char *)*at)[n] = '\0';
	}
	*bytes = (void *)(uintptr_t)n;
}

static void fill_jit(
	const struct jit *jit, const struct sl_image_log *log, uint64_t start_ns)
{
	void **wall = jit_slot(jit, CU_JIT_WALL_TIME);
	float ms = (float)(sl_drv_now_ns() - start_ns) / 1e6f;

	fill_log(jit, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		log->text);
	fill_log(jit, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
	if (wall)
		memcpy(wall, &ms, sizeof(ms));
}

static CUresult load_bytes(
	const void *image, uint64_t limit, struct sl_image_log *log, CUmodule *out)
{
	CUresult r;
	uint64_t bytes = image_bytes(image, limit, &r, log);
	int fd;

	if (!bytes || bytes > limit)
		return r;
	fd = image_fd(image, bytes);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	r = load_fd(sl_ctx_current(), fd, log, out);
	close(fd);
	return r;
}

static CUresult load_image(const void *image, const struct jit *jit, CUmodule *out)
{
	struct sl_image_log log = {""};
	uint64_t start_ns = sl_drv_now_ns();
	CUresult r;

	CHECK_OUT(out && image);
	if (jit->count && (!jit->options || !jit->values))
		return CUDA_ERROR_INVALID_VALUE;
	r = load_bytes(image, UINT64_MAX, &log, out);
	fill_jit(jit, &log, start_ns);
	return r;
}

static CUresult load_file(const char *path, const struct jit *jit, CUmodule *out)
{
	struct sl_image_log log = {""};
	uint64_t start_ns = sl_drv_now_ns();
	struct stat st;
	CUresult r = CUDA_ERROR_INVALID_IMAGE;
	int fd;

	CHECK_OUT(out && path);
	if (jit->count && (!jit->options || !jit->values))
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		size_t bytes = (size_t)st.st_size;
		/* One byte more: the file may be text, and is read as a string. */
		char *image = calloc(1, sl_max_u64(bytes + 1, sizeof(Elf64_Ehdr)));

		if (!image)
			r = CUDA_ERROR_OUT_OF_MEMORY;
		else if (read(fd, image, bytes) == (ssize_t)bytes)
			r = load_bytes(image, bytes, &log, out);
		free(image);
	}
	close(fd);
	fill_jit(jit, &log, start_ns);
	return r;
}

void sl_module_drop_context(CUcontext ctx)
{
	for (;;) {
		CUmodule found = NULL;

		pthread_mutex_lock(&list_lock);
		sl_list_foreach (link, &modules) {
			CUmodule m = SL_LIST_ENTRY(link, struct CUmod_st, o.link);

			if (m->ctx == ctx) {
				found = m;
				break;
			}
		}
		if (found)
			sl_list_unlink(&found->o.link);
		pthread_mutex_unlock(&list_lock);
		if (!found)
			return;
		module_free(found);
	}
}

static CUresult unload(CUmodule m)
{
	CUresult r = sl_ctx_sync(m->ctx);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&list_lock);
	sl_list_unlink(&m->o.link);
	pthread_mutex_unlock(&list_lock);
	module_free(m);
	return CUDA_SUCCESS;
}

/* Entry points: modules ----------------------------------------------------------------------- */

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	SL_ENTER(cuModuleLoad);
	return load_file(path, &no_jit, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SL_ENTER(cuModuleLoadData);
	return load_image(image, &no_jit, module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
	unsigned int option_count, CUjit_option *options, void **values)
{
	SL_ENTER(cuModuleLoadDataEx);
	return load_image(image, &(struct jit){option_count, options, values}, module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	SL_ENTER(cuModuleLoadFatBinary);
	return load_image(image, &no_jit, module);
}

CUresult cuModuleUnload(CUmodule module)
{
	SL_ENTER(cuModuleUnload);
	if (!sl_object_is(module, SL_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return unload(module);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SL_ENTER(cuModuleGetLoadingMode);
	CHECK_OUT(mode);
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

static CUresult find_function(CUmodule m, const char *name, CUfunction *out)
{
	for (uint32_t i = 0; i < m->kernel_count; i++)
		if (!strcmp(m->functions[i]->info.name, name)) {
			*out = m->functions[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	SL_ENTER(cuModuleGetFunction);
	CHECK_OUT(function && name);
	if (!sl_object_is(module, SL_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return find_function(module, name, function);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
	SL_ENTER(cuModuleGetFunctionCount);
	CHECK_OUT(count);
	if (!sl_object_is(module, SL_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = module->kernel_count;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int count, CUmodule module)
{
	SL_ENTER(cuModuleEnumerateFunctions);
	CHECK_OUT(functions);
	if (!sl_object_is(module, SL_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < count && i < module->kernel_count; i++)
		functions[i] = module->functions[i];
	return CUDA_SUCCESS;
}

static CUresult find_global(CUmodule m, const char *name, CUdeviceptr *ptr, size_t *bytes)
{
	for (uint32_t i = 0; i < m->global_count; i++)
		if (!strcmp(m->globals[i].name, name)) {
			if (ptr)
				*ptr = m->globals[i].address;
			if (bytes)
				*bytes = m->globals[i].bytes;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	SL_ENTER(cuModuleGetGlobal_v2);
	CHECK_OUT(name);
	if (!sl_object_is(module, SL_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return find_global(module, name, ptr, bytes);
}

/* Entry points: libraries --------------------------------------------------------------------- */

static CUresult library(CUlibrary *out, CUmodule m)
{
	CUlibrary l = sl_object_new(SL_MAGIC_LIB, sizeof(*l));

	if (!l) {
		(void)!unload(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	l->module = m;
	m->library = l;
	*out = l;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit_options,
	void **jit_values, unsigned int jit_count, CUlibraryOption *options,
	void **values, unsigned int count)
{
	CUmodule m;
	CUresult r;

	SL_ENTER(cuLibraryLoadData);
	(void)options, (void)values, (void)count;
	CHECK_OUT(out);
	r = load_image(code, &(struct jit){jit_count, jit_options, jit_values}, &m);
	return r == CUDA_SUCCESS ? library(out, m) : r;
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path,
	CUjit_option *jit_options, void **jit_values, unsigned int jit_count,
	CUlibraryOption *options, void **values, unsigned int count)
{
	CUmodule m;
	CUresult r;

	SL_ENTER(cuLibraryLoadFromFile);
	(void)options, (void)values, (void)count;
	CHECK_OUT(out);
	r = load_file(path, &(struct jit){jit_count, jit_options, jit_values}, &m);
	return r == CUDA_SUCCESS ? library(out, m) : r;
}

static bool library_ok(CUlibrary l)
{
	return sl_object_is(l, SL_MAGIC_LIB) && sl_object_is(l->module, SL_MAGIC_MODULE);
}

CUresult cuLibraryUnload(CUlibrary l)
{
	SL_ENTER(cuLibraryUnload);
	if (!sl_object_is(l, SL_MAGIC_LIB) || !sl_object_kill(l))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sl_object_is(l->module, SL_MAGIC_MODULE))
		(void)!unload(l->module);
	sl_object_unref(l);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary l, const char *name)
{
	SL_ENTER(cuLibraryGetKernel);
	CHECK_OUT(kernel && name);
	if (!library_ok(l))
		return CUDA_ERROR_INVALID_HANDLE;
	return find_function(l->module, name, (CUfunction *)kernel);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary l)
{
	SL_ENTER(cuLibraryGetKernelCount);
	CHECK_OUT(count);
	if (!library_ok(l))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = l->module->kernel_count;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary l)
{
	SL_ENTER(cuLibraryEnumerateKernels);
	CHECK_OUT(kernels);
	if (!library_ok(l))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < count && i < l->module->kernel_count; i++)
		kernels[i] = (CUkernel)l->module->functions[i];
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary l)
{
	SL_ENTER(cuLibraryGetModule);
	CHECK_OUT(module);
	if (!library_ok(l))
		return CUDA_ERROR_INVALID_HANDLE;
	*module = l->module;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(
	CUdeviceptr *ptr, size_t *bytes, CUlibrary l, const char *name)
{
	SL_ENTER(cuLibraryGetGlobal);
	CHECK_OUT(name);
	if (!library_ok(l))
		return CUDA_ERROR_INVALID_HANDLE;
	return find_global(l->module, name, ptr, bytes);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	SL_ENTER(cuKernelGetFunction);
	CHECK_OUT(function);
	if (!sl_object_is(kernel, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	SL_ENTER(cuKernelGetName);
	CHECK_OUT(name && kernel);
	if (!sl_object_is(kernel, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = ((CUfunction)kernel)->info.name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	CUmodule m;

	SL_ENTER(cuKernelGetLibrary);
	CHECK_OUT(library);
	if (!sl_object_is(kernel, SL_MAGIC_FUNC))
		return CUDA_ERROR_INVALID_HANDLE;
	m = ((CUfunction)kernel)->module;
	if (!sl_object_is(m->library, SL_MAGIC_LIB))
		return CUDA_ERROR_INVALID_HANDLE; /* a module's function */
	*library = m->library;
	return CUDA_SUCCESS;
}

/* Host modules lack managed variables, functions for both sides, and references. */
static CUresult not_in(CUlibrary l, const void *out, const char *name)
{
	CHECK_OUT(out && name);
	return library_ok(l) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetManaged(
	CUdeviceptr *ptr, size_t *bytes, CUlibrary l, const char *name)
{
	SL_ENTER(cuLibraryGetManaged);
	return not_in(l, ptr ? (const void *)ptr : bytes, name);
}

CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary l, const char *name)
{
	SL_ENTER(cuLibraryGetUnifiedFunction);
	return not_in(l, function, name);
}
