#!/bin/sh
# Launches from many threads under Sluice: right and in order, with the gate open, with fences in place
# of membarrier, and with the gate closed and opened all the time by a daemon made for that.
. "$(dirname "$0")/lib.sh"
daemon_start
$RUN -- "$P/launcher" --threads 4 --ms 1500 >"$T/open"
check "status" $? = 0
check "launches" "$(json -l event=end launches <"$T/open")" -gt 100
check "wrong" "$(json -l event=end wrong <"$T/open")" = 0
SLUICE_NO_MEMBARRIER=1 $RUN -- "$P/launcher" --threads 4 --ms 1000 >"$T/fence"
check "without membarrier: status" $? = 0
check "without membarrier: wrong" "$(json -l event=end wrong <"$T/fence")" = 0
check_books_empty
daemon_stop
export LD_PRELOAD="${SLUICE_LIBRARY:-$B/libsluice.so}" SLUICE_WORKLOAD=00112233445566778899aabbccddeeff SLUICE_SOCKET="$T/g"
for mode in membarrier fence; do
	rm -f "$T/g" "$T/enough"
	[ $mode = fence ] && export SLUICE_NO_MEMBARRIER=1
	LD_PRELOAD='' "$B/tests/system/gate-daemon" "$T/g" 120 7 50 "$T/enough" >"$T/gates" 2>&1 &
	gates=$!
	LD_PRELOAD='' wait_event "$T/gates" listening
	"$P/launcher" --threads 4 --ms 60000 --until "$T/enough" >"$T/load" 2>&1
	check "$mode: status under a moving gate" $? = 0
	check "$mode: wrong" "$(json -l event=end wrong <"$T/load")" = 0
	wait $gates
	check "$mode: every order was answered" $? = 0
	note "$(tail -n 1 "$T/gates") $(tail -n 1 "$T/load")"
	check "$mode: times the gate was closed and opened" "$(json -l event=end cycles <"$T/gates")" -ge 50
	check "$mode: the gate held launches back, us" "$(json -l event=end longest_us <"$T/load")" -ge 60000
	check "$mode: launches got through between" "$(json -l event=end launches <"$T/load")" -gt 100
done
finish
