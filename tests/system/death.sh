#!/bin/sh
# Death is the process's, not its socket's: a client killed while it holds or waits, with a forked child
# that keeps every descriptor, owes nothing any more. What the driver itself keeps for the child (it
# holds the device's descriptors) is told as dying, and free when the child is gone (peer-failures
# rows 3, 5, 25).
. "$(dirname "$0")/lib.sh"
daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
$RUN --name holds -- "$P/holder" --bytes 300MiB --fork-late --ms 60000 --child-ms 30000 >"$T/holds" &
pid=$!
wait_event "$T/holds" forked
child=$(json -l event=forked pid <"$T/holds")
check "it holds, MiB" $(($(gpu backing_bytes) >> 20)) -ge 300
kill -KILL $pid
wait $pid 2>/dev/null
none_held() { [ "$(gpu backing_bytes)" = 0 ]; }
until_true 10 none_held
check "nothing is held after its death" "$(gpu backing_bytes)" = 0
check "nor is there a workload" "$(workloads)" = 0
check "the child still lives" "$(kill -0 "$child" && echo yes)" = yes
check "what the driver keeps is told as dying, MiB" $(($(gpu dying_bytes) >> 20)) -ge 300
kill -KILL "$child"
check_books_empty

$RUN --name holds -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/holds" &
holds=$!
wait_event "$T/holds" held
$RUN --name waits -- "$P/holder" --bytes 500MiB --fork --child-ms 30000 >"$T/waits" &
waits=$!
wait_event "$T/waits" ask
child=$(json -l event=forked pid <"$T/waits")
until_true 5 waiting 1
kill -KILL $waits
wait $waits 2>/dev/null
until_true 5 waiting 0
check "nobody waits after its death" "$(gpu waiting)" = 0
check "its child still lives" "$(kill -0 "$child" && echo yes)" = yes
kill -KILL "$child" $holds
wait $holds 2>/dev/null
check_books_empty
finish
