#!/bin/sh
# A program under the library is taken to other GPUs while it has memory, pools, arrays, graphs and work: it goes on
# there, names that it kept lead to its new GPUs, and what it starts later begins there. sluice-move is the real one;
# move-daemon.c stands in for sluiced. The driver forgets registered host memory meanwhile.
export LIMIT=120
export BOX="--gpus 4 --memory 1GiB --drop-pins 1"
. "$(dirname "$0")/lib.sh"
software_only "several GPUs, and a daemon that stands in for sluiced"
export PLAN="$T/plan" SLUICE_WORKLOAD=00112233445566778899aabbccddeeff
"$P/nvml-view" >"$T/nvml"
uuid() { grep "\"what\":\"device\",\"index\":$1," "$T/nvml" | json uuid; }

# The daemon: daemon_of NUMBER...; tell LINE.
daemon_of() {
	rm -f "$T/g" "$T/daemon.in"
	mkfifo "$T/daemon.in"
	: >"$T/daemon"
	"$B/tests/system/move-daemon" "$T/g" "$@" <>"$T/daemon.in" >"$T/daemon" 2>&1 &
	stand_in=$!
	wait_event "$T/daemon" listening
}
told() { json -n event=done <"$T/daemon"; }
has_told() { [ "$(told)" -gt "$1" ]; }
tell() {
	tell_before=$(told)
	echo "$1" >"$T/daemon.in"
	until_true 50 has_told "$tell_before" || fail "$1: $(tail -n 1 "$T/daemon")"
}
# wander NAME GPUS: a wanderer under the library; $pid.
wander() {
	wander_name=$1
	mkfifo "$T/$wander_name.in"
	: >"$T/faults"
	SLUICE_SOFTGPU_FAULTS_FILE=$T/faults CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$2 SLUICE_SOCKET=$T/g \
		LD_PRELOAD="${SLUICE_LIBRARY:-$B/libsluice.so}" "$P/wanderer" --bytes 96MiB \
		<>"$T/$wander_name.in" >"$T/$wander_name" 2>&1 &
	pid=$!
	wait_event "$T/$wander_name" start
}
looks_of() { json -n event=looked <"$T/$1"; }
# look NAME LINE: only what it says from now on counts.
has_looked() { [ "$(looks_of "$1")" -gt "$2" ]; }
look() {
	look_before=$(looks_of "$1")
	look_from=$(($(wc -l <"$T/$1") + 1))
	echo "$2" >"$T/$1.in"
	until_true 30 has_looked "$1" "$look_before" || fail "$1 does not look"
	tail -n "+$look_from" "$T/$1" >"$T/last"
}
# is_on WHAT DEVICE NUMBER FIRST: $WHAT, look or child, has its device on that GPU, under the number FIRST.
is_on() {
	grep -A 3 "\"event\":\"$1\",\"device\":$2," "$T/last" >"$T/seen"
	is_uuid=$(uuid "$3")
	check "$1: device $2 is on GPU $3" "$(json -l "event=$1" uuid <"$T/seen")" = "$is_uuid"
	check "$1: all of it is right" "$(json -l "event=$1" right <"$T/seen")" = 1
	for by in bus uuid number; do
		check "$1: NVML's by its $by" "$(json -l by=$by uuid <"$T/seen")" = "$is_uuid"
		check "$1: has the number with which it began" "$(json -l by=$by index <"$T/seen")" = "$4"
	done
}
# moves NAME FROM=TO...: numbers. What its daemon and sluice-move do.
moves() {
	moves_pairs=
	for pair in "$@"; do
		moves_pairs="$moves_pairs${moves_pairs:+,}$(uuid "${pair%=*}")=$(uuid "${pair#*=}")"
	done
	tell evict
	tell close
	order "away:$pid"
	order "back:$pid:0:$moves_pairs"
}
order() {
	"$B/tests/system/mover" "$B/sluice-move" "$(id -u)" "$(id -g)" plain - "$1" >"$T/answers" 2>&1
	check_file "$1" "$T/answers" " done 0 -$"
}
arrives() {
	tell open
	tell restore
}
uses() { "$P/nvml-view" | grep -c "\"what\":\"process\",\"index\":$1,\"pid\":$2,"; }

# --- One GPU of a box.
daemon_of 0
wander one 0
look one child
is_on look 0 0 0
is_on child 0 0 0
bus=$(json -l event=look bus <"$T/last")
moves 0=1
check "nothing of it is left where it was" "$(uses 0 "$pid")" = 0
tell "place 0 1"
arrives
look one child
is_on look 0 1 0
check "its bus id is the old one" "$(json -l event=look bus <"$T/last")" = "$bus"
check "its child's is not" "$(json -l event=child bus <"$T/last")" != "$bus"
is_on child 0 1 0
check "all of it is on its new GPU" "$(uses 0 "$pid")/$(uses 1 "$pid")" = 0/1
# Further, and home.
moves 1=3
tell "place 0 3"
arrives
look one child
is_on look 0 3 0
is_on child 0 3 0
# The library registers its memory again before it copies, whatever comes of it.
moves 3=0
tell "place 0 0"
echo "cuMemHostRegister_v2:1=not_supported" >"$T/faults.new"
mv "$T/faults.new" "$T/faults"
arrives
check "calls that register host memory again" "$(wc -l <"$T/faults.met")" = 1
look one child
is_on look 0 0 0
is_on child 0 0 0
kill -KILL "$pid" $stand_in
wait "$pid" $stand_in 2>/dev/null

# --- Two GPUs, named in another order; a child that sees one of them.
daemon_of 2 0
wander two 2,0
moves 0=3 2=1
tell "place 0 1"
tell "place 1 3"
arrives
look two child
for event in look child; do
	is_on $event 0 1 2
	is_on $event 1 3 0
done
wander less 0
look less look
is_on look 0 3 0
kill -KILL "$pid" $stand_in
finish
