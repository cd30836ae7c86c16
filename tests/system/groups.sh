#!/bin/sh
# Groups of GPUs: projects are limited to them, and one that is free of swapping swaps nothing.
export BOX='--gpus 2 --memory 1GiB'
export LIMIT=140
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 1GiB'
config 'longest_wait: 1s'
config "data_dir: $T/data"
config 'gpu_groups:'
config '  calm: {gpus: 0, swap: off}'
config '  rest: {gpus: [1]}'
daemon_start
S="$B/sluice"
cat >"$T/projects.yaml" <<'END'
projects:
  answers: {gpu: {quota: 1}, pools: [calm]}
  steady: {gpu: {quota: 1}, swap: no}
  others: {gpu: {quota: 1}, pools: [rest]}
END
"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1 || fail "$(cat "$T/said")"

is_running() { [ "$("$S" ps --jobs --json | json "name=$1.state")" = running ]; }
has_left() { [ "$(use "$1" out_bytes)" -gt 0 ]; }
swaps() { "$S" gpus --json | json "gpu=$1.swap"; }

note "--- where projects may run"
check "GPU 0 is free of swapping, GPU 1 is not" "$(swaps 0) $(swaps 1)" = "0 1"
for project in answers steady others; do
	case $project in others) want=1 ;; *) want=0 ;; esac
	for request in 0 16MiB; do
		name=$project-$request
		"$S" submit --name "job-$name" --project $project --request $request -- sleep 80 >"$T/said" 2>&1 || fail "$(cat "$T/said")"
		until_true 20 is_running "job-$name" || fail "job-$name does not run: $("$S" why "job-$name")"
		check "submit --project $project --request $request" "$(use "job-$name" gpu)" = $want
		$RUN --name "$name" --project $project --request $request -- sleep 80 &
		until_true 20 use_is "$name" gpu $want
		check "run --project $project --request $request" "$(use "$name" gpu)" = $want
	done
done
$RUN --project answers --gpus 2 --request 0 -- true >"$T/said" 2>&1
check "two GPUs: refused" $? = 75
check_file "with the reason" "$T/said" 'project answers may use 1 of those'

note "--- on a GPU that is free of swapping nothing moves for others"
for project in answers others; do
	swapper idle$project --project $project --request 0 --limit 0.9
	ok idle$project alloc a 600m
	ok idle$project fill a 7
	swapper asks$project --project $project --request 0 --limit 0.9
done
refused "a burst waits, and gets nothing" CUDA_ERROR_OUT_OF_MEMORY asksanswers alloc burst 500m
check "nothing was moved" "$(use idleanswers out_bytes)" = 0
check "it is shown" "$(use idleanswers swap)" = 0
timeout 10 "$S" park idleanswers >"$T/said" 2>&1
check "it is not parked" $? = 75
ok asksothers alloc burst 500m
check "elsewhere it moves" "$(until_true 20 has_left idleothers && echo yes)" = yes

note "--- no request is lent there"
swapper guaranteed --project answers --request 200MiB
refused "beside a request" CUDA_ERROR_OUT_OF_MEMORY asksanswers alloc burst 250m
ok guaranteed alloc its 190m
contents idleanswers
contents idleothers
finish
