#!/bin/sh
# Two notebooks with small requests may burst; two GPUs are idle. Each gets a GPU to burst into.
# Off: placement packs.
export BOX='--gpus 2 --memory 1GiB'
. "$(dirname "$0")/lib.sh"
on config 'placement: spread'
off config 'placement: pack'
config 'resolvers: wait'
config 'longest_wait: 2s'
daemon_start
start one --request 0.2 --limit 1.0 -- "$P/holder" --bytes 700MiB --verify --until "$T/end"
one=$PID
wait_event "$T/one" held
start two --request 0.2 --limit 1.0 -- "$P/holder" --bytes 700MiB --verify --ms 200
status $PID
promise "the second bursts to most of a GPU" $STATUS = 0
: >"$T/end"
status $one
promise "so does the first" $STATUS = 0
scene_finish
