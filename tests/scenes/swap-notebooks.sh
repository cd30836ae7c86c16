#!/bin/sh
# Three notebooks have more on a GPU than fits, and each works only now and then. Unused memory goes to
# the host and comes back, at the same addresses: all three keep their state, and none waits for another
# to end.
# Off: nothing is moved to the host.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
on config 'host_memory: 2GiB'
off config 'host_memory: 0'
config 'turn_max: 500ms'
off config 'longest_wait: 1s'
daemon_start
for name in ann bob cem; do
	start $name --request 0.2 --limit 0.9 -- "$P/tenant" --bytes 500MiB --work 5 --ms 3500
	eval "pid_$name=$PID"
done
for name in ann bob cem; do
	pid=
	eval "pid=\$pid_$name"
	promise "$name gets its memory while the others live" "$(came $name $pid held)" = yes
done
for name in ann bob cem; do
	eval "status \$pid_$name"
	promise "$name ends well" $STATUS = 0
	promise "$name has all it wrote" "$(json -l event=end wrong <"$T/$name" 2>/dev/null || echo none)" = 0
done
scene_finish
