#!/bin/sh
# Two that hold memory that the other waits for: the youngest burst demand gets out-of-memory, the
# older goes on. And a burst for which no memory will ever be free ends after the longest wait.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
# So long that nothing here ends by it.
config 'longest_wait: 1h'
config 'resolvers: wait'
daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
for name in old young; do
	swapper $name --request 0 --limit 0.95
	ok $name alloc first 320m
done
later old alloc second 320m
until_true 20 waiting 1 || fail "the older one does not wait"
later young alloc second 320m
until_true 40 late young 1 || fail "nobody is denied"
check "the younger demand got out-of-memory" "$(grep async "$T/young" | json result)" = CUDA_ERROR_OUT_OF_MEMORY
check "the older one waits on" "$(late old 1 && echo answered)" = ""
end_swapper young
until_true 20 late old 1 || fail "the older one does not go on"
check "the older went on" "$(grep async "$T/old" | json result)" = CUDA_SUCCESS
end_swapper old
check_books_empty
daemon_stop
check "the daemon's status" $? = 0

rm -f "$CONFIG"
config 'longest_wait: 1500ms'
config 'resolvers: wait'
daemon_start
# The holder keeps working, so it does not count as waiting: only the clock can end this.
$RUN --request 0 --limit 0.95 --name worker -- sh -c "'$P/holder' --bytes 600MiB --until '$T/end' & '$P/launcher' --ms 100000 --until '$T/end' --threads 1; wait" >"$T/worker" &
worker=$!
wait_event "$T/worker" held
start=$(now_ms)
$RUN --request 0 --limit 0.95 -- "$P/holder" --bytes 500MiB >"$T/late"
check "a burst ends with out-of-memory" $? = 3
took=$(($(now_ms) - start))
check "after the longest wait, ms" $took -ge 1400
check "and not when the other ended" "$(gone $worker && echo gone)" = ""
: >"$T/end"
wait $worker
check_books_empty
finish
