#!/bin/sh
# No job is stopped for another that `max_workloads` does not allow its user yet: the further tasks of a gang, and those
# that wait when one place of many that are wanted comes free.
export BOX="--gpus 4 --memory 256MiB"
export LIMIT=80
. "$(dirname "$0")/lib.sh"
software_only "four GPUs"
config 'host_memory: 2GiB'
config 'stop_grace: 1s'
config "bounds: {user $(id -u): {max_workloads: 3}}"
daemon_start
printf 'projects:\n  owner:\n    gpu: {quota: 4}\n  guest:\n    gpu: {quota: 0}\n' >"$T/projects"
"$B/sluice" project apply "$T/projects" >"$T/said" 2>&1 || fail "$(cat "$T/said")"
has_begun() { "$B/sluice" logs "$1" | grep -q begin; }
says() { "$B/sluice" why gang | grep -q "$1"; }
runs_with() { [ "$("$B/sluice" ps --json | grep -c '"name": "gang\.')" = "$1" ]; }

"$B/sluice" submit --project guest --gpus 2 --name lent -- "$P/stepper" --ms 20 --bytes 32MiB --until "$T/end" >"$T/said" 2>&1
until_true 20 has_begun lent || fail "lent does not run: $(cat "$T/said")"
"$B/sluice" submit --project owner --gpus 1 --gang 3 --min 2 --name gang -- sleep 60 >"$T/said" 2>&1
until_true 20 runs_with 2 || fail "the gang does not run: $(cat "$T/said")"
until_true 20 says 'with it there would be 4 tasks of its user at a time, and the administrator allows 3' ||
	fail "why names no bound: $("$B/sluice" why gang)"
check "the job that lies above its quota stays" "$("$B/sluice" ps --json | json name=lent.state)" = bound
check "and was not parked before" "$("$B/sluice" events | grep -c 'lent is being parked')" = 0
: >"$T/end"
until_true 20 runs_with 3
check "the third task starts once it may" $? = 0
"$B/sluice" stop gang >/dev/null 2>&1
is_in() { [ "$("$B/sluice" ps --all --json | json "name=$1.state")" = "$2" ]; }
until_true 20 is_in gang stopped || fail "the gang does not end"

rm "$T/end"
for i in 1 2; do
	"$B/sluice" submit --project guest --gpus 1 --name "lent$i" -- "$P/stepper" --ms 20 --bytes 32MiB --until "$T/end" >"$T/said" 2>&1
	until_true 20 has_begun "lent$i" || fail "lent$i does not run: $(cat "$T/said")"
done
for i in 1 2 3; do
	"$B/sluice" submit --project owner --gpus 2 --name "own$i" -- sh -c "until [ -e $T/own$i ]; do sleep 0.03; done" >"$T/said" 2>&1
done
until_true 20 is_in own1 running || fail "own1 does not run"
: >"$T/own1"
until_true 20 is_in own2 running || fail "own2 does not run"
: >"$T/own2"
until_true 20 is_in own3 running || fail "own3 does not run"
check "no job was parked for those that may not start" "$("$B/sluice" events | grep -c 'is being parked')" = 0
: >"$T/own3"
: >"$T/end"
finish
