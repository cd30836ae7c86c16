/*
 * swapper-things - memory of every kind, its right contents, and checks of them
 *
 * Contents are checked twice: by a kernel, which uses the addresses as the program's own work does,
 * and in a copy. It counts as a difference if only one of the two finds it.
 */
#include "swapper.h"
#include "told.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THINGS_MAX = 512, CONTEXTS_MAX = 64, SLICE_WORDS = 1 << 18, ROW_WORDS = 4096 };

static struct thing things[THINGS_MAX];
static size_t thing_count;
static struct kernels kernels[CONTEXTS_MAX];
static size_t kernel_count;
/* Commands that are carried out beside others look things up, too. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

static struct kernels *kernels_of(CUcontext ctx)
{
	for (size_t i = 0; i < kernel_count; i++) {
		if (kernels[i].ctx == ctx)
			return &kernels[i];
	}
	return NULL;
}

static const struct kernels *load(struct kernels *k, CUcontext ctx)
{
	CUmodule module = prog_kernels();

	*k = (struct kernels){ctx, prog_kernel(module, "prog_fill"),
		prog_kernel(module, "prog_check"), prog_kernel(module, "prog_spin"),
		prog_kernel(module, "prog_wait"), prog_kernel(module, "prog_step"), 0};
	PROG_MUST(cuMemAlloc_v2(&k->bad, sizeof(uint32_t)));
	return k;
}

const struct kernels *swapper_kernels(void)
{
	const struct kernels *k;
	struct kernels *empty;
	CUcontext ctx;

	PROG_MUST(cuCtxGetCurrent(&ctx));
	pthread_mutex_lock(&lists);
	k = kernels_of(ctx);
	if (!k) {
		empty = kernels_of(NULL);
		if (!empty && kernel_count == CONTEXTS_MAX)
			exit(PROG_USAGE);
		k = load(empty ? empty : &kernels[kernel_count++], ctx);
	}
	pthread_mutex_unlock(&lists);
	return k;
}

void swapper_forget(CUcontext ctx)
{
	struct kernels *k = kernels_of(ctx);

	if (k)
		memset(k, 0, sizeof(*k));
	for (size_t i = 0; i < thing_count; i++) {
		if (things[i].ctx == ctx)
			things[i].kind = THING_NONE;
	}
}

static struct thing *find(const char *name)
{
	struct thing *empty = NULL;

	for (size_t i = 0; i < thing_count; i++) {
		if (strcmp(things[i].name, name) == 0)
			return &things[i];
		if (things[i].kind == THING_NONE && !things[i].at)
			empty = &things[i];
	}
	if (!empty && thing_count == THINGS_MAX)
		exit(PROG_USAGE);
	if (!empty)
		empty = &things[thing_count++];
	memset(empty, 0, sizeof(*empty));
	(void)snprintf(empty->name, sizeof(empty->name), "%s", name);
	return empty;
}

struct thing *thing_named(const char *name)
{
	struct thing *thing;

	pthread_mutex_lock(&lists);
	thing = find(name);
	pthread_mutex_unlock(&lists);
	return thing;
}

struct thing *thing_next(struct thing *after)
{
	for (size_t i = after ? (size_t)(after - things) + 1 : 0; i < thing_count; i++) {
		if (things[i].kind != THING_NONE)
			return &things[i];
	}
	return NULL;
}

/* --- making ----------------------------------------------------------------------------------- */

static void begin(struct thing *thing, uint64_t parts, uint64_t bytes)
{
	char name[THING_NAME_MAX];

	memcpy(name, thing->name, sizeof(name));
	free(thing->at);
	free(thing->handles);
	memset(thing, 0, sizeof(*thing));
	memcpy(thing->name, name, sizeof(name));
	thing->parts = parts;
	thing->bytes = bytes;
	thing->at = calloc(parts, sizeof(*thing->at));
	if (!thing->at)
		exit(PROG_USAGE);
	PROG_MUST(cuCtxGetCurrent(&thing->ctx));
}

static CUresult made(struct thing *thing, enum thing_kind kind, CUresult r)
{
	if (r == CUDA_SUCCESS)
		thing->kind = kind;
	return r;
}

CUresult thing_alloc(struct thing *thing, uint64_t parts, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	begin(thing, parts, bytes);
	for (uint64_t i = 0; i < parts && r == CUDA_SUCCESS; i++) {
		r = cuMemAlloc_v2(&thing->at[i], bytes);
		for (uint64_t j = 0; j < i && r != CUDA_SUCCESS; j++)
			PROG_MUST(cuMemFree_v2(thing->at[j]));
	}
	return made(thing, THING_ALLOC, r);
}

