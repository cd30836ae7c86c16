/*
 * nvml_abi - the part of NVML's binary interface that Sluice speaks
 *
 * Written from the published facts of the interface; tools/check-abi compares it with nvml.h. Sizes
 * are bytes. Functions stand under their exported names; nothing is linked, callers look the names
 * up. Every call may be made from any thread once nvmlInit_v2 has succeeded.
 *
 * Do not include together with NVIDIA's nvml.h.
 */
#ifndef SL_BASE_NVML_ABI_H
#define SL_BASE_NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results: X(name without prefix, number, text). The texts are Sluice's own. */
#define SL_NVML_RESULTS(X)                                                      \
	X(SUCCESS, 0, "no error")                                               \
	X(ERROR_UNINITIALIZED, 1, "nvmlInit was not called")                    \
	X(ERROR_INVALID_ARGUMENT, 2, "an argument is invalid")                  \
	X(ERROR_NOT_SUPPORTED, 3, "not supported by this GPU")                  \
	X(ERROR_NO_PERMISSION, 4, "no permission")                              \
	X(ERROR_ALREADY_INITIALIZED, 5, "already initialized")                  \
	X(ERROR_NOT_FOUND, 6, "not found")                                      \
	X(ERROR_INSUFFICIENT_SIZE, 7, "the array is too small")                 \
	X(ERROR_INSUFFICIENT_POWER, 8, "external power is missing")             \
	X(ERROR_DRIVER_NOT_LOADED, 9, "the kernel driver is not loaded")        \
	X(ERROR_TIMEOUT, 10, "the time ran out")                                \
	X(ERROR_IRQ_ISSUE, 11, "an interrupt is wrong")                         \
	X(ERROR_LIBRARY_NOT_FOUND, 12, "a library was not found")               \
	X(ERROR_FUNCTION_NOT_FOUND, 13, "the function is missing")              \
	X(ERROR_CORRUPTED_INFOROM, 14, "the GPU's own store is damaged")        \
	X(ERROR_GPU_IS_LOST, 15, "the GPU fell off the bus")                    \
	X(ERROR_RESET_REQUIRED, 16, "the GPU needs a reset")                    \
	X(ERROR_OPERATING_SYSTEM, 17, "the system blocked the GPU")             \
	X(ERROR_LIB_RM_VERSION_MISMATCH, 18, "library and driver do not match") \
	X(ERROR_IN_USE, 19, "the GPU is in use")                                \
	X(ERROR_MEMORY, 20, "not enough memory")                                \
	X(ERROR_NO_DATA, 21, "no data")                                         \
	X(ERROR_ARGUMENT_VERSION_MISMATCH, 25, "the version word is unknown")   \
	X(ERROR_NOT_READY, 27, "not ready")                                     \
	X(ERROR_GPU_NOT_FOUND, 28, "no GPU was found")                          \
	X(ERROR_UNKNOWN, 999, "unknown error")

typedef enum nvmlReturn_enum {
#define SL_NVML_RESULT_ENUM(name, number, text) NVML_##name = number,
	SL_NVML_RESULTS(SL_NVML_RESULT_ENUM)
#undef SL_NVML_RESULT_ENUM
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE     32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE  16
#define NVML_DEVICE_UUID_BUFFER_SIZE           80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE        96
#define NVML_DEVICE_NAME_BUFFER_SIZE           64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE        96
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE   80
/* Memory of a process that the driver does not report (under WDDM and in some containers). */
#define NVML_VALUE_NOT_AVAILABLE (-1)
#define NVML_DEVICE_MIG_DISABLE  0
#define NVML_DEVICE_MIG_ENABLE   1

typedef struct nvmlPciInfo_st {
	char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE]; /* 16-bit domain */
	unsigned int domain, bus, device;
	unsigned int pciDeviceId; /* device << 16 | vendor */
	unsigned int pciSubSystemId;
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* 32-bit domain */
} nvmlPciInfo_t;

