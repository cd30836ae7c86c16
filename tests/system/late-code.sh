#!/bin/sh
# A program that is guaranteed all of a GPU, and nearly fills it, loads much code at once: faster than the daemon
# measures. What a neighbour has without a request goes to the host for it, and it never sees out-of-memory.
export BOX='--gpus 1 --memory 1GiB --context 10MiB --module 4MiB --launch 2MiB'
. "$(dirname "$0")/lib.sh"
software_only "code of known size"
config 'host_memory: 1GiB'
daemon_start
$RUN --limit 1.0 --name fills -- "$P/tenant" --share 94 --modules 11 --work 5 --term finish --ms 2000 >"$T/fills" &
fills=$!
wait_event "$T/fills" ask
$RUN --name beside -- "$P/tenant" --bytes 8MiB --burst 30MiB --modules 6 --term finish --ms 60000 >"$T/beside" &
beside=$!
wait $fills
check "it ends well" $? = 0
check "and never saw out-of-memory" "$(json -n event=oom <"$T/fills")" = 0
kill -TERM $beside 2>/dev/null
wait $beside
check "its neighbour, too" $? = 0
check_books_empty
finish
