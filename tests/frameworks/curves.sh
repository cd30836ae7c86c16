#!/bin/sh
# tests/frameworks/curves.sh BUILD: what tools/framework-curves draws. tinygrad's conv-net and transformer train on the CPU, by themselves
# under Sluice, three at once where one and a half fit, and parked half-way and resumed.
# KEEP: a folder for what they told (PROGRAM-SCENE) and for `moves` (PROGRAM SCENE times MiB) to the host.
# shellcheck disable=SC2034,SC2154 # lib.sh reads PROGRAM and OPTIONS; eval sets what is waited for
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=1500
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
STEPS=${STEPS:-200}
# under SCENE NAME: $PROGRAM as a workload of that name.
under() {
	start "$PROGRAM-$1" $GPU_ENV $RUN --name "$2" --request 0.2 --limit 0.8 --
}
count_moves() {
	"$B/sluice" events --last 1000 --name "$2" |
		sed -n -e "s/.* \([0-9.]*\) MiB of $2 were moved from GPU 0 to the host.*/\1/p" -e "s/.* is parked with \([0-9.]*\) MiB on.*/\1/p" |
		awk -v what="$PROGRAM $1" '{ mib += $1 } END { printf "%s %d %d\n", what, NR, mib }' >>"$T/moves"
}
config 'turn_max: 500ms'
daemon_begin
for PROGRAM in tinygrad_convnet tinygrad_transformer; do
	note "--- $PROGRAM: on the CPU, and by itself"
	OPTIONS="--mib 96 --steps $STEPS"
	start "$PROGRAM-cpu" $CPU_ENV
	ended "$PROGRAM-cpu" $!
	under alone "$PROGRAM-alone"
	ended "$PROGRAM-alone" $!
	count_moves alone "$PROGRAM-alone"
	alike "$PROGRAM-alone" "$PROGRAM-cpu" 1e-2
	note "--- three at once"
	for name in one two three; do
		under $name "$PROGRAM-$name"
		eval "$name=\$!"
	done
	for name in one two three; do
		eval "ended $PROGRAM-$name \$$name"
		count_moves $name "$PROGRAM-$name"
		alike "$PROGRAM-$name" "$PROGRAM-alone"
	done
	note "--- parked half-way, and resumed"
	export HOLD="$T/go"
	rm -f "$T/go"
	under parked "$PROGRAM-parked"
	parked=$!
	until_true 120 event "$T/$PROGRAM-parked" half || fail "it does not get half-way"
	"$B/sluice" park "$PROGRAM-parked" >"$T/park.out" 2>&1 || fail "it cannot be parked: $(cat "$T/park.out")"
	check "left on the GPU" "$(gpu resident_bytes)" = 0
	touch "$T/go"
	sleep 2
	"$B/sluice" resume "$PROGRAM-parked" >"$T/park.out" 2>&1 || fail "it cannot be resumed: $(cat "$T/park.out")"
	ended "$PROGRAM-parked" $parked
	count_moves parked "$PROGRAM-parked"
	alike "$PROGRAM-parked" "$PROGRAM-alone"
	unset HOLD
	for scene in cpu alone one two three parked; do
		cp "$T/$PROGRAM-$scene" "${KEEP:?}"
	done
done
cp "$T/moves" "$KEEP"
check_books_empty
daemon_stop
finish