static CUresult allow(CUdeviceptr at, uint64_t bytes)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdevice device;

	PROG_MUST(cuCtxGetDevice(&device));
	access.location.id = device;
	return cuMemSetAccess(at, bytes, &access, 1);
}

CUresult thing_map(
	struct thing *thing, enum thing_kind kind, uint64_t bytes, uint64_t piece)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	CUdevice device;
	CUresult r;

	begin(thing, 1, bytes);
	PROG_MUST(cuCtxGetDevice(&device));
	prop.location.id = device;
	thing->piece = piece;
	thing->handles = calloc(bytes / piece, sizeof(*thing->handles));
	if (!thing->handles)
		exit(PROG_USAGE);
	r = cuMemAddressReserve(&thing->at[0], bytes, 0, 0, 0);
	for (uint64_t i = 0; i < bytes / piece && r == CUDA_SUCCESS; i++) {
		r = cuMemCreate(&thing->handles[i], piece, &prop, 0);
		if (r == CUDA_SUCCESS)
			r = cuMemMap(
				thing->at[0] + i * piece, piece, 0, thing->handles[i], 0);
		if (r == CUDA_SUCCESS && kind == THING_SEGMENT)
			r = cuMemRelease(thing->handles[i]);
	}
	if (r == CUDA_SUCCESS)
		r = allow(thing->at[0], bytes);
	return made(thing, kind, r);
}

CUresult thing_alias(struct thing *thing, struct thing *of)
{
	CUresult r;

	begin(thing, 1, of->bytes);
	thing->of = of;
	r = cuMemAddressReserve(&thing->at[0], of->bytes, 0, 0, 0);
	for (uint64_t i = 0; i < of->bytes / of->piece && r == CUDA_SUCCESS; i++)
		r = cuMemMap(
			thing->at[0] + i * of->piece, of->piece, 0, of->handles[i], 0);
	if (r == CUDA_SUCCESS)
		r = allow(thing->at[0], of->bytes);
	return made(thing, THING_ALIAS, r);
}

CUresult thing_array(struct thing *thing, uint64_t bytes)
{
	const CUDA_ARRAY_DESCRIPTOR desc = {
		ROW_WORDS, bytes / ROW_WORDS / 4, CU_AD_FORMAT_UNSIGNED_INT32, 1};

	begin(thing, 1, bytes);
	return made(thing, THING_ARRAY, cuArrayCreate_v2(&thing->array, &desc));
}

CUresult thing_managed(struct thing *thing, uint64_t bytes)
{
	begin(thing, 1, bytes);
	return made(thing, THING_MANAGED,
		cuMemAllocManaged(&thing->at[0], bytes, CU_MEM_ATTACH_GLOBAL));
}

CUresult thing_pool(struct thing *thing, uint64_t bytes)
{
	CUresult r;

	begin(thing, 1, bytes);
	r = cuMemAllocAsync(&thing->at[0], bytes, NULL);
	if (r == CUDA_SUCCESS)
		r = cuCtxSynchronize();
	return made(thing, THING_POOL, r);
}

CUresult thing_open(struct thing *thing, const char *path, uint64_t bytes, uint32_t seed)
{
	CUresult r;

	begin(thing, 1, bytes);
	r = made(thing, THING_OPENED,
		cuIpcOpenMemHandle_v2(&thing->at[0], told_import(path), 1));
	thing->written = true;
	thing->seed = seed;
	return r;
}

/* --- giving back ------------------------------------------------------------------------------ */

CUresult thing_shrink(struct thing *thing, uint64_t bytes)
{
	CUresult r = cuMemUnmap(thing->at[0] + thing->bytes - bytes, bytes);

	/* The range stays reserved: its rest is given back at the end. */
	if (r == CUDA_SUCCESS)
		thing->bytes -= bytes;
	return r;
}

static CUresult free_mapped(struct thing *thing)
{
	CUresult r = cuMemUnmap(thing->at[0], thing->bytes);

	for (uint64_t i = 0; i < thing->bytes / (thing->piece ? thing->piece : 1) &&
			     r == CUDA_SUCCESS && thing->kind == THING_HANDLES;
		i++)
		r = cuMemRelease(thing->handles[i]);
	return r;
}

