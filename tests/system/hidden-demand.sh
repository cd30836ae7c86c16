#!/bin/sh
# A workload within its request gets its context and its modules, although a borrower has filled the GPU: the driver's
# out-of-memory becomes a demand that waits. A burst beside which the borrower could never be whole is refused. Where
# both can be whole, it gets memory by moving idle clients. Where none is moved and it may not wait long, it is told
# out-of-memory as before.
export BOX="--gpus 1 --memory 1GiB --context 64MiB --module 32MiB"
. "$(dirname "$0")/lib.sh"
software_only "a context of known size"
# Long enough for a busy machine; it is waited for only where the wait is to end.
# The reserve is the driver's own, so contexts and code are demands.
printf 'longest_wait: 20s\ncontext_reserve: 8MiB\n' >"$CONFIG"
daemon_start
hog() {
	rm -f "$T/hog" # what an earlier one said
	$RUN --request 0 --limit "$2" --name hog -- "$P/memhog" --piece 4MiB --hold-ms "$1" >"$T/hog" &
	hog=$!
	wait_event "$T/hog" took
}
hog 2500 1.0
$RUN --request 240MiB --name owed -- "$P/tenant" --bytes 64MiB --ms 10 >"$T/owed"
check "a workload within its request ends well" $? = 0
check "and never saw out-of-memory" "$(json -n event=oom <"$T/owed")" = 0
wait $hog
check "the borrower, too" $? = 0
check_books_empty
hog 30000 1.0
$RUN --request 0 --limit 0.5 --name burst -- "$P/tenant" --bytes 64MiB --ms 10 >"$T/burst" 2>"$T/refused"
check "a burst beside which the borrower could never be whole is refused" $? = 75
check "with the numbers" "$(grep -c 'refused: its context needs about .* MiB on GPU 0, but .* of the reserve' "$T/refused")" = 1
kill -KILL $hog
wait $hog 2>/dev/null
check_books_empty
hog 30000 0.85
$RUN --request 0 --limit 0.5 --name burst -- "$P/tenant" --bytes 64MiB --ms 10 >"$T/burst"
check "a burst has the idle one moved" $? = 0
kill -KILL $hog
wait $hog 2>/dev/null
check_books_empty
printf 'longest_wait: 1s\nresolvers: wait\ncontext_reserve: 8MiB\n' >"$CONFIG"
daemon_stop
daemon_start
hog 30000 0.85
$RUN --request 0 --limit 0.5 --name burst -- "$P/tenant" --bytes 64MiB --ms 10 >"$T/burst"
check "a burst that may not wait longer is out of memory" $? = 3
kill -KILL $hog
wait $hog 2>/dev/null
check_books_empty
finish
