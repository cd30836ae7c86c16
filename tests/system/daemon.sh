#!/bin/sh
# The daemon comes and goes; clients stay (peer-failures row 35). Absent: sluice run says how to start
# one. Killed: holders run on, waiters wait on, and after a restart the books are those before.
. "$(dirname "$0")/lib.sh"
$RUN -- true 2>"$T/absent"
check "no daemon" $? = 69
check_file "says what to do" "$T/absent" 'sluiced'

daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
$RUN --request 100MiB --limit 0.95 --name holds -- "$P/holder" --bytes 300MiB --count 2 --gap-ms 3000 --ms 4000 --verify >"$T/holds" &
holds=$!
wait_event "$T/holds" ask
held_300() { [ "$(use holds backing_bytes)" -ge $((300 << 20)) ]; }
until_true 5 held_300
$RUN --request 0 --limit 0.95 --name loads -- "$P/launcher" --threads 2 --ms 7000 >"$T/loads" &
loads=$!
wait_event "$T/loads" started
before=$(use holds backing_bytes)
daemon_kill
sleep 0.3
check "the holder lives without a daemon" "$(kill -0 $holds && echo yes)" = yes
daemon_start
until_true 8 held_300
check "after the restart it is booked as before" "$(use holds backing_bytes)" = "$before"
check "under its request" "$(use holds request_bytes)" = $((100 << 20))
wait $holds
check "the holder's status" $? = 0
check "nothing was wrong" "$(json -l event=end wrong <"$T/holds")" = 0
wait $loads
check "the launcher's status" $? = 0
check_books_empty

# Killed inside an allocation: the demand is made again to the next daemon.
$RUN --request 0 --limit 0.95 --name holds -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/holds" &
holds=$!
wait_event "$T/holds" held
$RUN --request 0 --limit 0.95 --name waits -- "$P/holder" --bytes 500MiB --ms 0 --verify >"$T/waits" &
waits=$!
until_true 5 waiting 1
daemon_kill
sleep 0.2
check "the waiter waits on" "$(kill -0 $waits && echo yes)" = yes
daemon_start
until_true 10 waiting 1
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
