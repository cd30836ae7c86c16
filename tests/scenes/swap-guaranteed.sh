#!/bin/sh
# A server never holds more than its request, and works a tenth of the time. A program without a request wants more
# than is left. It has what is left; the server stays.
# Off: no request, and the server is moved between two pieces of its work.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
config 'host_memory: 2GiB'
config 'turn_max: 500ms'
config 'longest_wait: 5s'
daemon_start
request=480MiB
off eval 'request=0'
start server --request $request -- "$P/tenant" --bytes 400MiB --work 10 --term finish --ms 90000
server=$PID
wait_event "$T/server" held
start bursts --request 0 --limit 0.95 -- "$P/tenant" --bytes 700MiB --work 90 --term finish --ms 8000
bursts=$PID
most=0
watch_out server $bursts
promise "of what works within its request nothing was moved, MiB" $((most >> 20)) = 0
status $bursts
kill -TERM $server
status $server
check "the server lost nothing" $STATUS = 0
scene_finish
