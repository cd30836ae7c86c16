#!/bin/sh
# One program must not be interrupted: --swap off. When memory is short others are moved, never it.
# Off: it is a program like any other, and idle, so it is the one that is moved.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
config 'host_memory: 2GiB'
config 'turn_max: 500ms'
daemon_start
# shellcheck disable=SC2046 # no word, or one
start stays --request 0 --limit 0.5 $(on echo --swap=off) -- "$P/tenant" --bytes 300MiB --work 0 --term finish --ms 90000
stays=$PID
wait_event "$T/stays" held
start moves --request 0 --limit 0.9 -- "$P/tenant" --bytes 450MiB --work 50 --term finish --ms 90000
moves=$PID
wait_event "$T/moves" held
start comes --request 0 --limit 0.9 -- "$P/holder" --bytes 400MiB --verify --ms 1500
comes=$PID
most=0
watch_out stays $comes
promise "of the excluded one nothing was moved, MiB" $((most >> 20)) = 0
status $comes
check "the one that comes gets its memory" $STATUS = 0
kill -TERM $moves $stays
status $moves
check "who was moved lost nothing" $STATUS = 0
status $stays
check "nor did the excluded one" $STATUS = 0
scene_finish
