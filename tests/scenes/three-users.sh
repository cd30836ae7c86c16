#!/bin/sh
# Three users with a quarter each allocate and free at random, and a fourth takes all there is, again and
# again. Within their requests the three never see out-of-memory.
# Off: the same programs on the bare GPU.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=250
. "$(dirname "$0")/lib.sh"
off native
on config 'longest_wait: 1s'
on daemon_start
for name in ann bob cem; do
	start $name --request 240MiB -- "$P/alloc-churn" --slots 12 --max 16MiB --operations 3000 --seed "$(printf %d "'$name")"
	eval "pid_$name=$PID"
done
# They are there before the fourth comes: a GPU on which a context has just found no memory but the
# driver's own admits no newcomer for a moment.
for name in ann bob cem; do
	wait_event "$T/$name" started
done
start hog --request 0 --limit 1.0 -- "$P/memhog" --piece 8MiB --hold-ms 300 --rounds 30
hog=$PID
wait_event "$T/hog" took 90
for name in ann bob cem; do
	eval "status \$pid_$name"
	promise "$name ends well" $STATUS = 0
	promise "$name never saw out-of-memory" "$(json -l event=end oom <"$T/$name" 2>/dev/null || echo none)" = 0
	promise "$name read what it wrote" "$(json -l event=end wrong <"$T/$name" 2>/dev/null || echo none)" = 0
done
kill -KILL $hog 2>/dev/null
scene_finish
