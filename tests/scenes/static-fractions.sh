#!/bin/sh
# Three programs with a third of the GPU each: the simplest sharing there is. Each sees a GPU of that
# size, gets that much, is told out-of-memory above it, and harms no other.
# Off: the same three programs on the bare GPU.
export BOX='--gpus 1 --memory 1536MiB'
. "$(dirname "$0")/lib.sh"
off native
on daemon_start
third=$((1440 / 3))
for name in a b c; do
	start $name --request ${third}MiB --limit ${third}MiB -- "$P/memhog" --piece 8MiB --hold-ms 60000 --until "$T/end"
	eval "pid_$name=$PID"
done
for name in a b c; do
	# Without the feature one may be left without room for a context.
	until_true 20 event "$T/$name" took
	took=$(json -l event=took bytes <"$T/$name" 2>/dev/null)
	took=$((${took:-0} >> 20))
	promise "$name gets its third, MiB" $took -ge $((third * 8 / 10))
	promise "$name gets no more, MiB" $took -le $third
	promise "$name is told out-of-memory" "$(json -l event=took result <"$T/$name")" = CUDA_ERROR_OUT_OF_MEMORY
done
: >"$T/end"
for name in a b c; do
	eval "status \$pid_$name"
	promise "$name ends well" $STATUS = 0
done
scene_finish
