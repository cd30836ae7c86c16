#!/bin/sh
# Jobs go to any GPU: what was parked for another project comes back to whichever GPU is free first, and small ones
# are joined so that one that needs a whole GPU starts.
export BOX='--gpus 4 --memory 1GiB --context 8MiB --module 1MiB'
export LIMIT=200
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 4GiB'
config 'detach_contexts: yes'
config 'move_budget: 10'
daemon_start

state_of() { "$B/sluice" ps --all --json | json "name=$1.state"; }
is_running() { is_in "$1" running; }
is_in() { [ "$(state_of "$1")" = "$2" ]; }
# As the driver lists them: one process on the GPU of NAME.
is_alone() { [ "$("$P/nvml-view" | grep -c "\"what\":\"process\",\"index\":$(gpu_of "$1"),")" = 1 ]; }
gpu_of() { use "$1" gpu; }
submit() { "$B/sluice" submit "$@" >"$T/submit.out" 2>&1 || fail "submit $1: $(cat "$T/submit.out")"; }

note "--- small ones are joined for one that needs a whole GPU"
for name in a b c d; do
	swapper $name --request 0.25 --limit 0.5
	ok $name alloc m 100m
	ok $name fill m 9
done
gpus_used() { for name in a b c d; do where $name; done | sort -u | wc -l; }
check "they use several GPUs" "$(gpus_used)" -gt 1
submit --name whole --request 1 -- "$P/holder" --bytes 500MiB --verify --ms 4000
until_true 40 is_running whole || fail "it does not start: $("$B/sluice" why whole)"
check "it has a GPU to itself" "$(until_true 10 is_alone whole && echo yes)" = yes
for name in a b c d; do
	contents $name "beside the whole one"
done
until_true 40 is_in whole "done" || fail "it does not end: $(state_of whole)"
for name in a b c d; do
	end_swapper $name
done
check_books_empty

note "--- two projects of two GPUs each: what was lent comes back elsewhere"
printf 'projects:\n  text:\n    gpu: {quota: 2}\n  vision:\n    gpu: {quota: 2}\n' >"$T/projects"
"$B/sluice" project apply "$T/projects" >"$T/apply" 2>&1 || fail "projects: $(cat "$T/apply")"
for i in 1 2 3 4; do
	submit --project text --name t$i --request 1 -- "$P/holder" --bytes 300MiB --verify --until "$T/end$i" --ms 60000
done
for i in 1 2 3 4; do
	until_true 20 is_running t$i || fail "t$i does not start: $("$B/sluice" why t$i)"
done
submit --project vision --name v --request 1 -- "$P/holder" --bytes 300MiB --verify --ms 60000
until_true 30 is_running v || fail "v does not start: $("$B/sluice" why v)"
parked=
for i in 1 2 3 4; do
	is_in t$i parked && parked=t$i
done
check "one of the others is parked" "$parked" != ''
was=$(gpu_of "$parked")
for i in 1 2 3 4; do
	[ "t$i" = "$parked" ] || first=${first:-t$i}
done
: >"$T/end${first#t}"
until_true 30 is_in "$first" "done" || fail "$first does not end: $(state_of "$first")"
until_true 30 is_running "$parked" || fail "$parked does not come back: $("$B/sluice" why "$parked")"
check "it is on another GPU" "$(gpu_of "$parked")" != "$was"
for name in v "$parked"; do
	check "$name has a GPU to itself" "$(until_true 10 is_alone "$name" && echo yes)" = yes
done
for i in 1 2 3 4; do
	: >"$T/end$i"
done
for i in 1 2 3 4; do
	until_true 40 is_in t$i "done" || fail "t$i: $(state_of t$i)"
done
"$B/sluice" stop v >"$T/stop" 2>&1
check_books_empty
finish
