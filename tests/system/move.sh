#!/bin/sh
# sluice-move alone: a process leaves its GPU whole and comes back, there or to another GPU, whatever dies meanwhile.
# No daemon runs.
export LIMIT=180
export BOX="--gpus 5 --models A,A,A,A,B --memory 1GiB --d2h 256MiB --h2d 256MiB --shared"
. "$(dirname "$0")/lib.sh"
software_only "calls that hang at a chosen place"
export PLAN="$T/plan"
user="$(id -u) $(id -g)"
state=cuCheckpointProcessGetState
lock=cuCheckpointProcessLock
checkpoint=cuCheckpointProcessCheckpoint
restore=cuCheckpointProcessRestore
unlock=cuCheckpointProcessUnlock
chmod 755 "$T"

# order HOW CALL:N ORDER...: see mover.c. Its lines are in $T/answers.
order() {
	# shellcheck disable=SC2086 # two words
	"$B/tests/system/mover" "$B/sluice-move" $user "$@" >"$T/answers" 2>&1
}
# heard WHAT LINE: the answers have it.
heard() { check_file "$1" "$T/answers" "^$2\$"; }
# away, back: by a fresh helper, and it is done.
away() {
	order plain - "away:$pid"
	heard "$1: away" "away $pid done 0 -"
}
back() {
	order plain - "back:$pid"
	heard "$1: back" "back $pid done 0 -"
}
# target NAME OPTION...: a stepper; $pid. Its last step waits for $T/NAME.go.
target() {
	target_name=$1
	shift
	"$P/stepper" --until "$T/$target_name.go" "$@" >"$T/$target_name" 2>&1 &
	pid=$!
	wait_event "$T/$target_name" begin
}
# on NAME: it does a step.
steps_of() { json -n event=step <"$T/$1"; }
on() {
	on_before=$(steps_of "$1")
	# shellcheck disable=SC2016 # for later
	until_true 20 eval '[ "$(steps_of "'"$1"'")" -gt "'"$on_before"'" ]' || fail "$1 does no step"
}
# right NAME PID: it ends, and its result is right.
right() {
	touch "$T/$1.go"
	wait "$2"
	check "$1: status" $? = 0
	check_file "$1: the result" "$T/$1" '"right":true'
}

# --- There and back.
target walker --steps 3000 --ms 5 --bytes 16MiB
walker=$pid
on walker
away "first"
order plain - "away:$pid"
heard "away again" "away $pid done 0 -"
heard "the helper ends with the socket" "ended 0"
before=$(steps_of walker)
"$P/holder" --bytes 64MiB --ms 300 >"$T/holder"
check "another process's GPU meanwhile" $? = 0
check "steps meanwhile" "$(steps_of walker)" -le $((before + 1))
back "first"
on walker
order plain - "back:$pid"
heard "back again" "back $pid done 0 -"
on walker

# --- By the daemon's module.
SLUICE_MOVE="$B/sluice-move" "$B/tests/system/away-order" away "$pid" $$ >"$T/answers"
heard "the daemon's AWAY" "$pid 0 0"
heard "and of one without CUDA" "$$ 1 1"
SLUICE_MOVE="$B/sluice-move" "$B/tests/system/away-order" back "$pid" >"$T/answers"
heard "the daemon's BACK" "$pid 0 0"
on walker

# --- A helper dies at each step; the next one, or one that is to undo it, ends right.
for at in $state:1 $lock:1 $state:2 $checkpoint:1 $state:3; do
	order kill "$at" "away:$pid"
	heard "killed at $at of an AWAY" killed
	away "after $at"
	back "after $at"
	order kill "$at" "away:$pid"
	heard "killed at $at of an AWAY" killed
	back "instead, after $at"
	on walker
done
for at in $state:1 $restore:1 $state:2 $unlock:1 $state:3; do
	away "before $at"
	order kill "$at" "back:$pid"
	heard "killed at $at of a BACK" killed
	back "after $at"
	on walker
done

