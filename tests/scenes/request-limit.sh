#!/bin/sh
# A request is guaranteed, a limit is how far one may burst: the first program takes what is free up
# to its limit, and the second, which comes later, finds its request at once.
# Off: the same two programs on the bare GPU.
export BOX='--gpus 1 --memory 1GiB'
. "$(dirname "$0")/lib.sh"
off native
on daemon_start
start bursts --request 200MiB --limit 600MiB -- "$P/memhog" --piece 8MiB --hold-ms 60000 --until "$T/end"
bursts=$PID
wait_event "$T/bursts" took
took=$(($(json -l event=took bytes <"$T/bursts") >> 20))
promise "it bursts above its request, MiB" $took -gt 400
promise "and stays below its limit, MiB" $took -le 600
start owner --request 300MiB -- "$P/holder" --bytes 250MiB --verify --ms 200
status $PID
promise "the other's request is there" $STATUS = 0
promise "nobody waited for the first one to end" "$(gone $bursts || echo yes)" = yes
: >"$T/end"
scene_finish
