#!/bin/sh
# A borrower that cannot give memory back stands in the way of a request: stopped by SIGSTOP, or in a kernel that
# does not end. It is found and shown, its workload gets nothing more above its request, and last_resort decides
# which goes without: the demand, or the borrower. All of it by the default chain, where memory is moved if its
# client lets it go; where nothing is moved, the demand waits if the memory may come.
export LIMIT=170
. "$(dirname "$0")/lib.sh"
software_only "a kernel that does not end"
config 'measure_interval: 100ms'
config 'untakeable_after: 2s'
config 'stop_grace: 1s'
config 'host_memory: 2GiB'
daemon_start
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" -ge "${2:-1}" ]; }
counted() { "$B/sluice" events --json | grep -c "\"reason\": \"$1\""; }
of_client() { "$B/sluice" ps --clients --json | json "pid=$1.$2"; }
waits() { [ "$(use "$1" waiting)" = 1 ]; }
pid_of() { json -l event=start pid <"$1"; }
# borrow OPTIONS...: a workload without a request, of one process that holds memory and one that takes and
# returns some; the first is $stuck.
borrow() {
	: >"$T/stuck"
	: >"$T/sibling"
	$RUN --request 0 --limit 0.9 --name borrower -- sh -c '
		"$0" --bytes 600MiB "$@" >'"$T/stuck"' &
		"$0" --bytes 0 --burst 8MiB --burst-ms 50 --gap-ms 100 --retries 1000000 --ms 100000 >'"$T/sibling"'
		wait' "$P/tenant" "$@" &
	borrower=$!
	wait_event "$T/stuck" held
	wait_event "$T/sibling" burst
	stuck=$(pid_of "$T/stuck")
	sibling=$(pid_of "$T/sibling")
}
end_borrower() {
	"$B/sluice" stop borrower --now >"$T/stop" 2>&1
	wait $borrower 2>/dev/null
	until_true 10 books_empty
}
# A workload that wants what it has requested.
own() {
	: >"$T/owner"
	$RUN --request 0.5 --name "$1" -- "$P/tenant" --bytes 400MiB --ms 200 >"$T/owner" &
	owner=$!
}
shown() { [ "$(of_client "$stuck" untakeable)" = 1 ]; }
ends_again() { happened UNTAKEABLE_ENDS "$1"; }
bursts() { json -n event=burst <"$T/sibling"; }
bursts_again() { [ "$(bursts)" -gt "$1" ]; }

note "stopped by SIGSTOP; the demand fails"
borrow --ms 100000
check "nobody is watched while nobody waits" "$(of_client "$stuck" untakeable)" = 0
kill -STOP "$stuck"
own first
until_true 20 shown
check "it is found" "$(of_client "$stuck" untakeable)" = 1
check "and why" "$(of_client "$stuck" condition)" = stopped
check "its sibling is another matter" "$(of_client "$sibling" untakeable)" = 0
check "the workload is marked" "$(use borrower untakeable)" = 1
"$B/sluice" ps >"$T/ps"
check_file "ps shows it" "$T/ps" ' borrower.*untakeable'
"$B/sluice" ps --clients >"$T/ps"
check_file "ps --clients shows it" "$T/ps" "^borrower +$stuck .*untakeable"
"$B/sluice" why borrower >"$T/why"
check_file "why says it of the borrower" "$T/why" "process $stuck of borrower cannot give memory back"
wait $owner
check "who asked is told out-of-memory" $? = 3
check_file "and no other error" "$T/owner" 'OUT_OF_MEMORY'
"$B/sluice" why first >"$T/why"
check_file "why says who stood in the way" "$T/why" 'first was denied .* within its request on GPU 0: borrower has .* above its own request and cannot'
happened UNTAKEABLE_BEGINS
check "an event" $? = 0
check "with the process" "$("$B/sluice" events --json | grep UNTAKEABLE_BEGINS | json pid)" = "$stuck"
until_true 5 happened LIMIT_DROPPED
check "its workload gets no burst" $? = 0
"$B/sluice" events --name borrower >"$T/events"
check_file "and is told why" "$T/events" 'borrower was denied .*: it gets no more memory while one of its processes cannot'
before=$(bursts)
kill -CONT "$stuck"
until_true 10 ends_again 1
check "it runs again: an event" $? = 0
until_true 10 bursts_again "$before"
check "its workload gets bursts again" $? = 0
check "it is not marked any more" "$(use borrower untakeable)" = 0