# --- A call under way outlives the helper that made it.
target fat --steps 2 --bytes 256MiB
wait_event "$T/fat" step
fat=$pid
order mid - "away:$pid"
heard "killed during an AWAY" killed
away "during the other's call"
"$P/holder" --bytes 800MiB --ms 10 >"$T/holder"
check "its memory is free for others" $? = 0
order mid - "back:$pid"
heard "killed during a BACK" killed
back "during the other's call"
order mid - "away:$pid"
heard "killed during an AWAY" killed
back "instead, during the other's call"
right fat "$fat"

# --- What the driver refuses.
pid=$walker
export SLUICE_SOFTGPU_FAULTS=$lock:1=not_ready
order plain - "away:$pid"
heard "work that does not end" "away $pid refused 600 $lock"
SLUICE_SOFTGPU_FAULTS=$checkpoint:1=not_supported
order plain - "away:$pid"
heard "memory that cannot leave" "away $pid refused 801 $checkpoint"
on walker
SLUICE_SOFTGPU_FAULTS=$checkpoint:1=not_supported,$unlock:1=unknown
order plain - "away:$pid"
heard "nor be unlocked" "away $pid away-still 801 $checkpoint"
unset SLUICE_SOFTGPU_FAULTS
back "locked"
on walker
away "to come back"
export SLUICE_SOFTGPU_FAULTS=$restore:1=system_not_ready
order plain - "back:$pid"
heard "a driver that is not ready" "back $pid away-still 802 $restore"
SLUICE_SOFTGPU_FAULTS=$unlock:1=unknown
order plain - "back:$pid"
heard "back, but locked" "back $pid away-still 999 $unlock"
SLUICE_SOFTGPU_FAULTS=$state:1=unknown
order plain - "back:$pid"
heard "no state, back" "back $pid away-still 999 $state"
order plain - "away:$pid"
heard "no state, away" "away $pid away-still 999 $state"
unset SLUICE_SOFTGPU_FAULTS
back "to come back"
on walker

# --- Orders at once.
target other --steps 3000 --ms 5 --bytes 16MiB
other=$pid
on other
order hold $state:1 "away:$walker" "away:$other"
heard "one hangs" "away $walker done 0 -"
check "the other does not wait for it" "$(head -n 1 "$T/answers")" = "away $other done 0 -"
order plain - "back:$walker" "back:$other"
heard "one" "back $walker done 0 -"
heard "and the other" "back $other done 0 -"
on walker
on other
# shellcheck disable=SC2046 # words
order crowd $state:@1 $(yes "away:$other" | head -n 66)
check "one too many" "$(head -n 2 "$T/answers" | grep -c "^away $other refused 0 -$")" = 2
check "the others of the same process" "$(grep -c "^away $other done 0 -$" "$T/answers")" = 64
order close $state:1 "back:$other"
heard "it ends while a call hangs" "ended 0"

# --- Processes that end.
kill -KILL "$other"
wait "$other" 2>/dev/null
order plain - "back:$other" "away:$other" "away:$$" "back:$$" "away:0" "away:-1"
heard "it died while away: back" "back $other gone 0 -"
heard "and away" "away $other gone 0 -"
heard "one without CUDA: away" "away $$ refused 1 $state"
heard "and back" "back $$ refused 1 $state"
heard "no process" "away 0 gone 0 -"
heard "nor this" "away -1 gone 0 -"
ticks=$(cut -d' ' -f22 "/proc/$walker/stat")
order plain - "away:$walker:$((ticks - 1))"
heard "an older process of that number" "away $walker gone 0 -"
order plain - "away:$walker:$ticks"
heard "this one" "away $walker done 0 -"
pid=$walker
back "this one"
right walker "$walker"
for at in $state:2 $checkpoint:1 $state:3; do
	target dies --steps 100 --bytes 16MiB
	on dies
	order target "$at" "away:$pid"
	check_file "it dies at $at" "$T/answers" "^away $pid gone "
	wait "$pid" 2>/dev/null
done

