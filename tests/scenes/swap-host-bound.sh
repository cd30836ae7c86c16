#!/bin/sh
# The administrator says how much of the host may hold what was on GPUs. It is never more; what does not fit in
# there waits, as if nothing could be moved.
# Off: no such bound.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
on config 'host_memory: 256MiB'
off config 'host_memory: 2GiB'
config 'longest_wait: 2s'
daemon_start
start first --request 0 --limit 0.9 -- "$P/tenant" --bytes 700MiB --work 0 --term finish --ms 90000
first=$PID
wait_event "$T/first" held
start second --request 0 --limit 0.9 -- "$P/holder" --bytes 700MiB --verify --ms 100
second=$PID
most=0
while kill -0 $second 2>/dev/null; do
	now=$("$B/sluice" ps --json | json name=first.host_bytes 2>/dev/null)
	[ "${now:-0}" -le $most ] || most=$now
	sleep 0.1
done
status $second
promise "never more on the host than allowed, MiB" $((most >> 20)) -le 256
promise "what does not fit in there waits, and is told out-of-memory in the end" $STATUS = 3
promise "the events name the bound" "$("$B/sluice" events --json | grep -c POOL_FULL)" -ge 1
kill -TERM $first
status $first
check "the first one ends well" $STATUS = 0
check "and lost nothing" "$(json -l event=end wrong <"$T/first")" = 0
scene_finish
