#!/bin/sh
# A machine with GPUs of two models: a task gets GPUs of one model, a gang may have both, a project only those of its pools.
export BOX="--gpus 4 --models L4,H100,L4,H100 --memory 256MiB"
export LIMIT=80
. "$(dirname "$0")/lib.sh"
software_only "two models"
S="$B/sluice"
config 'host_memory: 1GiB'
daemon_start
cat >"$T/projects.yaml" <<'YAML'
projects:
  any:
    gpu: {quota: 2}
  large:
    gpu: {quota: 2}
    pools: [h100]
  none:
    gpu: {quota: 2}
    pools: [a100]
YAML
"$S" project apply "$T/projects.yaml" >/dev/null || fail "projects cannot be applied"
# status_of WANTED COMMAND...: its exit status; what it said is in $T/said.
status_of() {
	status_want=$1
	shift
	timeout 40 "$@" >"$T/said" 2>&1
	ended=$?
	check "$(echo "$*" | sed "s|$S|sluice|" | cut -c -70)" $ended = "$status_want"
}
# gpus NAME SUBMIT-OPTIONS...: submitted, and waited for; what GPUs its tasks got.
gpus() {
	gpus_name=$1
	shift
	"$S" submit --wait --name "$gpus_name" "$@" -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"' >"$T/said" 2>&1 || fail "$gpus_name: $(cat "$T/said")"
	cat "$T/said" >>"$T/all"
	for gpus_task in ${TASKS:-0}; do "$S" logs "$gpus_name" --task "$gpus_task"; done | sort | tr '\n' ' '
}

note "--- a task stays within a model"
check "two GPUs of one model" "$(gpus pair --project any --gpus 2 | tr ',' '+')" = "0+2 "
check "two of those that the project may use" "$(gpus large-pair --project large --gpus 2 | tr ',' '+')" = "1+3 "
status_of 75 "$S" submit --project any --gpus 3 -- true
check_file "three are refused" "$T/said" 'one task wants 3 GPUs, but no node .* more than 2 GPUs'
check "four tasks have both models" "$(TASKS='0 1 2 3' gpus four --project any --gang 4)" = "0 1 2 3 "
status_of 75 "$S" submit --project large --gang 3 -- true
status_of 75 "$S" submit --project none -- true
check_file "a model that is not here" "$T/said" 'project none may use GPUs of a100 only, and .* has none'
check "a model named by CUDA_VISIBLE_DEVICES" "$(CUDA_VISIBLE_DEVICES=1,3 gpus seen --project any --gpus 2 | tr ',' '+')" = "1+3 "
check "a GPU named by CUDA_VISIBLE_DEVICES" "$(CUDA_VISIBLE_DEVICES=3 gpus named --project any)" = "3 "
check "of GPUs of both models, the one that the project may use" "$(CUDA_VISIBLE_DEVICES=2,1 gpus parts --project large)" = "1 "
status_of 75 env CUDA_VISIBLE_DEVICES=0,1 "$S" submit --project any --gpus 2 -- true
check_file "two models for one task are refused" "$T/said" 'one task wants 2 GPUs, but no node .* more than 1 GPU'

check "what the queue has not looked at yet is told as foreseen" "$(grep -c 'not considered it yet' "$T/all")" = 0

note "--- who is taken back is whoever stands on that model"
for i in 1 2 3 4; do
	"$S" submit --project any --name "a$i" -- "$P/stepper" --ms 20 --bytes 32MiB --until "$T/a.end" >"$T/said" 2>&1 || fail "a$i: $(cat "$T/said")"
done
running() { [ "$("$S" ps --all --json | grep -c '"state": "running"')" = "$1" ]; }
until_true 30 running 4 || fail "four do not run"
"$S" submit --project large --name b --gpus 2 -- "$P/stepper" --ms 50 --bytes 32MiB --steps 5 >"$T/said" 2>&1 || fail "b: $(cat "$T/said")"
status_of 0 "$S" wait b
: >"$T/a.end"
for i in b a1 a2 a3 a4; do
	status_of 0 "$S" wait "$i"
	"$S" logs "$i" >"$T/log"
	check_file "$i came to the right result" "$T/log" '"right":true'
done
"$S" events >"$T/events"
check "who gave way for two GPUs of that model" "$(grep -c 'a[1-4] is parked with .* comes back by itself' "$T/events")" = 2
check_books_empty

note "--- a run that names a GPU takes back what runs there"
for i in 0 1 2 3; do
	CUDA_VISIBLE_DEVICES=$i "$S" submit --project any --name "g$i" -- "$P/stepper" --ms 20 --bytes 32MiB --until "$T/g.end" >"$T/said" 2>&1 || fail "g$i: $(cat "$T/said")"
	until_true 30 running $((i + 1)) || fail "g$i does not run"
done
CUDA_VISIBLE_DEVICES=1 "$S" run --wait --project large --request 0.9 --name claims -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"' >"$T/said" 2>"$T/log"
check "the run" $? = 0
check_file "it has its GPU" "$T/said" '^1$'
: >"$T/g.end"
for i in 0 1 2 3; do status_of 0 "$S" wait "g$i"; done
"$S" events >"$T/events"
check "the job there was parked, and no other" "$(grep -o 'g[0-3] is parked with' "$T/events" | sort -u)" = 'g1 is parked with'
check_books_empty

note "--- a GPU is lost; whoever stood on it begins anew on another of that model, also if it ended by itself at that"
"$S" submit --project large --name moved -- "$P/stepper" --ms 50 --bytes 32MiB --until "$T/moved.end" >"$T/said" 2>&1 || fail "moved: $(cat "$T/said")"
steps() { "$S" logs moved | grep -q '"step"'; }
until_true 30 steps || fail "moved does not run"
"$S" softgpu --lose "$(use moved gpu)"
# A node that refused it would be left out for longer.
begun_twice() { [ "$("$S" logs moved | grep -c '"begin"')" = 2 ]; }
until_true 30 begun_twice || fail "moved is not begun anew: $("$S" why moved)"
: >"$T/moved.end"
status_of 0 "$S" wait moved
"$S" logs moved >"$T/log"
check "moved began" "$(grep -c '"begin"' "$T/log")" = 2
check_file "moved came to the right result" "$T/log" '"right":true'
"$S" submit --project large --name wide --gpus 2 -- true >"$T/said" 2>&1
check "what needs a lost GPU is refused" $? = 75
"$S" submit --project any --name blind -- sleep 60 >"$T/said" 2>&1 || fail "blind: $(cat "$T/said")"
for i in 0 1 2 3; do
	"$S" softgpu --lose "$i" 2>/dev/null
done
no_gpu() { "$S" why blind | grep -q 'is queued, .*; there is no GPU here that works now; it runs when there is one again, and sluice doctor'; }
until_true 30 no_gpu || fail "without a GPU: $("$S" why blind)"
for request in 0 1.0; do
	"$S" submit --try --request $request -- true >"$T/said" 2>&1
	check_file "without a GPU, with a request of $request" "$T/said" '^it waits: there is no GPU here that works now'
done
finish
