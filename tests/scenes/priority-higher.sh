#!/bin/sh
# A batch job works in what is free, at a lower priority. When a service of higher priority needs the
# memory, the job's process gives way although it is busy.
# Off: the resolver priority is not configured.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=150
. "$(dirname "$0")/lib.sh"
on config 'resolvers: priority wait'
off config 'resolvers: wait'
config 'stop_idle: 1h'
config 'stop_grace: 1s'
config 'longest_wait: 6s'
daemon_start
start equal --request 0 --limit 0.9 --priority 10 -- "$P/holder" --bytes 100MiB --verify --ms 15000
equal=$PID
wait_event "$T/equal" held
start batch --request 0 --limit 0.9 --priority -10 -- "$P/tenant" --bytes 600MiB --work 50 --ms 60000
batch=$PID
wait_event "$T/batch" held
start service --request 0 --limit 0.9 --priority 10 -- "$P/holder" --bytes 600MiB --verify --ms 100
service=$PID
status $service
promise "the service gets its memory" $STATUS = 0
promise "the batch job was stopped" "$(kill -0 $batch 2>/dev/null || echo yes)" = yes
status $equal
promise "who has the same priority was not" $STATUS = 0
scene_finish
