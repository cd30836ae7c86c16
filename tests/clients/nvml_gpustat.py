"""gpustat: its Python API, and its JSON."""

import json
import subprocess
import sys

import gpustat

from monitored import figure, say

stats = gpustat.new_query()
figure("count", len(stats))
first = stats[0].entry
say("name", first["name"])
for key in ("temperature.gpu", "fan.speed", "utilization.enc", "power.draw", "enforced.power.limit"):
    say(key, first[key])

run = subprocess.run([sys.executable, "-m", "gpustat", "--json", "--debug"], capture_output=True, text=True)
say("status", run.returncode)
say("complaints but for fans", [line for line in run.stderr.splitlines() if line.startswith(">") and "fan_speed" not in line])
told = json.loads(run.stdout)["gpus"][0]
say("driver", json.loads(run.stdout)["driver_version"])
figure("total", told["memory.total"] << 20)
figure("used", told["memory.used"] << 20)
rows = sorted(told["processes"], key=lambda p: p["pid"])
figure("pids", " ".join(str(p["pid"]) for p in rows))
figure("held", sum(p["gpu_memory_usage"] for p in rows) << 20)
say("commands", [p["command"] for p in rows])
say("end", "reached")