# --- No room is left to come back to.
target late --steps 2 --bytes 400MiB
wait_event "$T/late" step
late=$pid
away "late"
# A file of its own: in an older one an older line would be found.
"$P/holder" --bytes 700MiB --until "$T/filler.go" >"$T/filler" &
holder=$!
wait_event "$T/filler" held
order plain - "back:$late"
heard "no room" "back $late broken 2 $restore"
order plain - "away:$late" "back:$late"
heard "for good: away" "away $late broken 0 -"
heard "for good: back" "back $late broken 0 -"
touch "$T/filler.go" "$T/late.go"
wait $holder
wait "$late" 2>/dev/null

# --- To other GPUs.
"$P/nvml-view" >"$T/nvml"
uuid() { grep "\"what\":\"device\",\"index\":$1," "$T/nvml" | json uuid; }
u0=$(uuid 0) u1=$(uuid 1) u2=$(uuid 2) u3=$(uuid 3) other_type=$(uuid 4)
# wander NAME GPUS OPTION...: a wanderer; $pid. look NAME: it uses all that it has.
wander() {
	wander_name=$1
	wander_gpus=$2
	shift 2
	mkfifo "$T/$wander_name.in"
	CUDA_VISIBLE_DEVICES=$wander_gpus "$P/wanderer" "$@" <>"$T/$wander_name.in" >"$T/$wander_name" 2>&1 &
	pid=$!
	wait_event "$T/$wander_name" start
	look "$wander_name"
}
looks_of() { json -n event=looked <"$T/$1"; }
has_looked() { [ "$(looks_of "$1")" -gt "$2" ]; }
look() {
	look_before=$(looks_of "$1")
	echo look >"$T/$1.in"
	until_true 20 has_looked "$1" "$look_before" || fail "$1 does not look"
}
# is_on NAME DEVICE UUID: after it has looked, all of its device is right there.
is_on() {
	grep "\"event\":\"look\",\"device\":$2," "$T/$1" | tail -n 1 >"$T/last"
	check "$1: device $2 is on" "$(json uuid <"$T/last")" = "$3"
	check "$1: all of it is right" "$(json right <"$T/last")" = 1
}
# uses NUMBER PID: the driver lists the process there.
uses() { "$P/nvml-view" | grep -c "\"what\":\"process\",\"index\":$1,\"pid\":$2,"; }

wander one 0 --bytes 64MiB
bus=$(json -l event=look bus <"$T/one")
away "one"
order plain - "back:$pid:0:$u0=$u1"
heard "to the next GPU" "back $pid done 0 -"
look one
is_on one 0 "$u1"
check "one: its bus id is the old one" "$(json -l event=look bus <"$T/one")" = "$bus"
check "one: nothing of it is left on the first" "$(uses 0 "$pid")" = 0
check "one: it is on the second" "$(uses 1 "$pid")" = 1
order plain - "back:$pid:0:$u1=$u2"
heard "one that runs stays" "back $pid done 0 -"
look one
is_on one 0 "$u1"
away "one"
order kill $restore:1 "back:$pid:0:$u1=$u0"
heard "killed before a restore to another" killed
order plain - "back:$pid:0:$u1=$u0"
heard "ordered again" "back $pid done 0 -"
look one
is_on one 0 "$u0"
away "one"
order plain - "back:$pid:0:$u0=$other_type"
heard "to another type" "back $pid away-still 1 $restore"
none=GPU-00000000-0000-0000-0000-000000000000
order plain - "back:$pid:0:$u0=$none"
heard "to none" "back $pid away-still 1 $restore"
order plain - "back:$pid:0:$none=$u1,$u0=$u0"
heard "from none" "back $pid away-still 1 $restore"
export SLUICE_SOFTGPU_CUDA=12080
order plain - "back:$pid:0:$u0=$u1"
heard "a driver that cannot" "back $pid away-still 801 $restore"
order plain - "back:$pid:0:$u0=$u0"
heard "but can lead it back" "back $pid done 0 -"
unset SLUICE_SOFTGPU_CUDA
look one
is_on one 0 "$u0"
kill -KILL "$pid"
wait "$pid" 2>/dev/null

