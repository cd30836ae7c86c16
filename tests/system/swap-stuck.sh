#!/bin/sh
# A borrower is stopped in the middle of its own way back from the host, and memory is kept for it: a workload that
# wants its request back lacks that memory. It is told which process is in its way, and has its memory once that
# goes on; with `last_resort: stop` the borrower is ended for it.
# The middle is seen by a call of the driver that does not come back meanwhile.
export LIMIT=100
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a fault plan"
config 'host_memory: 1GiB'
config 'untakeable_after: 2s'
config 'stop_grace: 1s'
daemon_start
read_plans
put_plan ""
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" -ge 1 ]; }
why_says() { "$B/sluice" why "$1" 2>&1 | sed '/^Before/,$d' | grep -q "$2"; }
try_resume() { "$B/sluice" resume --no-wait "$1" >"$T/resume.out" 2>&1 || fail "resume $1: $(cat "$T/resume.out")"; }
untakeable() { [ "$("$B/sluice" ps --clients --json | json "pid=$1.untakeable")" = 1 ]; }
# The owner is on the host; the borrower is stopped on its way back. Then the owner is to be back, too.
stop_half_way() {
	park owner
	swapper borrower --request 0 --limit 0.9
	ok borrower alloc big 300m
	ok borrower fill big 2
	park borrower
	rm -f "$PLAN.met"
	put_plan "cuMemMap:1=hang"
	try_resume borrower
	until_true 20 test -s "$PLAN.met"
	check "the borrower is on its way back" $? = 0
	stuck=$(pid_of borrower)
	kill -STOP "$stuck"
	put_plan ""
	try_resume owner
}
swapper owner --request 0.6
ok owner alloc big 230m
ok owner fill big 1

note "the owner waits until the borrower goes on"
stop_half_way
until_true 20 untakeable "$stuck"
check "the borrower is found" $? = 0
until_true 10 why_says owner "process $stuck of borrower occupies or reserves"
ended=$?
check "why names the process in the way: $("$B/sluice" why owner 2>&1 | head -n 2)" $ended = 0
check "the owner is not back" "$(residency owner)" = evicted
check "the borrower lives" "$(gone "$stuck" && echo gone)" = ""
kill -CONT "$stuck"
settled owner bound
contents owner "after its wait"
contents borrower "after its stop"
end_swapper borrower

note "the last resort is to stop it"
config 'last_resort: stop'
kill -HUP "$DAEMON"
stop_half_way
settled owner bound
gone "$stuck"
check "the borrower is gone" $? = 0
wait "$stuck" 2>/dev/null
happened STOP_LAST_RESORT
check "an event" $? = 0
contents owner "after the other's end"
end_swapper owner
check_books_empty
finish
