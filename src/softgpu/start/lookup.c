/*
 * lookup - functions of the driver by name and version
 *
 * The version that a program asks for chooses the variant: from CUDA 13 on plain cuCtxCreate,
 * cuMemAdvise or cuGraphAddNode mean another function than before. A function newer than the driver
 * is never found, even for a newer version.
 */
#include "softgpu/driver/absent.h"
#include "softgpu/driver/driver.h"

#include <string.h>

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = sl_softgpu_cuda_version();
	return CUDA_SUCCESS;
}

/* Names that mean a function of another name from some version on. */
static const struct renamed {
	const char *symbol;
	int since;
	const char *means;
} renamed[] = {
	{"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
};

/* Parts of an exported name: length without suffixes, version, per-thread or not. */
static size_t split(const char *name, bool *per_thread, int *version)
{
	size_t n = strlen(name);

	*per_thread = n > 5 &&
		      (!strcmp(name + n - 5, "_ptsz") || !strcmp(name + n - 5, "_ptds"));
	if (*per_thread)
		n -= 5;
	*version = 1;
	if (n > 3 && name[n - 3] == '_' && name[n - 2] == 'v' && name[n - 1] >= '1' &&
		name[n - 1] <= '9') {
		*version = name[n - 1] - '0';
		n -= 3;
	}
	return n;
}

/*
 * The newest variant not newer than cuda_version; of two, the one with the wanted default stream. A
 * name that ends in a version asks for that one. *too_old: there is only a newer one.
 */
static const struct sl_absent_row *look_up(
	const char *symbol, int cuda_version, bool per_thread, bool *too_old)
{
	const struct sl_absent_row *best = NULL;
	int best_rank = -1, want_version, version;
	int driver = sl_softgpu_cuda_version();
	bool want_pt, pt;
	size_t want;

	for (size_t i = 0; i < SL_ARRAY_LEN(renamed); i++)
		if (cuda_version >= renamed[i].since &&
			!strcmp(symbol, renamed[i].symbol))
			symbol = renamed[i].means;
	want = split(symbol, &want_pt, &want_version);
	per_thread |= want_pt;
	*too_old = false;
	for (size_t i = 0; i < sl_absent_count; i++) {
		const struct sl_absent_row *row = &sl_absent_rows[i];
		size_t n = split(row->name, &pt, &version);

		if (row->since > driver || n != want || strncmp(row->name, symbol, n) ||
			(pt && !per_thread))
			continue;
		if (want_version > 1 && version != want_version)
			continue;
		if (row->since > cuda_version) {
			*too_old = true;
			continue;
		}
		if (version * 2 + pt > best_rank) {
			best_rank = version * 2 + pt;
			best = row;
		}
	}
	return best;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int cuda_version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct sl_absent_row *row;
	bool too_old;

	if (!symbol || !fn || flags & ~(cuuint64_t)3)
		return CUDA_ERROR_INVALID_VALUE;
	row = look_up(symbol, cuda_version,
		flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &too_old);
	*fn = row ? row->fn : NULL;
	if (status)
		*status = row       ? CU_GET_PROC_ADDRESS_SUCCESS
			  : too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return row || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(
	const char *symbol, void **fn, int cuda_version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, cuda_version, flags, NULL);
}

/* Private tables by which NVIDIA's own libraries recognise their driver: refused. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	if (table)
		*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
