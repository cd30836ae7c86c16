#!/bin/sh
# utilisation.sh BUILD [unsaid]: which process used a GPU. Work beside a process that only holds memory belongs to the worker if NVML tells
# the work of each process; otherwise both may have worked.
export LIMIT=85
export UNSAID="${UNSAID-${2-}}"
[ -z "$UNSAID" ] || export BOX="--memory 1GiB --process-use 0"
. "$(dirname "$0")/lib.sh"
software_only "what its NVML tells of processes is known"
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
by_process() { "$B/sluice" history --last 1m --by gpu --json | json totals.0.by_process_ms; }
# The driver may lag for a while, in which the worker is unknown; apart from that it was the one alone.
told_apart() {
	lazy_was=$(total lazy active_ms) busy_was=$(total busy active_ms) said_was=$(by_process)
	sleep 2
	[ "$(by_process)" -ge $((said_was + 1000)) ] && [ "$(total busy active_ms)" -ge $((busy_was + 1000)) ] &&
		[ "$(total lazy active_ms)" = "$lazy_was" ]
}
if [ -n "$UNSAID" ]; then
	check "who may have worked did" "$(total lazy active_ms)" -ge 2000
	check "and used its part" "$(total lazy used_gpu_s | tr -d .)" -gt 0
	check "metrics say that it is not known" "$(metric sluice_gpu_utilisation_by_process)" = 0
	check "so does the history" "$(by_process)" = 0
else
	check "the one works, and the other only holds memory" "$(until_true 40 told_apart && echo yes)" = yes
	check "what it was allocated was idle" "$(total lazy idle_gpu_s | tr -d .)" -gt 0
	known_now() { [ "$(metric sluice_gpu_utilisation_by_process)" = 1 ]; }
	check "metrics say so" "$(until_true 10 known_now && echo yes)" = yes
	check "the history says so" "$(by_process)" -ge 1000
fi
kill -KILL $busy $lazy 2>/dev/null
daemon_stop
finish
