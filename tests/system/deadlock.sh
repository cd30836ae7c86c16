#!/bin/sh
# Two that hold what the other waits for: the youngest burst demand gets out-of-memory, the older goes
# on. And a burst that nobody will ever make room for ends after the longest wait.
. "$(dirname "$0")/lib.sh"
config 'longest_wait: 30s'
config 'resolvers: wait'
daemon_start
start() { $RUN --request 0 --limit 0.95 --name "$1" -- "$P/holder" --bytes "$2" --count 2 --gap-ms "$3" --ms 500 >"$T/$1" & }
start old 320MiB 1500
old=$!
wait_event "$T/old" ask
start young 320MiB 2200
young=$!
began=$(now_ms)
wait $young
check "the younger demand got out-of-memory" $? = 3
check "by that name" "$(json -n error=CUDA_ERROR_OUT_OF_MEMORY <"$T/young")" = 1
check "long before the longest wait, ms" $(($(now_ms) - began)) -lt 20000
wait $old
check "the older went on" $? = 0
check_books_empty
daemon_stop
check "the daemon's status" $? = 0

rm -f "$CONFIG"
config 'longest_wait: 1500ms'
config 'resolvers: wait'
daemon_start
# The holder keeps working, so it does not count as waiting: only the clock can end this.
$RUN --request 0 --limit 0.95 --name worker -- sh -c "'$P/holder' --bytes 600MiB --ms 6000 & exec '$P/launcher' --ms 6000 --threads 1" >"$T/worker" &
worker=$!
wait_event "$T/worker" held
start=$(now_ms)
$RUN --request 0 --limit 0.95 -- "$P/holder" --bytes 500MiB >"$T/late"
check "a burst ends with out-of-memory" $? = 3
took=$(($(now_ms) - start))
check "after the longest wait, ms" $took -ge 1400
check "and soon after, ms" $took -lt 5000
wait $worker
check_books_empty
finish
