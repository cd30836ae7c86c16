/*
 * nvml_processes - which processes use a GPU, for a workload
 *
 * A workload sees its own processes and no others. The daemon lists them, since NVML's numbers are
 * the host's, a container's, or a mixture, depending on the driver. What NVML knows beyond a
 * process's memory (utilisation, accounting) is found by number alone, so it is reported only
 * within the same pid namespace. NVML is always asked first, with an empty list, so that the
 * program gets NVML's own errors.
 */
#include "runtime/hooks/nvml.h"
#include "runtime/session/pids.h"
#include "runtime/session/session.h"

#include <errno.h>
#include <string.h>

/* The instance id without MIG. */
#define NO_INSTANCE (~0u)

static bool has(const struct sl_pids *pids, unsigned int pid)
{
	for (uint32_t i = 0; i < pids->count; i++) {
		if (pids->rows[i].pid == pid)
			return true;
	}
	return false;
}

/* Lists the workload's processes on the GPU; the list is empty if the GPU is not the workload's.
 * The daemon's figure for a process includes the part of its context that the reserve pays for; the
 * workload's own use (total - free) does not. So each figure is cut to that use. */
static void list(nvmlDevice_t device, struct sl_pids *out)
{
	int saved_errno = errno;
	struct sl_gpu *gpu = sl_nvml_gpu(device);
	uint64_t free_bytes, total_bytes;

	out->count = 0;
	out->same = false;
	if (gpu) {
		sl_nvml_measure(gpu);
		sl_pids_list(gpu, out);
		sl_session_view(gpu, &free_bytes, &total_bytes);
		for (uint32_t i = 0; i < out->count; i++)
			out->rows[i].used_bytes = sl_min_u64(
				out->rows[i].used_bytes, total_bytes - free_bytes);
	}
	errno = saved_errno;
}

/* --- lists ----------------------------------------------------------------------------- */

/* Rows of `stride` bytes; the longer form has the instance ids after the short form's members. */
static nvmlReturn_t give(
	const struct sl_pids *pids, unsigned int *count, void *infos, size_t stride)
{
	unsigned int room = *count;

	*count = pids->count;
	if (room < pids->count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < pids->count; i++) {
		nvmlProcessInfo_t row = {pids->rows[i].pid, pids->rows[i].used_bytes,
			NO_INSTANCE, NO_INSTANCE};

		memcpy((char *)infos + i * stride, &row, stride);
	}
	return NVML_SUCCESS;
}

/* Is r, NVML's answer to a query without room, a success? */
static bool is_answer(nvmlReturn_t r)
{
	return r == NVML_SUCCESS || r == NVML_ERROR_INSUFFICIENT_SIZE;
}

/* Our processes use no graphics, and MPS is refused at the join: those lists are empty. */
static nvmlReturn_t tell(nvmlDevice_t device, unsigned int *count, void *infos,
	size_t stride, bool compute)
{
	struct sl_pids pids = {.count = 0};

	if (compute)
		list(device, &pids);
	return give(&pids, count, infos, stride);
}

#define LIST(symbol, type, compute)                                                  \
	SL_EXPORT nvmlReturn_t symbol(                                               \
		nvmlDevice_t device, unsigned int *count, type *infos)               \
	{                                                                            \
		SL_NVML_REAL(real, symbol);                                          \
		unsigned int none = 0;                                               \
		nvmlReturn_t r;                                                      \
                                                                                     \
		if (!count || (!infos && *count) || !sl_nvml_is_active())            \
			return real(device, count, infos);                           \
		r = real(device, &none, NULL);                                       \
		return is_answer(r)                                                  \
			       ? tell(device, count, infos, sizeof(*infos), compute) \
			       : r;                                                  \
	}
LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, true)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, true)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, true)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, false)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, false)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, false)

#define MODE_COMPUTE 0u

