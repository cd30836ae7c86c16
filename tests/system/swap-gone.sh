#!/bin/sh
# A program whose memory is on the host ends at once, whatever has become of the daemon: stopped or killed. It returns from
# main, leaves by _exit, frees all it has, destroys or resets its contexts first, or is told to end by a signal; and so
# with a thread that waits for the memory to come back. Afterwards nothing is left of it.
export LIMIT=${LIMIT:-170}
export BOX="--gpus 1 --memory 1GiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a GPU that is large enough for all of them"
config 'host_memory: 1GiB'
daemon_start
# What runs in the background of a shell would not hear of it.
# shellcheck disable=SC2034 # swapper reads it
SWAPPER_FRONT="env --default-signal=INT"
begin() {
	# shellcheck disable=SC2086 # words
	swapper "$1" --request 0.02 --limit 0.5 ${2-}
	ok "$1" alloc big 4m
	ok "$1" fill big 1
	ok "$1" many small 10 5000
	ok "$1" fill small 2
	ok "$1" handles mine 4m 2m
	ok "$1" fill mine 3
	ok "$1" context other
	ok "$1" use other
	ok "$1" alloc there 2m
	ok "$1" fill there 4
	ok "$1" use main
}
# stands PID: its thread that came later sleeps, which it does at the gate. A thread on its way there would be
# told by the driver that the process ends, and end it in its own way.
stands() { cat "/proc/$1/task/"*/stat | grep -q '(later) S'; }
# ends NAME HOW: it does so at once, with the status it has without us.
ends() {
	ends_pid=$(pid_of "$1") ends_status=0
	case $2 in
	waiting_*)
		later "$1" checkall
		until_true 15 stands "$ends_pid" || fail "$1: its thread does not wait"
		;;
	esac
	case $2 in
	exit | waiting_exit) echo exit >"$T/$1.in" ;;
	quit | waiting_quit) echo quit >"$T/$1.in" ;;
	freeall) ok "$1" freeall && echo exit >"$T/$1.in" ;;
	destroy) ok "$1" destroy other && echo exit >"$T/$1.in" ;;
	reset) ok "$1" reset && echo exit >"$T/$1.in" ;;
	term | waiting_term) kill -TERM "$ends_pid" && ends_status=143 ;;
	int) kill -INT "$ends_pid" && ends_status=130 ;;
	esac
	CHECKS=$((CHECKS + 1))
	until_true 15 gone "$ends_pid" || {
		fail "$1 does not end by $2: $(cat "/proc/$ends_pid/wchan" 2>/dev/null) $(tail -n 1 "$T/$1")"
		kill -KILL "$ends_pid"
	}
	wait "$ends_pid"
	check "$1 ends, with status" $? = $ends_status
	[ ! -s "$T/$1.err" ] || note "$(head -n 2 "$T/$1.err")"
}
parked="exit quit freeall destroy reset term int waiting_exit waiting_quit waiting_term"
warm="exit freeall destroy waiting_exit"
for what in stopped killed; do
	for how in $parked; do
		begin "parked_$how"
		park "parked_$how"
	done
	for how in $warm; do begin "warm_$how" "--warm-after 1s"; done
	for how in $warm; do settled "warm_$how" warm; done
	case $what in
	stopped) kill -STOP "$DAEMON" ;;
	killed) daemon_kill ;;
	esac
	note "the daemon is $what"
	for how in $parked; do ends "parked_$how" "$how"; done
	for how in $warm; do ends "warm_$how" "$how"; done
	case $what in
	stopped) kill -CONT "$DAEMON" ;;
	killed) daemon_start ;;
	esac
	check_books_empty
done
check "the host's memory is given back" "$("$B/sluice" dump | json host_memory.made_bytes)" = 0
daemon_stop
check "SIGTERM ends the daemon well" $? = 0
finish