static CUresult free_each(struct thing *thing)
{
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < thing->parts && r == CUDA_SUCCESS; i++)
		r = cuMemFree_v2(thing->at[i]);
	return r;
}

static CUresult free_by_kind(struct thing *thing)
{
	switch (thing->kind) {
	case THING_NONE: return CUDA_ERROR_INVALID_VALUE;
	case THING_HANDLES:
	case THING_SEGMENT:
	case THING_ALIAS: return free_mapped(thing);
	case THING_ARRAY: return cuArrayDestroy(thing->array);
	case THING_POOL: return cuMemFreeAsync(thing->at[0], NULL);
	case THING_OPENED: return cuIpcCloseMemHandle(thing->at[0]);
	default: return free_each(thing);
	}
}

CUresult thing_free(struct thing *thing)
{
	CUresult r = free_by_kind(thing);

	if (r == CUDA_SUCCESS)
		thing->kind = THING_NONE;
	return r;
}

/* --- contents --------------------------------------------------------------------------------- */

static void holds(struct thing *thing, uint32_t seed, bool zero)
{
	thing->written = true;
	thing->zero = zero;
	thing->seed = seed;
	thing->poke_count = 0;
}

static struct thing *contents_of(struct thing *thing)
{
	return thing->of ? thing->of : thing;
}

static CUresult launch_fill(CUdeviceptr at, uint64_t bytes, uint32_t seed)
{
	uint64_t stride = 1, count = bytes / 4;
	void *args[] = {&at, &count, &stride, &seed};

	return prog_launch(swapper_kernels()->fill, count, NULL, args);
}

CUresult thing_fill(struct thing *thing, uint32_t seed)
{
	CUresult r = CUDA_SUCCESS;

	if (thing->kind == THING_ARRAY)
		return thing_put(thing, seed);
	for (uint64_t i = 0; i < thing->parts && r == CUDA_SUCCESS; i++)
		r = launch_fill(thing->at[i], thing->bytes, seed + (uint32_t)i);
	/* Not all of the context's work: some may run for ever. */
	if (r == CUDA_SUCCESS)
		r = cuStreamSynchronize(NULL);
	holds(contents_of(thing), seed, false);
	return r;
}

/* Slices of a part, between the host and it. */
static CUresult copy_slice(const struct thing *thing, uint64_t part, uint64_t word,
	uint32_t *words, uint64_t count, bool out)
{
	CUDA_MEMCPY2D rows = {.WidthInBytes = ROW_WORDS * 4, .Height = count / ROW_WORDS};

	if (thing->kind != THING_ARRAY)
		return out ? cuMemcpyDtoH_v2(words, thing->at[part] + word * 4, count * 4)
			   : cuMemcpyHtoD_v2(
				     thing->at[part] + word * 4, words, count * 4);
	rows.srcMemoryType = out ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
	rows.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
	rows.srcHost = rows.dstHost = words;
	rows.srcArray = rows.dstArray = thing->array;
	*(out ? &rows.srcY : &rows.dstY) = word / ROW_WORDS;
	*(out ? &rows.dstPitch : &rows.srcPitch) = ROW_WORDS * 4;
	return cuMemcpy2D_v2(&rows);
}

static uint32_t *slice(void)
{
	uint32_t *words = malloc(SLICE_WORDS * sizeof(*words));

	if (!words)
		exit(PROG_USAGE);
	return words;
}

CUresult thing_put(struct thing *thing, uint32_t seed)
{
	uint64_t all = thing->bytes / 4;
	uint32_t *words = slice();
	CUresult r = CUDA_SUCCESS;

	for (uint64_t part = 0; part < thing->parts; part++) {
		for (uint64_t i = 0; i < all && r == CUDA_SUCCESS; i += SLICE_WORDS) {
			uint64_t count = all - i < SLICE_WORDS ? all - i : SLICE_WORDS;

			for (uint64_t j = 0; j < count; j++)
				words[j] = prog_mix(seed + (uint32_t)part, i + j);
			r = copy_slice(thing, part, i, words, count, false);
		}
	}
	free(words);
	holds(contents_of(thing), seed, false);
	return r;
}

CUresult thing_zero(struct thing *thing)
{
	CUresult r = CUDA_SUCCESS;

	for (uint64_t i = 0; i < thing->parts && r == CUDA_SUCCESS; i++)
		r = cuMemsetD8_v2(thing->at[i], 0, thing->bytes);
	holds(contents_of(thing), 0, true);
	return r;
}