note "stopped by SIGSTOP; the borrower is stopped"
config 'last_resort: stop'
kill -HUP "$DAEMON"
kill -STOP "$stuck"
own second
wait $owner
check "who asked gets its memory" $? = 0
check "with the right contents" "$(json -l event=end wrong <"$T/owner")" = 0
gone "$stuck"
check "the borrower is gone" $? = 0
happened STOP_LAST_RESORT
check "an event" $? = 0
"$B/sluice" why borrower >"$T/why"
check_file "why says so" "$T/why" "process $stuck of borrower was stopped as the last resort.* where second needed"
check "its sibling lives" "$(gone "$sibling" && echo gone)" = ""
end_borrower

note "in one kernel that does not end; the demand fails"
sed -i '/last_resort/d' "$CONFIG"
kill -HUP "$DAEMON"
ended=$(counted UNTAKEABLE_ENDS)
# Nine seconds of work, then five of rest, and so on.
borrow --work 65 --period-ms 14000 --ms 100000
own third
until_true 20 shown
check "it is found" "$(of_client "$stuck" untakeable)" = 1
check "it runs" "$(of_client "$stuck" condition)" = running
check "and is busy, ms" "$(of_client "$stuck" busy_ms)" -ge 1900
wait $owner
check "who asked is told out-of-memory" $? = 3
"$B/sluice" why third >"$T/why"
check_file "why says who stood in the way" "$T/why" 'borrower has .* above its own request and cannot'
until_true 20 ends_again $((ended + 1))
check "the kernel ends: an event" $? = 0
end_borrower

note "in one kernel that does not end; the borrower is stopped"
config 'last_resort: stop'
kill -HUP "$DAEMON"
borrow --endless --term ignore --ms 100000
own fourth
wait $owner
check "who asked gets its memory" $? = 0
gone "$stuck"
check "the borrower is gone" $? = 0
check "its sibling lives" "$(gone "$sibling" && echo gone)" = ""
end_borrower

note "in one short kernel after the other: nobody untakeable, and moved between two of them"
sed -i '/untakeable_after/d' "$CONFIG"
config 'untakeable_after: 4s'
kill -HUP "$DAEMON"
begun=$(counted UNTAKEABLE_BEGINS)
borrow --work 50 --ms 100000
own moved
wait $owner
check "who asked gets its memory" $? = 0
check "with the right contents" "$(json -l event=end wrong <"$T/owner")" = 0
happened EVICTED_FOR
check "the borrower was moved" $? = 0
check "and lives" "$(gone "$stuck" && echo gone)" = ""
check "nobody was found untakeable" "$(counted UNTAKEABLE_BEGINS)" = "$begun"
end_borrower

note "the same, where nothing is moved"
config 'resolvers: wait'
kill -HUP "$DAEMON"
borrow --work 50 --ms 100000
own fifth
until_true 10 waits fifth
sleep 7
check "who asked waits still" "$(use fifth waiting)" = 1
check "nobody was found untakeable" "$(counted UNTAKEABLE_BEGINS)" = "$begun"
"$B/sluice" stop borrower --now >"$T/stop" 2>&1
wait $owner
check "and gets its memory when the borrower ends" $? = 0
wait $borrower 2>/dev/null
until_true 10 books_empty

note "nobody is in the way of a burst"
sed -i '/resolvers/d' "$CONFIG"
kill -HUP "$DAEMON"
borrow --ms 100000
kill -STOP "$stuck"
$RUN --request 0 --limit 0.9 --longest-wait 6s --name burst -- "$P/tenant" --bytes 400MiB --ms 200 >"$T/burst" &
burst=$!
wait $burst
check "a burst waits its time, and is told" $? = 3
check "nobody was stopped for it" "$(gone "$stuck" && echo gone)" = ""
end_borrower
check_books_empty
daemon_stop
check "the daemon ends well" $? = 0
finish