/* `used` includes the driver's reserve in the first version, not in the second. */
typedef struct nvmlMemory_st {
	unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct nvmlMemory_v2_st {
	unsigned int version; /* nvmlMemory_v2 */
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
#define nvmlMemory_v2 ((unsigned int)(sizeof(nvmlMemory_v2_t) | (2u << 24)))

typedef struct nvmlBAR1Memory_st {
	unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct nvmlProcessInfo_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
/* Layout of both the _v2 and the _v3 calls. Instance ids are all ones without MIG. */
typedef struct nvmlProcessInfo_v2_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t, nvmlProcessInfo_t;

typedef struct nvmlUtilization_st {
	unsigned int gpu, memory; /* percent of the last sample period */
} nvmlUtilization_t;
typedef struct nvmlProcessUtilizationSample_st {
	unsigned int pid;
	unsigned long long timeStamp; /* microseconds */
	unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;
typedef struct nvmlAccountingStats_st {
	unsigned int gpuUtilization, memoryUtilization;
	unsigned long long maxMemoryUsage, time, startTime;
	unsigned int isRunning;
	unsigned int reserved[5];
} nvmlAccountingStats_t;

/* As of CUDA 13.4; pid is an input. */
typedef struct nvmlAccountingStats_v2_st {
	unsigned int pid, isRunning, gpuUtilization, memoryUtilization;
	unsigned long long maxMemoryUsage;
	unsigned int sampleCount;
	unsigned long long sumGpuUtil, sumFbUtil, time, startTime;
} nvmlAccountingStats_v2_t;

/* These calls check the version word. The caller owns the arrays; the counts are in and out, as
 * below. */
typedef struct nvmlProcessUtilizationInfo_v1_st {
	unsigned long long timeStamp; /* microseconds */
	unsigned int pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
typedef struct nvmlProcessesUtilizationInfo_v1_st {
	unsigned int version; /* nvmlProcessesUtilizationInfo_v1 */
	unsigned int processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t, nvmlProcessesUtilizationInfo_t;
#define nvmlProcessesUtilizationInfo_v1 \
	((unsigned int)(sizeof(nvmlProcessesUtilizationInfo_v1_t) | (1u << 24)))
typedef struct nvmlProcessDetail_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId, computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
typedef struct nvmlProcessDetailList_v1_st {
	unsigned int version; /* nvmlProcessDetailList_v1 */
	unsigned int mode;    /* 0 compute, 1 graphics, 2 MPS */
	unsigned int numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t, nvmlProcessDetailList_t;
#define nvmlProcessDetailList_v1 \
	((unsigned int)(sizeof(nvmlProcessDetailList_v1_t) | (1u << 24)))

#define NVML_DEVICE_UUID_ASCII_LEN  41
#define NVML_DEVICE_UUID_BINARY_LEN 16
typedef enum nvmlUUIDType_enum {
	NVML_UUID_TYPE_NONE = 0,
	NVML_UUID_TYPE_ASCII = 1,
	NVML_UUID_TYPE_BINARY = 2,
} nvmlUUIDType_t;
typedef union nvmlUUIDValue_un {
	char str[NVML_DEVICE_UUID_ASCII_LEN];
	unsigned char bytes[NVML_DEVICE_UUID_BINARY_LEN];
} nvmlUUIDValue_t;
typedef struct nvmlUUID_v1_st {
	unsigned int version; /* nvmlUUID_v1 */
	unsigned int type;
	nvmlUUIDValue_t value;
} nvmlUUID_v1_t, nvmlUUID_t;
#define nvmlUUID_v1 ((unsigned int)(sizeof(nvmlUUID_v1_t) | (1u << 24)))

typedef struct nvmlSystemDriverBranchInfo_v1_st {
	unsigned int version; /* nvmlSystemDriverBranchInfo_v1 */
	char branch[80];
} nvmlSystemDriverBranchInfo_t;
#define nvmlSystemDriverBranchInfo_v1 \
	((unsigned int)(sizeof(nvmlSystemDriverBranchInfo_t) | (1u << 24)))

typedef enum nvmlTemperatureSensors_enum {
	NVML_TEMPERATURE_GPU = 0,
} nvmlTemperatureSensors_t;
typedef struct nvmlTemperature_v1_st {
	unsigned int version; /* nvmlTemperature_v1 */
	nvmlTemperatureSensors_t sensorType;
	int temperature; /* degrees Celsius */
} nvmlTemperature_v1_t, nvmlTemperature_t;
#define nvmlTemperature_v1 ((unsigned int)(sizeof(nvmlTemperature_v1_t) | (1u << 24)))

/* Many values in one call; each has its own result. */
typedef enum nvmlValueType_enum {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
	NVML_VALUE_TYPE_SIGNED_INT = 5,
} nvmlValueType_t;
typedef union nvmlValue_st {
	double dVal;
	int siVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
	signed long long sllVal;
} nvmlValue_t;
typedef struct nvmlFieldValue_st {
	unsigned int fieldId, scopeId; /* NVML_FI_DEV_* */
	long long timestamp;           /* microseconds since 1970 */
	long long latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct nvmlSample_st {
	unsigned long long timeStamp; /* microseconds */
	nvmlValue_t sampleValue;
} nvmlSample_t;
#define NVML_FI_DEV_ECC_CURRENT       1
#define NVML_FI_DEV_ECC_PENDING       2
#define NVML_FI_DEV_ECC_SBE_VOL_TOTAL 3
#define NVML_FI_DEV_ECC_DBE_VOL_TOTAL 4
#define NVML_FI_DEV_ECC_SBE_AGG_TOTAL 5
#define NVML_FI_DEV_ECC_DBE_AGG_TOTAL 6
#define NVML_FI_DEV_POWER_AVERAGE     185 /* milliwatts */
#define NVML_FI_DEV_POWER_INSTANT     186

/* A set of events to wait for. gpuInstanceId and computeInstanceId came with _v2 of the wait; all
 * ones without MIG. eventData of an Xid is its number. */
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlEventData_st {
	nvmlDevice_t device;
	unsigned long long eventType, eventData;
	unsigned int gpuInstanceId, computeInstanceId;
} nvmlEventData_t;
#define nvmlEventTypeSingleBitEccError 0x1ull
#define nvmlEventTypeDoubleBitEccError 0x2ull
#define nvmlEventTypeXidCriticalError  0x8ull

typedef enum nvmlComputeMode_enum {
	NVML_COMPUTEMODE_DEFAULT = 0,
	NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
	NVML_COMPUTEMODE_PROHIBITED = 2,
	NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
} nvmlComputeMode_t;
typedef enum nvmlEnableState_enum {
	NVML_FEATURE_DISABLED = 0,
	NVML_FEATURE_ENABLED = 1,
} nvmlEnableState_t;

nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetDriverBranch(
	nvmlSystemDriverBranchInfo_t *info, unsigned int length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length);

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(
	nvmlDevice_t device, int *major, int *minor);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t device, unsigned int *current, unsigned int *pending);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(
	nvmlDevice_t device, unsigned int *generation);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width);
nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius);
nvmlReturn_t nvmlDeviceGetTemperatureV(
	nvmlDevice_t device, nvmlTemperature_t *temperature);
nvmlReturn_t nvmlDeviceGetEccMode(
	nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending);
nvmlReturn_t nvmlDeviceGetFieldValues(
	nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlUnitGetCount(unsigned int *count);
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count);
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t two, int *same);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count);
nvmlReturn_t nvmlDeviceGetVbiosVersion(
	nvmlDevice_t device, char *version, unsigned int length);
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(
	nvmlDevice_t device, unsigned int *lowest_mw, unsigned int *highest_mw);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts);

/* Memory and its users. The counts are in and out: slots offered, rows found. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(
	nvmlDevice_t device, nvmlUtilization_t *utilization);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos);
extern __typeof__(nvmlDeviceGetComputeRunningProcesses)
	nvmlDeviceGetGraphicsRunningProcesses,
	nvmlDeviceGetMPSComputeRunningProcesses;
extern __typeof__(nvmlDeviceGetComputeRunningProcesses_v2)
	nvmlDeviceGetGraphicsRunningProcesses_v2,
	nvmlDeviceGetMPSComputeRunningProcesses_v2;
extern __typeof__(nvmlDeviceGetComputeRunningProcesses_v3)
	nvmlDeviceGetGraphicsRunningProcesses_v3,
	nvmlDeviceGetMPSComputeRunningProcesses_v3;
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *samples, unsigned int *count,
	unsigned long long since_us);
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info);
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *list);
nvmlReturn_t nvmlDeviceGetAccountingPids(
	nvmlDevice_t device, unsigned int *count, unsigned int *pids);
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(
	nvmlDevice_t device, nvmlAccountingStats_v2_t *stats);
nvmlReturn_t nvmlDeviceGetAccountingStats(
	nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats);

/* Events. Waiting ends with NVML_ERROR_TIMEOUT if none arrives within timeout_ms. */
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(
	nvmlDevice_t device, unsigned long long *types);
nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetWait(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);
nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
