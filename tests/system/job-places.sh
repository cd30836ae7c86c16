#!/bin/sh
# Which GPU a job gets, by each `job_placement`, from a daemon that has seen no job before.
export BOX="--gpus 4 --memory 256MiB"
. "$(dirname "$0")/lib.sh"
software_only "four GPUs"

# submit NAME SHARE: it waits until the job has a GPU.
submit() {
	"$B/sluice" submit --name "$1" --request "$2" -- sleep 60 >>"$T/submit.log" || fail "not taken: $1"
	until_true 20 has_gpu "$1" || fail "$1 has no GPU: $("$B/sluice" ps --all)"
}
gpu_of() { "$B/sluice" ps --json | json "name=$1.gpu"; }
has_gpu() { [ -n "$(gpu_of "$1")" ]; }
# gpus NAME...: theirs, in order.
gpus() {
	for name in "$@"; do gpu_of "$name"; done | paste -s -d ' '
}
stop_all() {
	for name in "$@"; do "$B/sluice" stop "$name" >/dev/null 2>&1; done
	daemon_stop || fail "the daemon ended with $STATUS"
	rm -rf "$T/state"
}

daemon_start
for i in 1 2 3 4; do submit "a$i" 0.1; done
check "pack, four tenths" "$(gpus a1 a2 a3 a4)" = "0 0 0 0"
daemon_kill
daemon_start
submit a5 0.1
submit whole 1.0
check "pack, the next of a daemon that was killed" "$(gpus a5 whole)" = "0 1"
stop_all a1 a2 a3 a4 a5 whole

for policy in bestfit fgd; do
	echo "job_placement: $policy" >"$CONFIG"
	daemon_start
	for i in 1 2; do submit "b$i" 0.1; done
	check "$policy, two tenths" "$(gpus b1 b2)" = "0 0"
	stop_all b1 b2
done

echo 'job_placement: spread' >"$CONFIG"
daemon_start
for i in 1 2 3 4; do submit "c$i" 0.1; done
check "spread, four tenths" "$(gpus c1 c2 c3 c4 | tr ' ' '\n' | sort | paste -s -d ' ')" = "0 1 2 3"
stop_all c1 c2 c3 c4

echo 'job_placement: random' >"$CONFIG"
timeout 10 "$B/sluiced" --config "$CONFIG" --socket "$T/s" >"$T/random" 2>&1 && fail "any word is taken"
check_file "the words are named" "$T/random" "'random' is no choice; write pack, spread, bestfit or fgd"
finish
