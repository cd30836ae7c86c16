#!/bin/sh
# A notebook that its owner forgot holds memory without a request. When another program needs it, the idle
# kernel process is stopped; the notebook's server, its parent, lives and can start another.
# Off: the resolver priority is not configured.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=150
. "$(dirname "$0")/lib.sh"
on config 'resolvers: priority wait'
off config 'resolvers: wait'
config 'stop_idle: 2s'
config 'stop_grace: 1s'
config 'longest_wait: 12s'
daemon_start
start notebook --request 0 --limit 0.9 -- sh -c "
	'$P/holder' --bytes 600MiB --ms 600000
	echo kernel-ended
	while [ ! -e '$T/end' ]; do sleep 0.1; done
	echo server-ends"
notebook=$PID
wait_event "$T/notebook" held
start job --request 0 --limit 0.9 -- "$P/holder" --bytes 600MiB --verify --ms 100
job=$PID
status $job
promise "the job gets its memory" $STATUS = 0
promise "the idle kernel was stopped" "$(grep -c kernel-ended "$T/notebook")" = 1
promise "its server lives" "$(kill -0 $notebook 2>/dev/null && echo yes)" = yes
promise "why says who was stopped for whom" \
	"$("$B/sluice" why notebook | grep -c 'was stopped: idle.*job needed')" -ge 1
touch "$T/end"
pkill -KILL -P $notebook holder 2>/dev/null
scene_finish
