#!/bin/sh
# Many threads on their own default streams, threads that come and go, many contexts: right with the gate
# open, and while a daemon made for that closes and opens it.
export LIMIT=150 BOX='--gpus 1 --memory 4GiB'
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
daemon_start
# right WHAT LEAST MODE...: under Sluice, without a word on stderr.
right() {
	what=$1 least=$2
	shift 2
	# A context takes 64 MiB of a GPU like this, and there are 34.
	$RUN --request 2GiB --limit 3600MiB -- "$S/threads" "$@" >"$T/threads" 2>"$T/err"
	check "$what: status" $? = 0
	check "$what: silence" "$(cat "$T/err")" = ""
	check "$what: done" "$(json -l event=end rounds <"$T/threads")" -ge "$least"
	check "$what: wrong" "$(json -l event=end wrong <"$T/threads")" = 0
	[ "$FAILED" = 0 ] || head -n 5 "$T/threads"
	check_books_empty
}
right "64 threads" 64 streams 2000
right "threads that come and go" 3000 comers 3000
right "32 contexts" 96 contexts
daemon_stop

note "a moving gate"
export LD_PRELOAD="${SLUICE_LIBRARY:-$B/libsluice.so}" SLUICE_WORKLOAD=00112233445566778899aabbccddeeff SLUICE_SOCKET="$T/g"
for mode in "streams 4000" "comers 2000 4000"; do
	rm -f "$T/g"
	LD_PRELOAD='' "$B/tests/system/gate-daemon" "$T/g" 60 11 >"$T/gates" 2>&1 &
	gates=$!
	LD_PRELOAD='' wait_event "$T/gates" listening
	# shellcheck disable=SC2086 # two words
	"$S/threads" $mode >"$T/threads" 2>&1
	check "$mode: status under a moving gate" $? = 0
	check "$mode: wrong" "$(json -l event=end wrong <"$T/threads")" = 0
	[ "$FAILED" = 0 ] || head -n 5 "$T/threads"
	wait $gates
	check "$mode: every order was answered" $? = 0
	check "$mode: times the gate was closed and opened" "$(json -l event=end cycles <"$T/gates")" -ge 5
done
finish
