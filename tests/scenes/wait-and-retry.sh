#!/bin/sh
# Two programs that do not fit together: the second waits until the first gives back, and both finish.
# Off: the same, with no resolver that waits.
export BOX='--gpus 1 --memory 1GiB'
. "$(dirname "$0")/lib.sh"
on config 'resolvers: wait'
off config 'resolvers: priority'
daemon_start
start first --request 0 --limit 0.9 -- "$P/holder" --bytes 600MiB --verify --until "$T/end"
first=$PID
wait_event "$T/first" held
start second --request 0 --limit 0.9 -- "$P/holder" --bytes 600MiB --verify --ms 100
second=$PID
waits_or_ended() { [ "$("$B/sluice" ps --json | json name=second.waiting)" = 1 ] || gone $second; }
until_true 40 waits_or_ended
: >"$T/end"
status $first
check "the first is not disturbed" $STATUS = 0
status $second
promise "the second finishes, too" $STATUS = 0
scene_finish
