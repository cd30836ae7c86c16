/*
 * facts - NVML's constant answers about a device
 *
 * Monitors ask for clocks, power and errors before they show memory, and skip GPUs that answer
 * nothing. These values are not measured; memory and processes are (usage.c).
 */
#include "softgpu/nvml/nvml.h"

#include <string.h>
#include <time.h>

#define SAMPLING_US 167000
#define CELSIUS     30

/* Calls with enumerations, which travel as unsigned int. */
#pragma GCC visibility push(default)
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(
	nvmlDevice_t device, unsigned int kind, unsigned int *celsius);
typedef nvmlReturn_t clock_fn(nvmlDevice_t device, unsigned int type, unsigned int *mhz);
clock_fn nvmlDeviceGetClockInfo, nvmlDeviceGetMaxClockInfo,
	nvmlDeviceGetApplicationsClock, nvmlDeviceGetDefaultApplicationsClock,
	nvmlDeviceGetMaxCustomerBoostClock;
nvmlReturn_t nvmlDeviceGetClock(
	nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int *mhz);
typedef nvmlReturn_t engine_fn(
	nvmlDevice_t device, unsigned int *pct, unsigned int *span_us);
engine_fn nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization,
	nvmlDeviceGetJpgUtilization, nvmlDeviceGetOfaUtilization;
nvmlReturn_t nvmlDeviceGetPcieThroughput(
	nvmlDevice_t device, unsigned int counter, unsigned int *kib_per_s);
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type,
	unsigned int counter, unsigned long long *errors);
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int type,
	unsigned int counter, unsigned int place, unsigned long long *errors);
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t one, nvmlDevice_t two, unsigned int *level);
nvmlReturn_t nvmlDeviceGetP2PStatus(
	nvmlDevice_t one, nvmlDevice_t two, unsigned int caps, unsigned int *status);
#pragma GCC visibility pop

#define SL_NVML_FACT(name, type, value)                                   \
	SL_NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, type *out); \
	nvmlReturn_t name(nvmlDevice_t device, type *out)                 \
	{                                                                 \
		uint32_t i;                                               \
		NEED_DEVICE(device, &i);                                  \
		NEED(out);                                                \
		*out = value;                                             \
		return NVML_SUCCESS;                                      \
	}
#include "softgpu/nvml/facts.def"
#undef SL_NVML_FACT

/* --- with a second parameter ---------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(celsius && sensor == NVML_TEMPERATURE_GPU);
	*celsius = CELSIUS;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(
	nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(temperature);
	if (temperature->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	NEED(temperature->sensorType == NVML_TEMPERATURE_GPU);
	temperature->temperature = CELSIUS;
	return NVML_SUCCESS;
}

/* Shutdown, slowdown, memory's and the GPU's highest, by nvmlTemperatureThresholds_t. */
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(
	nvmlDevice_t device, unsigned int kind, unsigned int *celsius)
{
	static const unsigned int at[] = {92, 89, 95, 85};
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(celsius);
	if (kind >= SL_ARRAY_LEN(at))
		return NVML_ERROR_NOT_SUPPORTED;
	*celsius = at[kind];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(
	nvmlDevice_t device, int *major, int *minor)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(major && minor);
	*major = 8;
	*minor = 0;
	return NVML_SUCCESS;
}

/* MHz by nvmlClockType_t: graphics, SM, memory, video. Always the maximum. */
static nvmlReturn_t clock_of(nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
	static const unsigned int clocks[] = {1410, 1410, 1593, 1290};
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(mhz && type < SL_ARRAY_LEN(clocks));
	*mhz = clocks[type];
	return NVML_SUCCESS;
}

#define CLOCK(name)                                                                  \
	nvmlReturn_t name(nvmlDevice_t device, unsigned int type, unsigned int *mhz) \
	{                                                                            \
		return clock_of(device, type, mhz);                                  \
	}
CLOCK(nvmlDeviceGetClockInfo)
CLOCK(nvmlDeviceGetMaxClockInfo)
CLOCK(nvmlDeviceGetApplicationsClock)
CLOCK(nvmlDeviceGetDefaultApplicationsClock)
CLOCK(nvmlDeviceGetMaxCustomerBoostClock)

nvmlReturn_t nvmlDeviceGetClock(
	nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int *mhz)
{
	NEED_READY;
	NEED(id < 4);
	return clock_of(device, type, mhz);
}

