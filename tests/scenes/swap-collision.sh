#!/bin/sh
# Two programs work all the time and each grows to most of the GPU. Bare, the second growth is an out-of-memory.
# With swapping they take turns, and both finish.
# Off: the same two programs on the bare GPU.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
off native
on config 'host_memory: 2GiB'
on config 'turn_max: 500ms'
on daemon_start
for name in one two; do
	start $name --request 0.2 --limit 1.0 -- "$P/tenant" --bytes 300MiB --burst 400MiB --burst-ms 1000 --gap-ms 300 --work 80 --ms 4000
	eval "pid_$name=$PID"
done
for name in one two; do
	eval "status \$pid_$name"
	promise "$name ends well" $STATUS = 0
	promise "$name never saw out-of-memory" "$(json -l event=end ooms <"$T/$name" 2>/dev/null || echo none)" = 0
	promise "$name has all it wrote" "$(json -l event=end wrong <"$T/$name" 2>/dev/null || echo none)" = 0
done
scene_finish
