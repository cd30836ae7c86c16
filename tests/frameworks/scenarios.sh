#!/bin/sh
# A framework in its usual surroundings: alone, several at once on a GPU that is too small for two, one of them killed, and
# parked and resumed half-way. What it computes is to the last bit what it computes without Sluice, and like its own CPU
# backend within a tolerance. PROGRAM names the file, TOLERANCE the part by which CPU and GPU may differ: sums in
# another order, and what the steps of a training make of that.
# shellcheck disable=SC2034,SC2154 # lib.sh reads OPTIONS; eval sets what is waited for
# MIB: of data in each; two of them are more than BOX has.
export BOX="${BOX:---gpus 1 --memory 192MiB --module 64KiB}"
export LIMIT=900
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
OPTIONS="--mib ${MIB:-96} --steps 20"
half() { event "$T/$1" half; }
# under NAME OPTION...: the program as a workload of that name, $! is its process.
under() {
	under_name=$1
	shift
	start "$under_name" $GPU_ENV "$B/sluice" run --name "$under_name" "$@" --
}

note "--- without Sluice, and on the CPU"
start cpu $CPU_ENV
cpu=$!
start plain $GPU_ENV
ended plain $!
ended cpu $cpu
alike plain cpu "$TOLERANCE"

config 'turn_max: 500ms'
daemon_begin
note "--- alone, with request and limit"
under alone --request 0.6 --limit 0.8
ended alone $!
alike alone plain

note "--- four at once where one and a half fit; one is killed half-way"
export HOLD="$T/go"
for name in one two three lost; do
	under $name --request 0.2 --limit 0.8
	eval "$name=\$!"
done
lost=$!
for name in one two three lost; do
	until_true 300 half $name || fail "$name does not get half-way: $(tail -n 3 "$T/$name.err"; "$B/sluice" why $name)"
done
kill -KILL "$lost"
wait "$lost"
check "one was killed" $? = 137
touch "$T/go"
swapped=0
for name in one two three; do
	eval "ended $name \$$name"
	alike $name plain
	moved $name && swapped=$((swapped + 1))
done
# The last one to get half-way need not give way, if it is the first one to get to its end.
check "moved to the host and back" $swapped -ge 2
check_books_empty

note "--- parked half-way, and resumed"
rm "$T/go"
under parked --request 0.6 --limit 0.8
parked=$!
until_true 300 half parked || fail "it does not get half-way: $(tail -n 3 "$T/parked.err")"
"$B/sluice" park parked >"$T/park.out" 2>&1 || fail "it cannot be parked: $(cat "$T/park.out")"
check "it is" "$(use parked residency)" = parked
check "and has left the GPU" "$(gpu resident_bytes)" = 0
touch "$T/go"
"$B/sluice" resume parked >"$T/park.out" 2>&1 || fail "it cannot be resumed: $(cat "$T/park.out")"
ended parked $parked
alike parked plain
check_books_empty
daemon_stop
finish
