#!/bin/sh
# A model without questions for a while leaves the GPU by itself: its memory goes to the host before another program needs
# its place. So a newcomer moves no neighbour, while the model's request stays its own. Its first CUDA call brings all of
# its memory back, to the same addresses.
# Off: no --warm-after.
export BOX='--gpus 1 --memory 1GiB --context 8MiB --module 1MiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../system/swap-lib.sh"
config 'host_memory: 2GiB'
config 'turn_max: 500ms'
daemon_start
WARM=
[ "$SCENE" = off ] || WARM='--warm-after 1s'
# shellcheck disable=SC2086 # words
swapper model --request 0.3 --limit 0.5 $WARM
ok model alloc weights 200m
ok model fill weights 1
ok model many small 100 20000
ok model fill small 2
ok model handles pool 64m 16m
ok model fill pool 3
places=
for thing in weights small pool; do
	ok model query $thing
	places="$places $VALUE"
done
requests=$(gpu requests_bytes)
on until_true 30 is_at model warm
off sleep 3
promise "the idle model is kept warm on the host" "$(residency model)" = warm
promise "with all its memory" "$(evicted_bytes model)" -ge $((266 * MIB))
check "its request stays its own" "$(gpu requests_bytes)" = "$requests"
swapper neighbour --request 0 --limit 1.0
ok neighbour alloc a 800m
ok neighbour fill a 4
promise "nobody had to be moved for its neighbour" "$("$B/sluice" events --json | grep -c EVICTED_FOR)" = 0
contents model "brought back by its first call"
promise "it had been away" "$("$B/sluice" events --name model --json | grep -c RESTORED)" -ge 1
now=
for thing in weights small pool; do
	ok model query $thing
	now="$now $VALUE"
done
check "all is where it was" "$now" = "$places"
contents neighbour
end_swapper model
end_swapper neighbour
check_books_empty
scene_finish
