#!/bin/sh
# Four warm models of 10 GiB with requests of 3 GiB on one GPU of 16 GiB, all at a thirty-second of that: 320 MiB of weights, 96 MiB of
# request, 512 MiB of GPU. All four are loaded once and answer, whichever was there last. Then all are idle for a while and kept on the
# host; then each is asked again, and answers as before.
# Off: nothing is moved to the host, neither for others nor by itself.
export BOX='--gpus 1 --memory 512MiB'
export LIMIT=250
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../system/swap-lib.sh"
on config 'host_memory: 2GiB'
off config 'host_memory: 0'
config 'turn_max: 500ms'
off config 'longest_wait: 1s'
daemon_start
WARM=
[ "$SCENE" = off ] || WARM=${WARM_AFTER-'--warm-after 1s'}
models='one two three four'
# A line of its standard input is a request; all of them end after three.
# shellcheck disable=SC2034 # swap-lib.sh reads it
SWAPPER_PROGRAM="$P/model-server --weights 320MiB --item 4MiB --touch 64KiB --batch-max 4 --requests 3 --asked 1"
for name in $models; do
	# shellcheck disable=SC2086 # words
	launch_swapper $name --request 96MiB --limit 1.0 $WARM
done
loaded=0
for name in $models; do
	[ "$(came $name "$(pid_of $name)" loaded)" = no ] || loaded=$((loaded + 1))
done
promise "models that are loaded" $loaded = 4
answers_given() { json -n event=request <"$T/$1"; }
has_answered() { [ "$(answers_given "$1")" -ge "$2" ]; }
answered_or_gone() { has_answered "$@" || gone "$(pid_of "$1")"; }
# ask TIME: each in turn, and its answer is waited for.
ask() {
	for name in $models; do
		gone "$(pid_of $name)" || echo "request $1" >"$T/$name.in"
		until_true 60 answered_or_gone $name "$1"
		promise "$name answers request $1" "$(answers_given $name)" -ge "$1"
	done
}
ask 1
ask 2
all_are_warm() {
	for name in $models; do
		is_at $name warm || return 1
	done
}
on until_true 30 all_are_warm
warm=0
for name in $models; do
	! is_at $name warm || warm=$((warm + 1))
done
promise "models that wait on the host" $warm = 4
promise "for whom nothing is kept on the GPU" "$(gpu resident_bytes)" -le $((96 * MIB))
ask 3
for name in $models; do
	status "$(pid_of $name)"
	promise "$name answers all" $STATUS = 0
	promise "$name answers right" "$(json -l event=end wrong <"$T/$name" 2>/dev/null || echo none)" = 0
done
scene_finish
