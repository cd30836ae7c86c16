#!/bin/sh
# A program that fills its limit, here all of a GPU, runs beside others: the reserve pays contexts and code. Two
# without any option that take all they see take turns; one at limit 1.0 goes on beside four small ones; one that takes
# nearly all as it starts, as TensorFlow does, grows on. All load code when their memory is full.
# Off: without a reserve.
# What a process takes there is to the reserve as 250 MiB are to 2 GiB.
export BOX='--gpus 1 --memory 512MiB --context 3MiB --module 256KiB --launch 512KiB'
. "$(dirname "$0")/lib.sh"
config 'longest_wait: 600s'
config 'turn_max: 500ms'
# Here all must run soon; what a grace keeps from a burst is scene swap-guaranteed's.
config 'idle_grace: 0'
off config 'context_reserve: 0'
daemon_start
# ends NAME PID WHAT: well, and within a minute; what hangs is ended.
ends() {
	if ! until_true 60 gone "$2"; then
		note "$1 hangs: $("$B/sluice" why "$1" 2>&1 | head -n 2)"
		kill -KILL "$2" 2>/dev/null
	fi
	status "$2"
	promise "$3 ends well" $STATUS = 0
}

for n in 1 2; do
	start all$n -- "$P/tenant" --share 99 --modules 2 --work 20 --ms 3000
	eval "all$n=$PID"
done
# shellcheck disable=SC2154 # by eval
ends all1 "$all1" "the first of two that take all they see"
# shellcheck disable=SC2154 # by eval
ends all2 "$all2" "the second"

start big --request 0.3 --limit 1.0 -- "$P/tenant" --share 95 --modules 2 --work 20 --ms 4000
big=$PID
until_true 20 event "$T/big" held
smalls=
for n in 1 2 3 4; do
	start small$n --request 24MiB --limit 40MiB -- "$P/tenant" --bytes 4MiB --modules 2 --work 5 --term finish --ms 300000
	smalls="$smalls $PID"
	until_true 20 event "$T/small$n" held
done
ends big $big "one that fills its limit of 1.0 beside four small ones"
for pid in $smalls; do
	kill -TERM "$pid"
	ends small "$pid" "a small one"
done

start grows --request 0.5 --limit 1.0 -- "$P/tenant" --share 90 --modules 3 --burst 8MiB --ms 4000
grows=$PID
start beside --request 0.2 --limit 1.0 -- "$P/tenant" --share 90 --modules 3 --work 10 --ms 4000
beside=$PID
ends grows $grows "one that takes nearly all as it starts, and grows,"
ends beside $beside "another beside it"
scene_finish