CUresult thing_poke(struct thing *thing, uint64_t offset, uint32_t value)
{
	struct thing *of = contents_of(thing);

	if (of->poke_count == THING_POKES_MAX || offset / 4 >= of->bytes / 4)
		exit(PROG_USAGE);
	of->pokes[of->poke_count++] = (struct thing_poke){offset / 4, value};
	return cuMemcpyHtoD_v2(thing->at[0] + offset / 4 * 4, &value, sizeof(value));
}

CUresult thing_copy(struct thing *thing, struct thing *of)
{
	struct thing *to = contents_of(thing), *from = contents_of(of);
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (thing->bytes == of->bytes && thing->parts == 1 && of->parts == 1)
		r = cuMemcpyDtoD_v2(thing->at[0], of->at[0], of->bytes);
	if (r == CUDA_SUCCESS)
		r = cuCtxSynchronize();
	if (r != CUDA_SUCCESS)
		return r;
	holds(to, from->seed, from->zero);
	memcpy(to->pokes, from->pokes, sizeof(to->pokes));
	to->poke_count = from->poke_count;
	return r;
}

/* The last poke of a word is the one that counts. */
static uint32_t must_be(const struct thing *of, uint64_t part, uint64_t word)
{
	for (uint32_t i = of->poke_count; i > 0 && part == 0; i--) {
		if (of->pokes[i - 1].word == word)
			return of->pokes[i - 1].value;
	}
	return of->zero ? 0 : prog_mix(of->seed + (uint32_t)part, word);
}

/* Every word of it to `each`, in order. */
static CUresult read_all(struct thing *thing,
	void (*each)(struct thing *, uint64_t, uint64_t, uint32_t, uint64_t *),
	uint64_t *sum)
{
	uint64_t all = thing->bytes / 4;
	uint32_t *words = slice();
	CUresult r = CUDA_SUCCESS;

	for (uint64_t part = 0; part < thing->parts; part++) {
		for (uint64_t i = 0; i < all && r == CUDA_SUCCESS; i += SLICE_WORDS) {
			uint64_t count = all - i < SLICE_WORDS ? all - i : SLICE_WORDS;

			r = copy_slice(thing, part, i, words, count, true);
			for (uint64_t j = 0; j < count && r == CUDA_SUCCESS; j++)
				each(contents_of(thing), part, i + j, words[j], sum);
		}
	}
	free(words);
	return r;
}

static void compare(
	struct thing *of, uint64_t part, uint64_t word, uint32_t seen, uint64_t *wrong)
{
	if (seen == must_be(of, part, word))
		return;
	/* The first few are told, for the person who debugs it. */
	if ((*wrong)++ < 4)
		fprintf(stderr, "swapper: %s part %llu word %llu is %08x, not %08x\n",
			of->name, (unsigned long long)part, (unsigned long long)word,
			seen, must_be(of, part, word));
}

static void mix_in(
	struct thing *of, uint64_t part, uint64_t word, uint32_t seen, uint64_t *digest)
{
	(void)of, (void)part, (void)word;
	*digest = (*digest ^ seen) * 0x9E3779B97F4A7C15u;
	*digest ^= *digest >> 29;
}

CUresult thing_check(struct thing *thing, uint64_t *wrong)
{
	const struct thing *of = contents_of(thing);
	const struct kernels *k = swapper_kernels();
	bool by_kernel = thing->kind != THING_ARRAY && !of->zero && !of->poke_count;
	CUresult r = CUDA_SUCCESS;

	*wrong = 0;
	if (!of->written)
		return r;
	for (uint64_t i = 0; i < thing->parts && by_kernel && r == CUDA_SUCCESS; i++) {
		uint64_t stride = 1, count = thing->bytes / 4;
		uint32_t seed = of->seed + (uint32_t)i, seen = 0;
		CUdeviceptr bad = k->bad;
		void *args[] = {&thing->at[i], &count, &stride, &seed, &bad};

		r = cuMemsetD32_v2(bad, 0, 1);
		if (r == CUDA_SUCCESS)
			r = prog_launch(k->check, count, NULL, args);
		if (r == CUDA_SUCCESS)
			r = cuMemcpyDtoH_v2(&seen, bad, sizeof(seen));
		*wrong += seen;
	}
	return r == CUDA_SUCCESS ? read_all(thing, compare, wrong) : r;
}

CUresult thing_digest(struct thing *thing, uint64_t *digest)
{
	*digest = 1;
	return read_all(thing, mix_in, digest);
}
