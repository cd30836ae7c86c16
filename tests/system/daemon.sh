#!/bin/sh
# The daemon comes and goes; clients stay (peer-failures row 35). Absent: sluice run says how to start
# one. Killed: holders run on, waiters wait on, and after a restart the books are those before.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
$RUN -- true 2>"$T/absent"
check "no daemon" $? = 69
check_file "says what to do" "$T/absent" 'sluiced'

daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
swapper holds --request 100MiB --limit 0.95
ok holds alloc one 300m
ok holds fill one 1
# What is known of a slab's rest is the daemon's a moment later.
held_300() { [ "$(use holds backing_bytes)" -ge $((300 << 20)) ]; }
until_true 20 held_300
$RUN --request 0 --limit 0.95 --name loads -- "$P/launcher" --threads 2 --ms 100000 --until "$T/loads.end" >"$T/loads" &
loads=$!
wait_event "$T/loads" started
before=$(use holds backing_bytes)
daemon_kill
sleep 0.3
is "the holder's memory without a daemon: wrong words" 0 holds check one
daemon_start
until_true 30 held_300
check "after the restart it is booked as before" "$(use holds backing_bytes)" = "$before"
check "under its request" "$(use holds request_bytes)" = $((100 << 20))
ok holds alloc two 300m
ok holds fill two 2
contents holds "of before and after the restart"
end_swapper holds
: >"$T/loads.end"
wait $loads
check "the launcher's status" $? = 0
check_books_empty

# Killed inside an allocation: the demand is made again to the next daemon.
$RUN --request 0 --limit 0.95 --name holds -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/holds" &
holds=$!
wait_event "$T/holds" held
$RUN --request 0 --limit 0.95 --name waits -- "$P/holder" --bytes 500MiB --ms 0 --verify >"$T/waits" &
waits=$!
until_true 20 waiting 1
daemon_kill
sleep 0.2
check "the waiter waits on" "$(kill -0 $waits && echo yes)" = yes
daemon_start
until_true 30 waiting 1
check "and is in the queue again" "$(gpu waiting)" = 1
kill -TERM $holds
wait $holds 2>/dev/null
wait $waits
check "and is granted" $? = 0
check_books_empty

# Two daemons for one GPU: the second says so and goes.
"$B/sluiced" --config "$CONFIG" --socket "$T/s2" --state "$T/state2" >"$T/second" 2>&1
check "a second daemon for the GPU fails" $? != 0
check "the first still answers" "$(daemon_up && echo yes)" = yes
daemon_stop
check "SIGTERM ends it well" $? = 0
finish
