#!/bin/sh
# Two libraries of Sluice in one process, as of a package and of a build: LD_PRELOAD of the program names another copy.
# It is one client all the same: it gets what it would get with one library, and its memory goes and comes back whole.
export LIMIT=120
. "$(dirname "$0")/lib.sh"
config 'host_memory: 2GiB'
daemon_start
MIB=1048576
own=${SLUICE_LIBRARY:-$B/libsluice.so}
cp "$own" "$T/other.so"
# taken NAME LIBRARIES: the bytes that a program gets before its limit ends it.
taken() {
	$RUN --request 0.3 --limit 0.5 --name "$1" -- env LD_PRELOAD="$2" "$P/memhog" --piece 8MiB --rounds 1 >"$T/$1" 2>&1
	json -l event=took bytes <"$T/$1"
}
on_gpu() { "$P/nvml-view" | sed -n 's/.*"what":"process",.*"bytes":\([0-9]*\).*/\1/p'; }
alone=$(taken alone "$own")
check "a limit of half a GPU leaves less than that" "$alone" -lt $((512 * MIB))
for order in "$T/other.so:$own" "$own:$T/other.so"; do
	name=first$((CHECKS))
	check "with $order" "$(taken "$name" "$order")" = "$alone"
	check "clients" "$("$B/sluice" events | grep -c "process [0-9]* of $name uses the GPUs")" = 1
	$RUN --request 0.3 --limit 0.5 --name "$name" -- env LD_PRELOAD="$order" "$P/stepper" --ms 50 --bytes 64MiB --until "$T/$name.end" >"$T/$name.steps" 2>&1 &
	wait_event "$T/$name.steps" step
	"$B/sluice" park "$name" >"$T/said" 2>&1 || fail "park: $(cat "$T/said")"
	check "only its context is on the GPU" "$(on_gpu)" -lt $((64 * MIB))
	"$B/sluice" resume "$name" >"$T/said" 2>&1 || fail "resume: $(cat "$T/said")"
	: >"$T/$name.end"
	wait $!
	check_file "its contents" "$T/$name.steps" '"right":true'
done
finish
