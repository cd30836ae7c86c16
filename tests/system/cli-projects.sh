#!/bin/sh
# The GPUs of projects against their guarantees, and the users who hear that a new quota can take theirs.
export BOX="--gpus 1 --memory 2GiB"
export LIMIT=60
. "$(dirname "$0")/lib.sh"
software_only "a GPU of 2 GiB"
S="$B/sluice"
config 'host_memory: 512MiB'
daemon_start
$RUN --request 0.25 --name alpha -- sleep 100 &
$RUN --name free -- sleep 100 &
"$S" submit --request 0.25 --on-reclaim terminate --name job -- sleep 100 >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
three() { [ "$(workloads)" = 3 ]; }
until_true 20 three || fail "not all run"
"$S" project list >"$T/list"
check_file "used against quota, and nothing else has one" "$T/list" '^default  *0\.5  *0 '
printf 'projects:\n  lab:\n    gpu: {quota: 1}\n  vision:\n    parent: lab\n    gpu: {quota: 1}\n' >"$T/lab.yaml"
"$S" project apply "$T/lab.yaml" >"$T/said" 2>&1
check "projects are applied" $? = 0
user=$(id -un)
check_file "who can be parked now is said" "$T/said" "^alpha of $user can now be parked when another project claims its quota: project default is over its own$"
check_file "who would begin anew, too" "$T/said" "^job of $user can now be ended and started anew when"
check "and only they: the other has no request" "$(grep -c 'can now be' "$T/said")" = 2
"$S" project apply "$T/lab.yaml" >"$T/said" 2>&1
check "nothing is new the second time" "$(grep -c 'can now be' "$T/said")" = 0
$RUN --request 0.125 --project vision --name v -- sleep 100 &
four() { [ "$(workloads)" = 4 ]; }
until_true 20 four || fail "v does not run"
"$S" project list >"$T/list"
check_file "a project's use" "$T/list" '^  vision  *0\.125  *1 '
check_file "is its parent's" "$T/list" '^lab  *0\.125  *1 '
check "completion of a project" "$("$S" help --complete -- run --project '' | tr '\n' ' ')" = 'default lab vision '
check "as JSON" "$("$S" project list --json | json 'project=lab.used_gpus')" = 0.125000
"$S" park alpha >"$T/said" 2>&1
"$S" project list >"$T/list"
check_file "what is parked has given it up" "$T/list" '^default  *0\.25  *0 '
finish
