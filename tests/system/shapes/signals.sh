#!/bin/sh
# A thousand signals a second into threads inside our functions, at a closed gate, and waiting for memory: no
# call fails or hangs for it. Callbacks that jump within themselves or wait for a submitting thread's lock.
export LIMIT=150
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
daemon_start
for how in "" restart stack "restart stack"; do
	# shellcheck disable=SC2086 # words
	$RUN --request 300MiB -- "$S/signals" storm 1500 $how >"$T/storm" 2>"$T/err"
	check "storm $how: status" $? = 0
	check "storm $how: silence" "$(cat "$T/err")" = ""
	check "storm $how: signals" "$(json -l event=end signals <"$T/storm")" -gt 200
	check "storm $how: rounds" "$(json -l event=end rounds <"$T/storm")" -gt 10
	check "storm $how: wrong" "$(json -l event=end wrong <"$T/storm")" = 0
done
$RUN --request 300MiB -- "$S/signals" callbacks 1000 >"$T/callbacks" 2>&1
check "callbacks: status" $? = 0

note "waiting for memory"
$RUN --request 0 --limit 0.9 --name holds -- "$P/holder" --bytes 700MiB --until "$T/enough" >"$T/holds" &
holds=$!
wait_event "$T/holds" held
$RUN --request 0 --limit 0.9 --name waits -- "$S/signals" memory 600 >"$T/waits" 2>&1 &
waits=$!
wait_event "$T/waits" ask
is_waiting() { [ "$(gpu waiting)" = 1 ]; }
until_true 20 is_waiting
check "it waits" $? = 0
# Stopped and continued meanwhile, as by a shell: the wait goes on.
kill -STOP $waits
sleep 0.3
kill -CONT $waits
# Signals come meanwhile.
sleep 2
: >"$T/enough"
wait $waits
check "and gets it" $? = 0
check "without an error" "$(json -l event=got result <"$T/waits")" = CUDA_SUCCESS
check "signals while it waited" "$(json -l event=got signals_meanwhile <"$T/waits")" -gt 100
wait $holds
check_books_empty
daemon_stop

note "a moving gate"
export LD_PRELOAD="${SLUICE_LIBRARY:-$B/libsluice.so}" SLUICE_WORKLOAD=00112233445566778899aabbccddeeff SLUICE_SOCKET="$T/g"
for mode in "storm 3000" "storm 3000 restart" "storm 3000 stack" "callbacks 3000" "callbacks 3000 pageable"; do
	rm -f "$T/g"
	LD_PRELOAD='' "$B/tests/system/gate-daemon" "$T/g" 60 13 >"$T/gates" 2>&1 &
	gates=$!
	LD_PRELOAD='' wait_event "$T/gates" listening
	# shellcheck disable=SC2086 # words
	"$S/signals" $mode >"$T/storm" 2>&1
	check "$mode: status under a moving gate" $? = 0
	check "$mode: wrong" "$(json -l event=end wrong <"$T/storm")" = 0
	[ "$FAILED" = 0 ] || head -n 5 "$T/storm"
	wait $gates
	answered=$?
	# A thread inside a copy or a wait waits for a callback, which waits for a thread in front of the gate:
	# it is not out until the gate is given up, as it must be at a deadline. The program goes on and is right.
	case $mode in callbacks*) continue ;; esac
	check "$mode: every order was answered" $answered = 0
	check "$mode: times the gate was closed and opened" "$(json -l event=end cycles <"$T/gates")" -ge 5
done
finish
