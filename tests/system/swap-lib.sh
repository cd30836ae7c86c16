#!/bin/sh
# swap-lib - what the tests of swapping share; source it after lib.sh.
#
# `swapper NAME OPTIONS...` starts tests/programs/swapper under Sluice as the workload NAME; `tell`, `ok`, `is`
# and `refused` give it commands, one after the other; `later` gives it one that is answered when it can be.
# `park`, `resume` and `settled` see to where its memory is. SWAPPER_PROGRAM: another one that is told what to do
# (tests/programs/told.h).
# shellcheck disable=SC2034 # for the tests
MIB=1048576
# Of idle ones within their requests nothing would move for 30 s; scene swap-guaranteed is about that.
config 'idle_grace: 0'
# With what programs are started: words for SWAPPER_FRONT stand before `sluice run` (a fault plan, a limit).
SWAPPER_PATIENCE=${SWAPPER_PATIENCE:-40}

# launch_swapper NAME OPTIONS...: does not wait for it.
launch_swapper() {
	swapper_name=$1
	shift
	rm -f "$T/$swapper_name.in"
	mkfifo "$T/$swapper_name.in"
	: >"$T/$swapper_name"
	# Read and write, so that it never ends while there is no writer.
	# shellcheck disable=SC2086 # words
	${SWAPPER_FRONT-} $RUN --name "$swapper_name" "$@" -- ${SWAPPER_PROGRAM:-"$P/swapper"} <>"$T/$swapper_name.in" >"$T/$swapper_name" 2>"$T/$swapper_name.err" &
	eval "PID_$swapper_name=$!"
}
swapper() {
	launch_swapper "$@"
	until_true 20 grep -q start "$T/$1" && return
	fail "$1 does not start: $(cat "$T/$1.err")"
	# It has no reader any more: opening its pipe waits for ever.
	finish
}
pid_of() { eval "echo \$PID_$1"; }
# Answers to what was asked in order; those of `later` are apart.
answers() { grep -vc async "$T/$1"; }
answered() { [ "$(answers "$1")" -gt "$2" ]; }
# tell NAME COMMAND...: RESULT and VALUE of its answer.
tell() {
	tell_name=$1
	shift
	tell_lines=$(answers "$tell_name")
	echo "$*" >"$T/$tell_name.in"
	RESULT="no answer" VALUE="no answer" ANSWER=
	if until_true "$SWAPPER_PATIENCE" answered "$tell_name" "$tell_lines"; then
		ANSWER=$(grep -v async "$T/$tell_name" | tail -n 1)
		RESULT=$(echo "$ANSWER" | json result)
		VALUE=$(echo "$ANSWER" | json value)
	fi
}
# ok NAME COMMAND...: must succeed.
ok() {
	tell "$@"
	[ "$RESULT" = CUDA_SUCCESS ] || check "$*" "$RESULT" = CUDA_SUCCESS
}
# is WHAT VALUE NAME COMMAND...: succeeds with this value.
is() {
	is_what=$1 is_value=$2
	shift 2
	ok "$@"
	check "$is_what" "$VALUE" = "$is_value"
}
# refused WHAT ERROR NAME COMMAND...
refused() {
	refused_what=$1 refused_error=$2
	shift 2
	tell "$@"
	check "$refused_what" "$RESULT" = "$refused_error"
}
# later NAME COMMAND...: begun in a thread of its own. late NAME COUNT: so many of them have been answered.
later() {
	later_name=$1
	shift
	echo "& $*" >"$T/$later_name.in"
}
late() { [ "$(grep -c async "$T/$1")" -ge "$2" ]; }
# Of all its work in threads: "rounds wrong errors".
stop_work() {
	tell "$1" stop
	check "$1: wrong words in its threads" "$(echo "$ANSWER" | json wrong)" = 0
	check "$1: errors in its threads ($RESULT)" "$(echo "$ANSWER" | json errors)" = 0
}
rounds_of() {
	tell "$1" rounds
	echo "$VALUE"
}
# goes_on NAME: its threads get rounds done.
goes_on() {
	goes_on_from=$(rounds_of "$1")
	until_true "${2:-20}" has_gone_on "$1" "$goes_on_from"
}
has_gone_on() { [ "$(rounds_of "$1")" -gt "$2" ]; }

# --- where its memory is ---------------------------------------------------------------------------------

residency() { use "$1" residency; }
is_at() { [ "$(residency "$1")" = "$2" ]; }
evicted_bytes() { use "$1" evicted_bytes; }
evicted_at_least() { [ "$(evicted_bytes "$1")" -ge "$2" ]; }
# settled NAME RESIDENCY: it is so, soon.
settled() {
	CHECKS=$((CHECKS + 1))
	if until_true "${3:-$SWAPPER_PATIENCE}" is_at "$1" "$2"; then
		note "ok: $1 is $2"
	else
		fail "$1 is \"$(residency "$1")\", not \"$2\": $("$B/sluice" ps --json | tr -d ' \n' | cut -c 1-900)"
	fi
}
park() {
	CHECKS=$((CHECKS + 1))
	timeout "$((SWAPPER_PATIENCE * SLOWER))" "$B/sluice" park "$1" >"$T/park.out" 2>&1 ||
		fail "park $1: status $?: $(cat "$T/park.out"): $("$B/sluice" why "$1" 2>&1 | head -n 3)"
	is_at "$1" parked || fail "$1 is not parked, but $(residency "$1")"
}
resume() {
	CHECKS=$((CHECKS + 1))
	timeout "$((SWAPPER_PATIENCE * SLOWER))" "$B/sluice" resume "$1" >"$T/resume.out" 2>&1 ||
		fail "resume $1: status $?: $(cat "$T/resume.out"): $("$B/sluice" why "$1" 2>&1 | head -n 3)"
	is_at "$1" bound || fail "$1 is not back, but $(residency "$1")"
}
# All it has is right, looked at by the program itself.
contents() {
	is "$1: wrong words${2:+, $2}" 0 "$1" checkall
}
# --- which GPU it is on -----------------------------------------------------------------------------------

# As the driver lists it, whatever the daemon believes; nothing: on none.
where() { "$P/nvml-view" | sed -n "s/.*\"what\":\"process\",\"index\":\([0-9]*\),\"pid\":$(pid_of "$1"),.*/\1/p"; }
is_on() { [ "$(where "$1")" = "$2" ]; }
# Of two.
other_of() { echo $((1 - $(use "$1" gpu))); }
move() { timeout "$((SWAPPER_PATIENCE * SLOWER))" "$B/sluice" move "$@" >"$T/move.out" 2>&1; }

end_swapper() {
	echo exit >"$T/$1.in"
	wait "$(pid_of "$1")"
	check "$1: status" $? = 0
	rm -f "$T/$1.in"
}
kill_swapper() {
	kill -KILL "$(pid_of "$1")"
	wait "$(pid_of "$1")" 2>/dev/null
	rm -f "$T/$1.in"
}
# Swappers that are started from here on read their faults from a file; another file under the name is another plan.
read_plans() {
	PLAN=$T/faults
	SWAPPER_FRONT="env SLUICE_SOFTGPU_FAULTS_FILE=$PLAN"
}
put_plan() {
	echo "$1" >"$PLAN.new"
	mv "$PLAN.new" "$PLAN"
}
