#!/bin/sh
# What makes moving to another GPU hard: work in many threads and streams, captures, copies in progress, memory that is
# shared, deaths of daemon, helper and program, a GPU that fills up meanwhile. None loses a word, and what cannot
# go runs on where it is.
export BOX='--gpus 2 --memory 1GiB --context 8MiB --module 1MiB'
export LIMIT=280
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "kernels that never end"
config 'host_memory: 3GiB'
config 'detach_contexts: yes'
daemon_start

# goes NAME: to the other GPU.
goes() {
	CHECKS=$((CHECKS + 1))
	goes_to=$(other_of "$1")
	move "$1" --gpu "$goes_to" || fail "move $1: $(cat "$T/move.out"): $("$B/sluice" why "$1" 2>&1 | head -n 3)"
	until_true 10 is_on "$1" "$goes_to" || fail "$1 is not on GPU $goes_to, but on \"$(where "$1")\""
}
helper() { pgrep -P "$DAEMON" sluice-move; }
requests() { "$B/sluice" gpus --json | json "$1.requests_bytes"; }

for work in "callbacks 3 64k 1" "values 3 64k 1" "graphs 2 1m 5" "comers 4 256k 0" "contexts 2 256k 5" \
	"churn 4 1m 0" "copies 2 1m 0" "queries 2 1m 1" "rounds 200 64k 5"; do
	name=${work%% *}
	swapper "$name" --request 0.1 --limit 0.5
	ok "$name" alloc big 30m
	ok "$name" fill big 1
	# shellcheck disable=SC2086 # words
	ok "$name" begin $work
	goes_on "$name" || fail "$name: nothing is done at all"
	for trip in 1 2 3; do
		goes "$name"
		goes_on "$name" || fail "$name: its threads stand still after trip $trip"
	done
	stop_work "$name"
	contents "$name" "after its trips"
	end_swapper "$name"
done
check_books_empty

note "--- while a graph is recorded it waits; then it goes, and the graph runs there"
swapper graph --request 0.1 --limit 0.5
ok graph alloc big 30m
ok graph fill big 1
ok graph capture big 3
"$B/sluice" move graph --gpu "$(other_of graph)" --no-wait >"$T/move.out" 2>&1 || fail "cannot begin: $(cat "$T/move.out")"
sleep 1
from=$(where graph)
ok graph endcapture
until_true 20 is_on graph $((1 - from)) || fail "it does not go after the capture"
ok graph replay
ok graph sync
contents graph "after the graph ran there"
end_swapper graph

note "--- memory that is shared stays, and so does its process"
swapper giver --request 0.2 --limit 0.5
ok giver alloc shared 16m
ok giver fill shared 1
ok giver export shared "$T/handle"
from=$(where giver)
move giver --gpu $((1 - from))
check "it is refused" $? != 0
until_true 10 is_at giver bound || fail "it does not run: $(residency giver)"
is_on giver "$from" || fail "it is elsewhere"
contents giver
end_swapper giver
check_books_empty

note "--- the target is killed on its way: both places are free"
swapper dies --request 0.4
ok dies alloc big 200m
ok dies fill big 1
"$B/sluice" move dies --gpu "$(other_of dies)" --no-wait >"$T/move.out" 2>&1
kill_swapper dies
check_books_empty
check "nothing is reserved on the other GPU" "$(requests 1)" = 0

note "--- the helper dies, at any time"
swapper one --request 0.3
ok one alloc big 200m
ok one fill big 1
for _ in 1 2 3; do
	"$B/sluice" move one --gpu "$(other_of one)" --no-wait >"$T/move.out" 2>&1
	for _ in 1 2 3 4 5; do
		# shellcheck disable=SC2046 # none or one
		kill -KILL $(helper) 2>/dev/null
		sleep 0.1
	done
	until_true 40 is_at one bound || fail "it is not back: $(residency one): $("$B/sluice" why one)"
	contents one "after its helper died"
	check "the driver and the books agree" "$(where one)" = "$(use one gpu)"
done

note "--- the daemon dies, at any time"
for pause in 0 0.05 0.1 0.2 0.4 0.8; do
	"$B/sluice" move one --gpu "$(other_of one)" --no-wait >"$T/move.out" 2>&1
	sleep $pause
	daemon_kill
	daemon_start
	until_true 40 is_at one bound || fail "it is not back: $(residency one): $("$B/sluice" why one)"
	contents one "after its daemon died"
	check "the driver and the books agree ($pause)" "$(where one)" = "$(use one gpu)"
done

note "--- a process that begins later is on the GPU that the workload is on now"
end_swapper one
export P T
mkfifo "$T/first.in" "$T/second.in"
: >"$T/first" && : >"$T/second"
cat >"$T/family" <<'SHELL'
"$P/swapper" <>"$T/first.in" >"$T/first" 2>"$T/first.err" &
until [ -e "$T/go" ]; do sleep 0.05; done
exec "$P/swapper" <>"$T/second.in" >"$T/second" 2>"$T/second.err"
SHELL
$RUN --name family --request 0.3 -- sh "$T/family" >"$T/family.out" 2>&1 &
family=$!
until_true 20 grep -q start "$T/first" || fail "first does not start"
# shellcheck disable=SC2034 # for pid_of
PID_first=$(grep start "$T/first" | json value)
ok first alloc a 64m
ok first fill a 1
goes_to=$(other_of family)
move family --gpu "$goes_to" || fail "cannot move it: $(cat "$T/move.out")"
until_true 10 is_on first "$goes_to" || fail "first is not on GPU $goes_to"
: >"$T/go"
until_true 20 grep -q start "$T/second" || fail "second does not start: $(cat "$T/second.err")"
# shellcheck disable=SC2034 # for pid_of
PID_second=$(grep start "$T/second" | json value)
ok second alloc a 64m
ok second fill a 2
is_on second "$goes_to" || fail "second is on GPU $(where second), not $goes_to"
check "all of it is booked there" "$("$B/sluice" gpus --json | json "$((1 - goes_to)).backing_bytes")" = 0
goes_to=$((1 - goes_to))
move family --gpu "$goes_to" || fail "cannot move both: $(cat "$T/move.out")"
for name in first second; do
	until_true 10 is_on $name "$goes_to" || fail "$name is not on GPU $goes_to"
	contents $name "moved together"
	echo exit >"$T/$name.in"
done
wait $family
check "both end" $? = 0
check_books_empty
finish
