#!/bin/sh
# Workloads on several GPUs: bursting ones are put where most burst capacity is, others where they fit best.
# A workload on two GPUs loses one of them and goes on with the other. Two that wait for each other over two
# GPUs are parted by denying one of them a burst.
export BOX="--gpus 3 --memory 512MiB"
export LIMIT=170
. "$(dirname "$0")/lib.sh"
software_only "three GPUs of known size, one of which is lost"
config 'measure_interval: 100ms'
config 'resolvers: wait'
daemon_start
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" -ge "${2:-1}" ]; }
# The GPUs of a workload, a line each.
gpus_of() {
	"$B/sluice" ps --json | awk -v name="\"name\": \"$1\"" '
		/"name": / { mine = index($0, name) }
		mine && /"gpu": / { print $2 + 0 }'
}
is_lost() { [ "$("$B/sluice" gpus --json | json "$1.lost")" = "${2:-1}" ]; }
bursts() { grep -c "\"event\":\"burst\",\"gpu\":$2" "$1"; }
bursts_on() { [ "$(bursts "$1" "$2")" -gt "$3" ]; }
hold() {
	name=$1
	shift
	$RUN --name "$name" "$@" -- "$P/tenant" --bytes 32MiB --ms 100000 >"$T/$name" &
	wait_event "$T/$name" held
}
end() { "$B/sluice" stop --now "$1" >"$T/stop" 2>&1; }

note "where workloads are put"
hold fixed --request 200MiB
first=$(use fixed gpu)
hold second --request 100MiB
check "what cannot burst is put beside its like" "$(use second gpu)" = "$first"
hold small --request 60MiB --limit 0.9
check "what can is put where it has room" "$(use small gpu)" != "$first"
hold other --request 60MiB --limit 0.9
check "and not beside another of that kind" "$(use other gpu)" != "$(use small gpu)"
check "nor where least is left" "$(use other gpu)" != "$first"
hold third --request 100MiB
check "best fit again" "$(use third gpu)" = "$first"
"$B/sluice" ps >"$T/ps"
check_file "ps shows where each is" "$T/ps" "^ *[0-9]+ +third +.* $first +"
for name in fixed second third small other; do end $name; done
check_books_empty

note "one of two GPUs is lost"
$RUN --gpus 2 --request 0.4 --limit 0.9 --name pair -- "$P/tenant" --gpus 2 --bytes 150MiB --burst 100MiB --burst-ms 50 --gap-ms 50 --keep-going --term finish --ms 150000 >"$T/pair" &
pair=$!
until_true 20 bursts_on "$T/pair" 1 1
check "it bursts on both" "$(bursts "$T/pair" 0)" -ge 1
check "it is on two" "$(gpus_of pair | wc -l)" = 2
on_one=$(gpus_of pair | head -n 1)
on_two=$(gpus_of pair | tail -n 1)
# Another workload's demand waits on the GPU that will be lost, and a third runs on the other.
CUDA_VISIBLE_DEVICES=$on_one $RUN --request 0 --limit 0.9 --name waits -- "$P/tenant" --bytes 400MiB --ms 60000 >"$T/waits" &
waits=$!
CUDA_VISIBLE_DEVICES=$on_two $RUN --request 0.3 --name beside -- "$P/tenant" --bytes 64MiB --work 20 --term finish --ms 150000 >"$T/beside" &
beside=$!
wait_event "$T/beside" held
is_waiting() { [ "$(use waits waiting)" = 1 ]; }
until_true 30 is_waiting
"$B/sluice" softgpu --lose "$on_one"
until_true 30 is_lost "$on_one"
check "the GPU is lost" $? = 0
check "the other is not" "$("$B/sluice" gpus --json | json "$on_two.lost")" = 0
wait $waits
check "who waited there has ended" $? != 0
check_file "it was told an error" "$T/waits" '"event":"error"'
wait_event "$T/pair" error
before=$(bursts "$T/pair" 1)
until_true 30 bursts_on "$T/pair" 1 "$((before + 2))"
check "the pair goes on with the other" $? = 0
"$B/sluice" why pair >"$T/why"
check_file "why says which is lost" "$T/why" "pair has .* on GPU $on_one, which is lost"
$RUN --gpus 2 --request 0.1 --name next -- "$P/tenant" --gpus 2 --bytes 20MiB --term finish --ms 150000 >"$T/next" &
next=$!
until_true 30 event "$T/next" held
check "the next pair gets two" "$(gpus_of next | wc -l)" = 2
check "and not the lost one" "$(gpus_of next | grep -c "^$on_one\$")" = 0
kill -TERM $next
wait $next
check "and works" $? = 0
$RUN --gpus 3 --request 0.1 -- true 2>"$T/three"
check "three are refused" $? != 0
kill -TERM $beside
wait $beside
check "who was beside it noticed nothing" $? = 0
check "its bytes" "$(json -l event=end wrong <"$T/beside")" = 0
kill -TERM $pair
wait $pair
check "the pair ends with an error" $? = 4
check "but right contents" "$(json -l event=end wrong <"$T/pair")" = 0
"$B/sluice" softgpu --revive "$on_one"
until_true 20 is_lost "$on_one" 0
check "the GPU is back" $? = 0
check_books_empty

note "a deadlock over two GPUs"
start_one() {
	CUDA_VISIBLE_DEVICES=0,1 $RUN --gpus 2 --request 0 --limit 0.9 --name "$1" -- "$P/tenant" --gpus 2 --bytes 150MiB --burst 220MiB --burst-on "$2" --burst-ms 100 --gap-ms 100 --ms 6000 >"$T/$1" &
}
start_one left 0
left=$!
start_one right 1
right=$!
until_true 30 happened HOPELESS
check "one is denied" $? = 0
wait $left
left=$?
wait $right
right=$?
check "one got out-of-memory, the other ended well" "$(printf '%s\n' $left $right | sort | tr -d '\n')" = 03
"$B/sluice" events --json | grep '"HOPELESS"' >"$T/events"
check "once" "$(grep -c . "$T/events")" = 1
check_books_empty
daemon_stop
check "the daemon ends well" $? = 0
finish
