#!/bin/sh
# All of it as an ordinary user, without a right that others have not: a daemon of one's own, jobs, reclaim by parking, park and resume by hand,
# and a daemon that is killed.
export BOX="--gpus 2 --memory 256MiB"
export LIMIT=80
. "$(dirname "$0")/nobody.sh"
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
S="$B/sluice"
STEPPER="$P/stepper --ms 20 --bytes 32MiB --until"
config 'host_memory: 512MiB'
daemon_start
check "not root" "$(id -u)" != 0
printf 'projects:\n  large:\n    gpu: {quota: 2}\n  small:\n    gpu: {quota: 0}\n' >"$T/projects.yaml"
"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1
check "one's own projects" $? = 0
"$S" doctor >"$T/doctor" 2>&1
check "doctor is content" $? = 0
is_in() { [ "$("$S" ps --all --json | json "name=$1.state")" = "$2" ]; }
# right NAME: it ends well, and its result is right.
right() {
	"$S" wait "$1" >/dev/null 2>&1
	check "$1 ends" $? = 0
	"$S" logs "$1" >"$T/log"
	check_file "$1 came to the right result" "$T/log" '"right":true'
}

# shellcheck disable=SC2086 # words
"$S" submit --project small --name back -- $STEPPER "$T/back.end" >"$T/said" 2>&1 || fail "back: $(cat "$T/said")"
until_true 30 is_in back running || fail "back does not run"
# shellcheck disable=SC2086 # words
"$S" submit --project large --gpus 2 --name first -- $STEPPER "$T/first.end" >"$T/said" 2>&1 || fail "first: $(cat "$T/said")"
until_true 30 is_in back parked || fail "back is not parked"
daemon_kill
daemon_start
: >"$T/first.end"
right first
: >"$T/back.end"
right back

# shellcheck disable=SC2086 # words
"$S" run --name hand -- $STEPPER "$T/hand.end" >"$T/hand" &
HAND=$!
until_true 30 grep -q step "$T/hand" || fail "hand does not run"
"$S" park hand >"$T/said" 2>&1
check "park by hand" $? = 0
"$S" resume hand >"$T/said" 2>&1
check "resume by hand" $? = 0
: >"$T/hand.end"
wait $HAND
check "it ends" $? = 0
check_file "it came to the right result" "$T/hand" '"right":true'
check_books_empty
finish
