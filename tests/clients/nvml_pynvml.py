"""nvidia-ml-py: what a monitor in C would call, by every name and in every version of the structures."""

import os

import pynvml as n

from monitored import figure, say

n.nvmlInit()
say("driver", n.nvmlSystemGetDriverVersion())
say("NVML", n.nvmlSystemGetNVMLVersion())
say("CUDA", n.nvmlSystemGetCudaDriverVersion_v2())
count = n.nvmlDeviceGetCount()
figure("count", count)
handle = n.nvmlDeviceGetHandleByIndex(0)
uuid = n.nvmlDeviceGetUUID(handle)
bus = n.nvmlDeviceGetPciInfo(handle).busId
say("by UUID", n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(uuid)))
say("by bus", n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(bus)))
for what, ask in (("one behind the last", lambda: n.nvmlDeviceGetHandleByIndex(count)),
        ("a UUID of nobody", lambda: n.nvmlDeviceGetHandleByUUID("GPU-" + 8 * "0")),
        ("a bus of nobody", lambda: n.nvmlDeviceGetHandleByPciBusId("0000:7f:00.0")),
        ("MIG", lambda: n.nvmlDeviceGetMigMode(handle)),
        ("fans", lambda: n.nvmlDeviceGetFanSpeed(handle)),
        ("serial", lambda: n.nvmlDeviceGetSerial(handle)),
        ("accounting", lambda: n.nvmlDeviceGetAccountingStats(handle, os.getpid()))):
    try:
        say(what, ask())
    except n.NVMLError as error:
        say(what, error)

first = n.nvmlDeviceGetMemoryInfo(handle)
second = n.nvmlDeviceGetMemoryInfo(handle, version=n.nvmlMemory_v2)
figure("total", first.total)
figure("used", first.used)
say("it adds up", first.total == first.used + first.free)
say("in version 2 too", second.total == second.used + second.free + second.reserved)
say("totals agree", first.total == second.total)
say("BAR1", n.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total)

rows = {}
for version in ("", "_v2", "_v3"):
    ask = getattr(n, "nvmlDeviceGetComputeRunningProcesses" + version)
    rows[version] = sorted((p.pid, p.usedGpuMemory) for p in ask(handle))
    say(f"graphics{version}", len(getattr(n, "nvmlDeviceGetGraphicsRunningProcesses" + version)(handle)))
    say(f"MPS{version}", len(getattr(n, "nvmlDeviceGetMPSComputeRunningProcesses" + version)(handle)))
say("versions agree", rows[""] == rows["_v2"] == rows["_v3"])
details = n.nvmlDeviceGetRunningProcessDetailList(handle, n.nvmlProcessDetailList_v1, 0)
say("and the details", sorted((p.pid, p.usedGpuMemory) for p in details) == rows[""])
figure("pids", " ".join(str(pid) for pid, _ in rows[""]))
figure("held", sum(used for _, used in rows[""]))
say("names", [os.path.basename(n.nvmlSystemGetProcessName(pid)) for pid, _ in rows[""]])
samples = n.nvmlDeviceGetProcessUtilization(handle, 0)
figure("sampled", " ".join(str(s.pid) for s in sorted(samples, key=lambda s: s.pid)))

rates = n.nvmlDeviceGetUtilizationRates(handle)
say("utilisation is a percentage", 0 <= rates.gpu <= 100 and 0 <= rates.memory <= 100)
for name in ("Name", "Brand", "Architecture", "ComputeMode", "PersistenceMode", "DisplayActive",
        "PerformanceState", "PowerUsage", "EnforcedPowerLimit", "EccMode", "EncoderUtilization",
        "CudaComputeCapability", "CurrPcieLinkWidth", "MaxPcieLinkGeneration", "NumFans",
        "VbiosVersion", "MinorNumber", "VirtualizationMode", "SupportedEventTypes"):
    say(name, getattr(n, "nvmlDeviceGet" + name)(handle))
say("temperature", n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU))
say("clock", n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM))
say("ECC errors", n.nvmlDeviceGetTotalEccErrors(handle, 1, 0))
say("throughput", n.nvmlDeviceGetPcieThroughput(handle, n.NVML_PCIE_UTIL_TX_BYTES))
values = n.nvmlDeviceGetFieldValues(handle, [n.NVML_FI_DEV_ECC_CURRENT, n.NVML_FI_DEV_POWER_INSTANT, 77])
say("fields", [(v.fieldId, v.nvmlReturn, v.value.ullVal) for v in values])
events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(handle, n.nvmlEventTypeXidCriticalError, events)
try:
    n.nvmlEventSetWait_v2(events, 10)
except n.NVMLError as error:
    say("no event comes", error)
n.nvmlEventSetFree(events)
n.nvmlShutdown()
try:
    n.nvmlDeviceGetCount()
except n.NVMLError as error:
    say("after the end", error)
say("end", "reached")
