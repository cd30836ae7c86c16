#!/bin/sh
# Any GPU for anyone: workloads go to other GPUs, for a user, for others that need a whole GPU, and for themselves.
export BOX='--gpus 2 --memory 2GiB'
export LIMIT=260
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 4GiB'
config 'detach_contexts: yes'
daemon_start

on() {
	CHECKS=$((CHECKS + 1))
	until_true "${3:-20}" is_on "$1" "$2" || fail "$1 is not on GPU $2 but on \"$(where "$1")\""
	check "ps says so, too" "$(use "$1" gpu)" = "$2"
}
apart() { [ -n "$(where a)" ] && [ -n "$(where b)" ] && [ "$(where a)" != "$(where b)" ]; }
together() { [ -n "$(where a)" ] && [ "$(where a)" = "$(where b)" ]; }
# refuses WHAT PATTERN ARGUMENT...
refuses() {
	refuses_what=$1 refuses_text=$2
	shift 2
	move "$@"
	check "$refuses_what: status" $? != 0
	check_file "$refuses_what: why" "$T/move.out" "$refuses_text"
}

note "--- a user moves one there and back"
swapper one --request 512MiB
ok one alloc a 200m
ok one fill a 1
from=$(where one)
to=$((1 - from))
for there in $to $from $to; do
	move one --gpu "$there" || fail "cannot move it: $(cat "$T/move.out"): $("$B/sluice" why one)"
	check_file "says so" "$T/move.out" "^one is on GPU $there: .* copied, away in .*, back in"
	on one "$there"
	contents one "on GPU $there"
	ok one fill a "$there"
done
ok one alloc b 100m
ok one fill b 3
contents one "with more"
is_on one "$to" || fail "more memory is elsewhere"
check "its request has moved along" "$("$B/sluice" gpus --json | json "$to.requests_bytes")" = $((512 * MIB))
check "and is nowhere else" "$("$B/sluice" gpus --json | json "$from.requests_bytes")" = 0
check "all its memory is booked there" "$("$B/sluice" gpus --json | json "$from.backing_bytes")" = 0
check_file "an event tells" "$("$B/sluice" events --last 100 >"$T/events" && echo "$T/events")" "one goes to GPU $to"

note "--- what cannot be is refused, and says why"
move one --gpu "$to"
check "it is there: status" $? = 0
check_file "it is there" "$T/move.out" 'is there already'
refuses "no number" '[-][-]gpu takes the number' one --gpu x
refuses "no such GPU" 'GPUs of the same model' one --gpu 7
refuses "two for one" 'as many GPUs as it has' one --gpu 0,1
refuses "no such workload" 'nothing' nothing --gpu 0
swapper full --request 1600MiB
on full "$from"
refuses "no room" 'does not fit' one --gpu "$from"
contents one "after that"
end_swapper full
swapper fixed --request 100MiB --swap off
ok fixed alloc a 10m
refuses "no swapping" 'cannot be|may not' fixed --gpu $((1 - $(where fixed)))
end_swapper fixed

note "--- without a request"
swapper free --limit 600MiB
ok free alloc a 64m
ok free fill a 5
to=$((1 - $(where free)))
move free --gpu "$to" || fail "cannot move it: $(cat "$T/move.out"): $("$B/sluice" why free)"
on free "$to"
contents free
end_swapper free
end_swapper one
check_books_empty

# After a user's move nothing is spread for an hour, as long as the daemon knows of it.
daemon_stop
daemon_start
note "--- two that use a GPU each make room for one that needs a whole GPU, and spread again"
for name in a b; do
	swapper $name --request 0.5 --limit 1
	ok $name alloc m 300m
	ok $name fill m 7
done
check "each has a GPU" "$(until_true 20 apart && echo yes)" = yes
launch_swapper whole --request 1 --wait
until_true 40 grep -q start "$T/whole" || fail "whole does not start: $(cat "$T/whole.err"): $("$B/sluice" why whole)"
check "the two share one" "$(until_true 20 together && echo yes)" = yes
ok whole alloc m 1500m
on whole $((1 - $(where a)))
for name in a b; do
	contents $name "beside the other"
done
check_file "an event tells" "$("$B/sluice" events --last 100 >"$T/events" && echo "$T/events")" "[ab] goes to GPU"
end_swapper whole
sleep 1
check "they spread again" "$(until_true 90 apart && echo yes)" = yes
for name in a b; do
	contents $name "alone again"
	end_swapper $name
done
check_books_empty

note "--- without the setting it waits"
sed -i 's/^detach_contexts: yes/detach_contexts: no/' "$CONFIG"
kill -HUP "$DAEMON"
for name in a b; do
	swapper $name --request 0.5 --limit 1
	ok $name alloc m 10m
done
check "each has a GPU" "$(until_true 20 apart && echo yes)" = yes
refuses "a move" 'detach_contexts: yes' a --gpu $((1 - $(where a)))
launch_swapper whole --request 1 --wait
sleep 2
check "it waits" "$(grep -c start "$T/whole")" = 0
kill_swapper whole
for name in a b; do
	end_swapper $name
done
check_books_empty
finish
