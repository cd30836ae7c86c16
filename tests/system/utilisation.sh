#!/bin/sh
# Who used a GPU: what one does beside one that only holds memory is its own, where NVML tells what each process does.
export LIMIT=60
. "$(dirname "$0")/lib.sh"
software_only "its NVML tells what each process does"
total() { "$B/sluice" history --last 1m --by workload --json | json "totals.name=$1.$2"; }
metric() { "$B/tests/system/http-client" "$T/metrics.sock" get /metrics | grep -v '^#' | grep -F "$1" | sed 's/.* //'; }

config "metrics: $T/metrics.sock"
daemon_start
$RUN --request 50MiB --limit 100MiB --name lazy -- "$P/holder" --bytes 50MiB --ms 60000 >"$T/lazy" &
lazy=$!
wait_event "$T/lazy" held
$RUN --request 50MiB --limit 100MiB --name busy -- "$P/stepper" --bytes 50MiB --ms 0 --steps 1000000 >"$T/busy" &
busy=$!
worked() { [ "$(total busy active_ms)" -ge 2000 ] && [ "$(total busy used_gpu_s | tr -d .)" -gt 0 ]; }
until_true 30 worked || fail "who works is not known: $(total busy active_ms), $("$B/sluice" gpus --json)"
check "who only holds memory used nothing" "$(total lazy used_gpu_s)" = 0.000000
check "and had no work" "$(total lazy active_ms)" = 0
check "what it was allocated was idle" "$(total lazy idle_gpu_s | tr -d .)" -gt 0
check "metrics say so" "$(metric sluice_gpu_utilisation_by_process)" = 1
check "the history says so" "$("$B/sluice" history --last 1m --by gpu --json | json totals.0.by_process_ms)" -ge 2000
kill -KILL $busy $lazy 2>/dev/null
daemon_stop
finish
