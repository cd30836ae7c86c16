"""How PyTorch counts GPUs without touching CUDA: it walks CUDA_VISIBLE_DEVICES, and stops at the first
number that NVML does not have; later it asks NVML for that number. docs/decisions/0010 is about this."""

import os

import pynvml as n

from cu import cu, must
from monitored import figure, say

n.nvmlInit()
there = n.nvmlDeviceGetCount()
visible = [int(word) for word in os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2").split(",")]
counted = 0
for number in visible:
    if number >= there:
        break
    counted += 1
must("cuInit", 0)
say("as many as CUDA has", counted == must("cuDeviceGetCount"))
for ordinal, number in enumerate(visible):
    dev = must("cuDeviceGet", ordinal)
    bus = must("cuDeviceGetPCIBusId", 32, dev).rstrip(b"\0 ").decode()
    handle = n.nvmlDeviceGetHandleByIndex(number)
    say(f"CUDA's {ordinal} is NVML's {number}",
        n.nvmlDeviceGetPciInfo(handle).busId.lower().endswith(bus.lower().split("\0")[0]))
    say("one total", n.nvmlDeviceGetMemoryInfo(handle).total == must("cuDeviceTotalMem", dev) or
        "CUDA_VISIBLE_DEVICES" not in os.environ)
figure("count", there)
say("end", "reached")
