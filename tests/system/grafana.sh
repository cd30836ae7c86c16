#!/bin/sh
# The dashboard asks for what the daemon tells, and for nothing else.
export LIMIT=60
. "$(dirname "$0")/lib.sh"
software_only "workloads, a project and a job are made on one GPU"
D=$(dirname "$0")/../../share/grafana/sluice.json
board() { "$B/tests/system/grafana-check" "$1" "$T/m" >"$T/said" 2>&1; }
ask() { "$B/tests/system/http-client" "$T/metrics.sock" get /metrics >"$T/m"; }

config "metrics: $T/metrics.sock"
daemon_start
printf 'projects:\n  lab:\n    gpu: {quota: 1, limit: 1}\n' >"$T/lab.yaml"
"$B/sluice" project apply "$T/lab.yaml" >"$T/said" 2>&1 || fail "no project: $(cat "$T/said")"
$RUN --request 50MiB --limit 100MiB --project lab -- "$P/holder" --bytes 50MiB --ms 60000 >"$T/a" &
a=$!
wait_event "$T/a" held
"$B/sluice" submit --request 50MiB --project lab --name job -- "$P/holder" --bytes 20MiB --ms 100 >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
summed() { ask && grep -q '^sluice_project_gpu_seconds_total{project="lab",kind="allocated"} [0-9.]*[1-9]' "$T/m"; }
until_true 20 summed || fail "nothing is summed up"
board "$D"
check "it asks for what there is, and every panel says what it shows" "$?-$(cat "$T/said")" = "0-"
# What it would say.
wrong() { # WHAT PATTERN SED-SCRIPT
	sed "$3" "$D" >"$T/wrong.json"
	board "$T/wrong.json"
	check "$1: status" $? = 1
	check_file "$1" "$T/said" "$2"
}
wrong "a metric that there is not" 'there is no sluice_gpu_evil_bytes' 's/sluice_gpu_evicted_bytes/sluice_gpu_evil_bytes/'
wrong "a label that it has not" 'sluice_jobs has no label project' 's/sluice_jobs{/sluice_jobs{project=~\\"$project\\",/'
wrong "a value that it has not" 'no sluice_user_gpu_seconds_total has kind="lazy"' 's/kind=\\"idle\\"/kind=\\"lazy\\"/'
wrong "no unit" 'it has no unit' 's/"unit": "Bps"/"unit": ""/'
if promtool=$("$(dirname "$0")/../../tools/promtool" "$B" 2>"$T/why"); then
	"$B/tests/system/grafana-check" rules "$D" >"$T/rules.yml"
	"$promtool" check rules "$T/rules.yml" >"$T/said" 2>&1
	check "Prometheus reads every expression" "$?-$(grep -c 'rules found' "$T/said")" = 0-1
else
	note "skipped: Prometheus' own checker: $(cat "$T/why")"
fi
kill -KILL $a 2>/dev/null
daemon_stop
finish
