#!/bin/sh
# Frameworks take nearly all the memory they see as they start (JAX three quarters, TensorFlow all). What
# they see is their limit, so they leave the others theirs.
# Off: the same programs on the bare GPU.
export BOX='--gpus 1 --memory 1GiB'
. "$(dirname "$0")/lib.sh"
off native
on daemon_start
start framework --request 500MiB -- "$P/tenant" --share 95 --term finish --ms 60000
framework=$PID
wait_event "$T/framework" held
start neighbour --request 350MiB -- "$P/holder" --bytes 300MiB --verify --ms 200
status $PID
promise "its neighbour has its own" $STATUS = 0
kill -TERM $framework 2>/dev/null
status $framework
promise "and it ends well itself" $STATUS = 0
scene_finish