SL_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *plist)
{
	SL_NVML_REAL(real, nvmlDeviceGetRunningProcessDetailList);
	struct sl_pids pids = {.count = 0};
	nvmlProcessDetailList_t none;
	unsigned int room;
	nvmlReturn_t r;

	if (!plist || (!plist->procArray && plist->numProcArrayEntries) ||
		!sl_nvml_is_active())
		return real(device, plist);
	none = (nvmlProcessDetailList_t){plist->version, plist->mode, 0, NULL};
	r = real(device, &none);
	if (!is_answer(r))
		return r;
	if (plist->mode == MODE_COMPUTE)
		list(device, &pids);
	room = plist->numProcArrayEntries;
	plist->numProcArrayEntries = pids.count;
	if (room < pids.count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < pids.count; i++)
		plist->procArray[i] = (nvmlProcessDetail_v1_t){pids.rows[i].pid,
			pids.rows[i].used_bytes, NO_INSTANCE, NO_INSTANCE, 0};
	return NVML_SUCCESS;
}

/* --- figures by process number ------------------------------------------------------------- */

/* Keeps the rows of our own processes; the pid is at `offset` in each row. */
static unsigned int keep_ours(
	nvmlDevice_t device, void *rows, unsigned int count, size_t stride, size_t offset)
{
	unsigned int kept = 0, pid;
	struct sl_pids pids;
	char *row = rows;

	list(device, &pids);
	for (unsigned int i = 0; pids.same && i < count; i++) {
		memcpy(&pid, row + i * stride + offset, sizeof(pid));
		if (has(&pids, pid))
			memmove(row + kept++ * stride, row + i * stride, stride);
	}
	return kept;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *count,
	unsigned long long since_us)
{
	SL_NVML_REAL(real, nvmlDeviceGetProcessUtilization);
	nvmlReturn_t r = real(device, samples, count, since_us);

	if (r != NVML_SUCCESS || !samples || !sl_nvml_is_active())
		return r;
	*count = keep_ours(device, samples, *count, sizeof(*samples),
		offsetof(nvmlProcessUtilizationSample_t, pid));
	/* NVML's answer when no process was active. */
	return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
	SL_NVML_REAL(real, nvmlDeviceGetProcessesUtilizationInfo);
	nvmlReturn_t r = real(device, info);

	if (r != NVML_SUCCESS || !info->procUtilArray || !sl_nvml_is_active())
		return r;
	info->processSamplesCount = keep_ours(device, info->procUtilArray,
		info->processSamplesCount, sizeof(*info->procUtilArray),
		offsetof(nvmlProcessUtilizationInfo_v1_t, pid));
	return info->processSamplesCount ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* NVML keeps accounts of ended processes, too; they are left out, since their workload is unknown
 * here. */
SL_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(
	nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
	SL_NVML_REAL(real, nvmlDeviceGetAccountingPids);
	nvmlReturn_t r = real(device, count, pids);

	if (r == NVML_SUCCESS && pids && sl_nvml_is_active())
		*count = keep_ours(device, pids, *count, sizeof(*pids), 0);
	return r;
}

/* May this workload see what NVML knows of that pid? */
static bool is_told(nvmlDevice_t device, unsigned int pid)
{
	struct sl_pids pids;

	if (!sl_nvml_is_active())
		return true;
	list(device, &pids);
	return pids.same && has(&pids, pid);
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)
{
	SL_NVML_REAL(real, nvmlDeviceGetAccountingStats);
	nvmlAccountingStats_t found;
	nvmlReturn_t r = real(device, pid, stats ? &found : NULL);

	if (r != NVML_SUCCESS)
		return r;
	if (!is_told(device, pid))
		return NVML_ERROR_NOT_FOUND;
	*stats = found;
	return NVML_SUCCESS;
}

SL_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats_v2(
	nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
	SL_NVML_REAL(real, nvmlDeviceGetAccountingStats_v2);
	nvmlAccountingStats_v2_t found;
	nvmlReturn_t r;

	if (!stats)
		return real(device, stats);
	found = *stats;
	r = real(device, &found);
	if (r != NVML_SUCCESS)
		return r;
	if (!is_told(device, found.pid))
		return NVML_ERROR_NOT_FOUND;
	*stats = found;
	return NVML_SUCCESS;
}
