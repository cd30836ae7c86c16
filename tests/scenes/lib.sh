#!/bin/sh
# lib - what the scenes share: one promise of the product each, kept with its feature and broken
# without it.
#
# usage of a scene: [SCENE=off] sh tests/scenes/NAME.sh BUILD_DIR. Before sourcing this a scene sets
# BOX and LIMIT as tests/system/lib.sh has them. It calls `promise` for what is promised, `fail`
# or `check` for what must hold either way, and ends with `scene_finish`:
#   exit 0  every promise was kept
#   exit 1  a promise was broken, and nothing else was wrong
#   exit 3  the scene itself went wrong
# `on` and `off` are words in front of a command: `off config 'resolvers: wait'`. `start NAME OPTIONS -- PROGRAM`
# runs a program as a workload, or by itself where NATIVE=1, and writes to $T/NAME.
# shellcheck disable=SC2034 # some variables are for the scenes
SCENE=${SCENE:-on}
export SCENE
. "$(dirname "$0")/../system/lib.sh"
NATIVE=0
BROKEN=0
KEPT=0

on() { [ "$SCENE" = off ] || "$@"; }
off() { [ "$SCENE" != off ] || "$@"; }
native() { NATIVE=1; }

# promise WHAT VALUE OPERATOR EXPECTED
promise() {
	if test "$2" "$3" "$4"; then
		KEPT=$((KEPT + 1))
		note "kept: $1 ($2 $3 $4)"
	else
		BROKEN=$((BROKEN + 1))
		note "BROKEN: $1: $2 is not $3 $4"
		# Without its feature that is as it should be.
		[ "$SCENE" = off ] || [ "$BROKEN" -gt 3 ] || evidence
	fi
}
# start NAME [OPTIONS] -- PROGRAM [ARGS]: in the background; its pid is in $PID.
start() {
	start_name=$1
	shift
	start_options=
	while [ "$1" != -- ]; do
		start_options="$start_options $1"
		shift
	done
	shift
	if [ "$NATIVE" = 1 ]; then
		"$@" >"$T/$start_name" 2>"$T/$start_name.err" &
	else
		# shellcheck disable=SC2086 # options are words
		"$B/sluice" run --name "$start_name" $start_options -- "$@" >"$T/$start_name" 2>"$T/$start_name.err" &
	fi
	PID=$!
}
# status PID: waits for it; its exit status in $STATUS.
status() {
	wait "$1"
	STATUS=$?
}
# came NAME PID EVENT: "yes" once it has said so, "no" as soon as it has ended without.
came() {
	until_true 120 came_or_gone "$@"
	event "$T/$1" "$3" && echo yes || echo no
}
came_or_gone() { event "$T/$1" "$3" || gone "$2"; }
# watch_out WORKLOAD PID: until the process ends; raises $most to the most bytes of the workload that are on the host.
watch_out() {
	while kill -0 "$2" 2>/dev/null; do
		now=$("$B/sluice" ps --json | json "name=$1.out_bytes" 2>/dev/null)
		[ "${now:-0}" -le $most ] || most=$now
		sleep 0.1
	done
}
scene_finish() {
	[ $((KEPT + BROKEN)) != 0 ] || fail "nothing was promised"
	if [ "$FAILED" != 0 ]; then
		sed 's/^/      /' "$T"/daemon.log "$T"/*.err 2>/dev/null | tail -n 40
		exit 3
	fi
	[ "$BROKEN" = 0 ] || exit 1
	exit 0
}
