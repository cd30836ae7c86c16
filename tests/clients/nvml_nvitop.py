"""nvitop: its Python API, and its one-shot screen."""

import re
import subprocess
import sys

from nvitop import CudaDevice, Device

from monitored import figure, say

devices = Device.all()
figure("count", len(devices))
device = devices[0]
memory = device.memory_info()
figure("total", memory.total)
figure("used", memory.used)
say("it adds up", memory.total == memory.used + memory.free + getattr(memory, "reserved", 0))
processes = device.processes()
figure("pids", " ".join(str(pid) for pid in sorted(processes)))
figure("held", sum(p.gpu_memory() for p in processes.values()))
say("types", [p.type for p in processes.values()])
say("names", [p.name() for p in processes.values()])
say("same by UUID", Device(uuid=device.uuid()) == device)
say("CUDA's first is the same", CudaDevice(0).uuid() == device.uuid())
for name in ("name", "fan_speed", "temperature", "power_usage", "power_limit", "performance_state",
        "display_active", "persistence_mode", "current_driver_model", "total_volatile_uncorrected_ecc_errors",
        "compute_mode", "cuda_compute_capability", "mig_mode", "bar1_memory_total", "max_clocks",
        "encoder_utilization"):
    say(name, getattr(device, name)())

screen = subprocess.run([sys.executable, "-m", "nvitop", "-1", "--ascii", "--colorful", "--only", "0"],
    capture_output=True, text=True)
say("its screen: status", screen.returncode)
say("its screen: complaints", screen.stderr)
text = re.sub(r"\x1b\[[0-9;]*m", "", screen.stdout)
used, total = re.search(r"(\d+(?:\.\d+)?)MiB / (\d+(?:\.\d+)?)MiB", text).groups()
figure("screen total", total)
figure("screen used", used)
figure("screen pids", " ".join(sorted(re.findall(r"^\|\s+0\s+(\d+) C ", text, re.M), key=int)))
say("end", "reached")