wander two 0,1
away "two"
order plain - "back:$pid:0:$u0=$u2,$u1=$u2"
heard "two to one" "back $pid away-still 1 $restore"
order plain - "back:$pid:0:$u0=$u3,$u1=$u2"
heard "two to two others" "back $pid done 0 -"
look two
is_on two 0 "$u3"
is_on two 1 "$u2"
away "two"
order plain - "back:$pid:0:$u3=$u0,$u2=$u2"
heard "one of two" "back $pid done 0 -"
look two
is_on two 0 "$u0"
is_on two 1 "$u2"
away "two"
order plain - "back:$pid:0:$u0=$u2,$u2=$u0"
heard "one in the place of the other" "back $pid done 0 -"
look two
is_on two 0 "$u2"
is_on two 1 "$u0"
kill -KILL "$pid"
wait "$pid" 2>/dev/null

# A call under way outlives the helper.
wander fat2 0 --bytes 256MiB
away "fat2"
order mid - "back:$pid:0:$u0=$u1"
heard "killed during a restore to another" killed
order plain - "back:$pid:0:$u0=$u1"
heard "during the other's call" "back $pid done 0 -"
look fat2
is_on fat2 0 "$u1"
away "fat2"
CUDA_VISIBLE_DEVICES=3 "$P/holder" --bytes 800MiB --until "$T/filler3.go" >"$T/filler3" &
holder=$!
wait_event "$T/filler3" held
order plain - "back:$pid:0:$u1=$u3"
heard "no room there" "back $pid broken 2 $restore"
touch "$T/filler3.go"
wait $holder
kill -KILL "$pid"
wait "$pid" 2>/dev/null

# --- No driver.
mkdir "$T/none"
: >"$T/none/libcuda.so.1"
(
	export LD_LIBRARY_PATH="$T/none"
	order plain - "away:$$"
)
heard "no library" "away $$ unable 500 cuInit"
(
	unset SLUICE_SOFTGPU
	order plain - "away:$$" "back:$$"
)
heard "no GPU: away" "away $$ unable 100 cuInit"
heard "no GPU: back" "back $$ unable 100 cuInit"
"$B/sluice-move" 0 0 0 3<&- 2>"$T/by-hand"
check "by hand" $? = 64

# --- Users.
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice"; then
	target roots --steps 300 --ms 5 --bytes 16MiB
	roots=$pid
	on roots
	user="65534 65533"
	chmod 777 "$T"
	# As of a daemon: groups, blocked signals and a score of its own for the out-of-memory killer.
	setpriv --groups=0,7 choom -n 500 -- sh -c 'exec "$@"' - "$B/tests/system/mover" "$B/sluice-move" \
		65534 65533 show $state:1 "away:$roots" >"$T/answers" 2>&1
	tab=$(printf '\t')
	heard "its user" "Uid:${tab}65534${tab}65534${tab}65534${tab}65534"
	heard "its group" "Gid:${tab}65533${tab}65533${tab}65533${tab}65533"
	heard "its groups" "Groups:${tab}65533 *"
	heard "no rights" "CapPrm:${tab}0*"
	heard "none in force" "CapEff:${tab}0*"
	heard "nor by programs" "NoNewPrivs:${tab}1"
	heard "no signal is blocked" "SigBlk:${tab}0*"
	heard "nor is it spared when memory runs out" "oom 0"
	order plain - "away:$roots"
	heard "another's process" "away $roots refused 800 $lock"
	on roots
	: >"$T/theirs"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$P/stepper" --until "$T/theirs.go" --steps 2 \
		--bytes 16MiB >>"$T/theirs" 2>&1 &
	pid=$!
	on theirs
	away "their own"
	back "their own"
	right theirs $pid
	right roots "$roots"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$B/tests/system/mover" "$B/sluice-move" 0 0 plain - \
		"away:$roots" >"$T/answers"
	heard "no other user's, without root" "ended 77"
fi
finish
