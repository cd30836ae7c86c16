#!/bin/sh
# Compute requests on a GPU add up to 1 at most: workloads go where theirs fits, wait, or are refused, within what their project leaves.
export BOX='--gpus 2 --memory 1GiB'
export LIMIT=120
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "two GPUs of one kind"
config "data_dir: $T/data"
config "placement: pack"
daemon_start
S=$B/sluice
# stay NAME OPTIONS...: runs until $T/NAME.end exists; $T/NAME.gpu is what the program sees.
stay() {
	stay_name=$1
	shift
	# shellcheck disable=SC2016 # the program's shell expands them
	$RUN --name "$stay_name" "$@" -- sh -c 'echo "$CUDA_VISIBLE_DEVICES" >"$0.gpu"; until [ -e "$0.end" ]; do sleep 0.1; done' "$T/$stay_name" \
		>"$T/$stay_name.said" 2>&1 &
	until_true 20 test -s "$T/$stay_name.gpu" || fail "$stay_name does not run: $(cat "$T/$stay_name.said")"
}
gone() { [ "$(workloads)" = "$1" ]; }
refused() {
	what=$1 pattern=$2
	shift 2
	"$@" >"$T/said" 2>&1
	check "$what: status" $? = 75
	check_file "$what" "$T/said" "$pattern"
}

stay first --request 64MiB --compute-request 0.6
stay second --request 64MiB --compute-request 0.6
check "two that want most of the time are on two GPUs" "$(cat "$T/first.gpu" "$T/second.gpu" | sort | tr '\n' ' ')" = "0 1 "
stay small --request 64MiB --compute-request 0.4
refused "a third one" "a compute request of 0.6 does not fit: others' compute requests leave 0.4 at best" \
	$RUN --request 64MiB --compute-request 0.6 -- true
check_file "with the remedy" "$T/said" "lower --compute-request, or wait until one of them ends"
$RUN --request 64MiB -- true
check "without a compute request there is room" $? = 0
refused "more for one whose GPU is full" "others' compute requests leave 0.4 at best" "$S" set small --compute-request 0.5
"$S" set small --compute-request 0.3 >"$T/said"
check "less for it" $? = 0

# A job waits for the time of a GPU, says so, and starts.
"$S" submit --name job --request 64MiB --compute-request 0.8 -- true >"$T/said" 2>&1 || fail "not submitted: $(cat "$T/said")"
waits() { "$S" why job >"$T/why" 2>&1; grep -q 'it wants 0.8 GPUs' "$T/why"; }
until_true 20 waits
check "why says what it waits for" $? = 0
: >"$T/first.end"
: >"$T/small.end"
"$S" wait job --timeout 30s >"$T/said" 2>&1
check "it runs once there is time" $? = 0
: >"$T/second.end"
until_true 20 gone 0

# A park gives the compute request up; a resume claims it again where the others leave room, and waits until then.
is_there() { ! is_at "$1" resuming && ! is_at "$1" parked; }
stay full --request 64MiB --compute-request 1
stay held --request 64MiB --compute-request 0.4
"$S" park held >"$T/said" 2>&1 || fail "not parked: $(cat "$T/said")"
stay taker --request 64MiB --compute-request 0.7
check "it takes what the parked one gave up" "$(cat "$T/taker.gpu")" = "$(cat "$T/held.gpu")"
lacks="compute request of 0.4 fits on GPU [01] again; those of others leave 0.3. .sluice set held --compute-request. lowers it"
"$S" resume --no-wait held >"$T/said" 2>&1
check "a resume may wait" $? = 0
check_file "and says for what" "$T/said" "$lacks"
"$S" why held >"$T/why" 2>&1
check_file "so does why" "$T/why" "$lacks"
check "it waits" "$(residency held)" = resuming
"$S" set held --compute-request 0.3 >"$T/said" 2>&1 || fail "not lowered: $(cat "$T/said")"
check "with less it comes back" "$(until_true 20 is_there held && echo yes)" = yes
"$S" park held >"$T/said" 2>&1 || fail "not parked: $(cat "$T/said")"
"$S" set held --compute-request 1 >"$T/said" 2>&1
check "more for a parked one" $? = 0
check_file "is no promise yet" "$T/said" 'whether its requests fit .* is seen when it is resumed'
"$S" resume --no-wait held >"$T/said" 2>&1
check_file "it waits until all of a GPU is left" "$T/said" 'those of others leave 0.3'
refused "nothing is promised twice" "a compute request of 0.4 does not fit: others' compute requests leave 0.3 at best" \
	$RUN --request 64MiB --compute-request 0.4 -- true
check "it still waits" "$(residency held)" = resuming
: >"$T/taker.end"
check "it comes back after that" "$(until_true 20 is_there held && echo yes)" = yes
: >"$T/full.end"
: >"$T/held.end"
until_true 20 gone 0

# The project bounds the sum.
cat >"$T/projects.yaml" <<'Y'
projects:
  lab: {compute: {quota: 0.5, limit: 0.8}}
Y
"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1 || fail "not applied: $(cat "$T/said")"
stay one --project lab --request 64MiB --compute-request 0.7
refused "beyond the limit" 'it wants 0.4 GPUs of compute, but the limit of project lab leaves 0.1 GPUs of compute' \
	$RUN --project lab --request 64MiB --compute-request 0.4 -- true
refused "a change beyond it" 'it wants 0.9 GPUs of compute, but the limit of project lab is 0.8' "$S" set one --compute-request 0.9
"$S" project list >"$T/said"
check_file "the list has it" "$T/said" '^lab .* 0.5 to 0.8 '
"$S" project show lab >"$T/said"
check_file "so has the file" "$T/said" 'compute: .*quota: 0.5.*limit: 0.8'
printf 'projects: {lab: {compute: {quota: 2, limit: 1}}}\n' >"$T/bad.yaml"
"$S" project apply "$T/bad.yaml" >"$T/said" 2>&1
check "a quota above the limit: status" $? = 64
check_file "a quota above the limit" "$T/said" 'compute.quota'
: >"$T/one.end"
finish
