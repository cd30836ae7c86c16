/*
 * events - sets of events, read from the server's board without a request
 */
#include "softgpu/nvml/nvml.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The events that a set waits for; those before a GPU was registered do not count. */
struct nvmlEventSet_st {
	uint32_t magic, seen; /* events of the sl_nvml_board */
	bool wanted[SL_SOFTGPU_GPUS_MAX];
};
#define SET_MAGIC   0x534c4556u
#define EVENT_TYPES ((unsigned long long)nvmlEventTypeXidCriticalError)

static uint32_t event_count(void)
{
	return __atomic_load_n(&sl_nvml_board->event_count, __ATOMIC_ACQUIRE);
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	struct nvmlEventSet_st *new;

	NEED_READY;
	NEED(set);
	new = calloc(1, sizeof(*new));
	if (!new)
		return NVML_ERROR_MEMORY;
	new->magic = SET_MAGIC;
	new->seen = event_count();
	*set = new;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	NEED_READY;
	NEED(set && set->magic == SET_MAGIC);
	set->magic = 0;
	free(set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(
	nvmlDevice_t device, unsigned long long *types)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(types);
	*types = EVENT_TYPES;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(set && set->magic == SET_MAGIC && types);
	if (types & ~EVENT_TYPES)
		return NVML_ERROR_NOT_SUPPORTED;
	set->wanted[i] = true;
	return NVML_SUCCESS;
}

/* The next event the set waits for, if there is one. */
static bool take_event(struct nvmlEventSet_st *set, struct sl_sg_event *out)
{
	uint32_t now = event_count();

	/* A late reader misses the oldest events, as with any bounded queue. */
	if (now - set->seen > SL_SG_EVENTS_MAX / 2)
		set->seen = now - SL_SG_EVENTS_MAX / 2;
	while (set->seen != now) {
		*out = sl_nvml_board->event[set->seen++ % SL_SG_EVENTS_MAX];
		if (out->device < sl_nvml_hello.gpus && set->wanted[out->device])
			return true;
	}
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	uint64_t deadline_ns = now_ns() + timeout_ms * UINT64_C(1000000), now;
	struct sl_sg_event event;
	struct timespec left;

	NEED_READY;
	NEED(set && set->magic == SET_MAGIC && data);
	while (!take_event(set, &event)) {
		now = now_ns();
		if (now >= deadline_ns)
			return NVML_ERROR_TIMEOUT;
		left.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
		left.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
		syscall(SYS_futex, &sl_nvml_board->event_count, FUTEX_WAIT, set->seen,
			&left, NULL, 0);
	}
	*data = (nvmlEventData_t){(nvmlDevice_t)(uintptr_t)(event.device + 1),
		nvmlEventTypeXidCriticalError, event.xid, ~0u, ~0u};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	nvmlEventData_t whole;
	nvmlReturn_t r;

	NEED(data);
	r = nvmlEventSetWait_v2(set, &whole, timeout_ms);
	/* The older call has no instances: its structure ends before them. */
	if (r == NVML_SUCCESS)
		memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
	return r;
}
