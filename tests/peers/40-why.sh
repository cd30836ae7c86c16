#!/bin/sh
# A program waits: one sentence says for what, and which workload has it.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
$RUN --request 0 --limit 0.9 --name has -- "$P/holder" --bytes 600MiB --ms 30000 >"$T/has" &
has=$!
wait_event "$T/has" held
$RUN --request 0 --limit 0.9 --name waits -- "$P/holder" --bytes 400MiB --ms 1000 >"$T/waits" &
waits=$!
waiting() { [ "$(use waits waiting)" -ge 1 ]; }
until_true 10 waiting
check "it waits" $? = 0
"$B/sluice" why waits >"$T/why"
check "one sentence" "$(grep -c . "$T/why")" -ge 1
check_file "names who has the memory" "$T/why" 'waits.*has'
kill -KILL $has
wait $waits
check "and goes on when it is free" $? = 0
finish