/* These engines do not exist, so they are idle. */
#define ENGINE(name)                                                                     \
	nvmlReturn_t name(nvmlDevice_t device, unsigned int *pct, unsigned int *span_us) \
	{                                                                                \
		uint32_t i;                                                              \
		NEED_DEVICE(device, &i);                                                 \
		NEED(pct &&span_us);                                                     \
		*pct = 0;                                                                \
		*span_us = SAMPLING_US;                                                  \
		return NVML_SUCCESS;                                                     \
	}
ENGINE(nvmlDeviceGetDecoderUtilization)
ENGINE(nvmlDeviceGetEncoderUtilization)
ENGINE(nvmlDeviceGetJpgUtilization)
ENGINE(nvmlDeviceGetOfaUtilization)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(
	nvmlDevice_t device, unsigned int *lowest_mw, unsigned int *highest_mw)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(lowest_mw && highest_mw);
	*lowest_mw = 100000;
	*highest_mw = 300000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(
	nvmlDevice_t device, unsigned int counter, unsigned int *kib_per_s)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(kib_per_s && counter < 2);
	*kib_per_s = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(
	nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(current && pending);
	*current = *pending = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type,
	unsigned int counter, unsigned long long *errors)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(errors && type < 2 && counter < 2);
	*errors = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int type,
	unsigned int counter, unsigned int place, unsigned long long *errors)
{
	(void)place;
	return nvmlDeviceGetTotalEccErrors(device, type, counter, errors);
}

/* As on a GPU without partitions. */
nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
	uint32_t i;

	(void)current;
	(void)pending;
	NEED_DEVICE(device, &i);
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(
	nvmlDevice_t device, char *version, unsigned int length)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	return sl_nvml_put_text(version, length, "00.00.00.00.00");
}

/* --- pairs ------------------------------------------------------------------------------- */

/* All are on one host bridge, as their bus numbers say, and reach each other. */
#define HOST_BRIDGE 30u
#define P2P_OK      0u
#define P2P_NONE    5u /* not supported */
#define CAPS_NVLINK 2u

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t one, nvmlDevice_t two, unsigned int *level)
{
	uint32_t i, k;

	NEED_DEVICE(one, &i);
	NEED_DEVICE(two, &k);
	NEED(level);
	*level = i == k ? 0 : HOST_BRIDGE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(
	nvmlDevice_t one, nvmlDevice_t two, unsigned int caps, unsigned int *status)
{
	uint32_t i, k;

	NEED_DEVICE(one, &i);
	NEED_DEVICE(two, &k);
	NEED(status && caps < 5);
	*status = caps == CAPS_NVLINK ? P2P_NONE : P2P_OK;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t two, int *same)
{
	uint32_t i, k;

	NEED_DEVICE(one, &i);
	NEED_DEVICE(two, &k);
	NEED(same);
	*same = i == k;
	return NVML_SUCCESS;
}

/* --- the system -------------------------------------------------------------------------- */

nvmlReturn_t nvmlUnitGetCount(unsigned int *count)
{
	NEED_READY;
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count)
{
	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

/* --- field values ------------------------------------------------------------------------ */

/* The known ones; each other value is NOT_SUPPORTED, as on any GPU. */
static const struct {
	unsigned int id;
	unsigned long long value;
} fields[] = {
	{NVML_FI_DEV_ECC_CURRENT, 1},
	{NVML_FI_DEV_ECC_PENDING, 1},
	{NVML_FI_DEV_ECC_SBE_VOL_TOTAL, 0},
	{NVML_FI_DEV_ECC_DBE_VOL_TOTAL, 0},
	{NVML_FI_DEV_ECC_SBE_AGG_TOTAL, 0},
	{NVML_FI_DEV_ECC_DBE_AGG_TOTAL, 0},
	{NVML_FI_DEV_POWER_AVERAGE, 50000},
	{NVML_FI_DEV_POWER_INSTANT, 50000},
};

static void field(nvmlFieldValue_t *f)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	f->timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	f->latencyUsec = 0;
	f->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	memset(&f->value, 0, sizeof(f->value));
	for (size_t i = 0; i < SL_ARRAY_LEN(fields); i++) {
		if (fields[i].id != f->fieldId)
			continue;
		f->value.ullVal = fields[i].value;
		f->nvmlReturn = NVML_SUCCESS;
	}
}

nvmlReturn_t nvmlDeviceGetFieldValues(
	nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	uint32_t i;

	NEED_DEVICE(device, &i);
	NEED(count > 0 && values);
	for (int k = 0; k < count; k++)
		field(&values[k]);
	return NVML_SUCCESS;
}
