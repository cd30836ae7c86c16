#!/bin/sh
# Two and three tenants with shares of one GPU's time get them, with short and with long kernels, queued or waited for.
export BOX='--gpus 1 --memory 1GiB --engine-us 2000'
export LIMIT=180
. "$(dirname "$0")/lib.sh"
software_only "one engine for the kernels of all programs"
daemon_start
MS=${COMPUTE_MS:-4000}
# tenant NAME SHARE OPTIONS...: is ready when this returns, and starts with $T/go.
tenant() {
	tenant_name=$1 tenant_share=$2
	shift 2
	# shellcheck disable=SC2086 # the share is words
	$RUN --request 64MiB --name "$tenant_name" $tenant_share -- "$P/pacer" --ms "$MS" --go "$T/go" "$@" >"$T/$tenant_name" 2>&1 &
	TENANTS="$TENANTS $!"
	wait_event "$T/$tenant_name" started
}
contest() {
	TENANTS=
	rm -f "$T/go"
}
run() {
	: >"$T/go"
	# shellcheck disable=SC2086 # a list of pids
	wait $TENANTS
}
got() { json -l event=end gpu_us <"$T/$1"; }
# check_share NAME PERCENT WITHIN OTHERS...: its part of what it and the others got.
check_share() {
	share_name=$1 share_want=$2 share_within=$3
	shift 3
	share_sum=$(got "$share_name")
	for share_other in "$@"; do share_sum=$((share_sum + $(got "$share_other"))); done
	share_pct=$((($(got "$share_name") * 200 / (share_sum + 1) + 1) / 2))
	check "$share_name's part in %, of $share_want" "$share_pct" -ge $((share_want - share_within))
	check "$share_name's part in %, of $share_want" "$share_pct" -le $((share_want + share_within))
}

contest
tenant low "--compute-request 0.2"
tenant high "--compute-request 0.8"
run
check_share low 20 8 high

contest
tenant a "--compute-request 0.2" --us 300
tenant b "--compute-request 0.3" --us 30000 --blocks 30
tenant c "--compute-request 0.5" --us 1000 --queue 64
run
check_share a 20 8 b c
check_share b 30 8 a c
check_share c 50 8 a b

# While one is stopped, the others go on, and it does when it is continued; one that is killed in its slice leaves the
# GPU to the others; so does the daemon.
MS=100000
contest
tenant stopped "--compute-request 0.5" --us 500
tenant other "--compute-request 0.3" --us 500
tenant killed "--compute-request 0.2" --us 500
: >"$T/go"
# shellcheck disable=SC2086 # a list of pids
set -- $TENANTS
# In tenths.
used() { use "$1" compute.used | cut -c 1-3 | tr -d .; }
is_used() { [ "$(used "$1")" -gt 0 ]; }
is_unused() { [ "$(used "$1")" -eq 0 ]; }
has_most() { [ "$(used "$1")" -ge "$2" ]; }
until_true 20 is_used stopped && until_true 20 is_used other && until_true 20 is_used killed
check "all three work" $? = 0
kill -STOP "$1"
until_true 20 is_unused stopped && until_true 20 has_most other 5
check "the others go on beside a stopped one" $? = 0
kill -KILL "$3"
until_true 20 has_most other 9
check "one goes on alone" $? = 0
kill -CONT "$1"
until_true 20 is_used stopped
check "the stopped one goes on" $? = 0
daemon_kill
daemon_start
until_true 20 is_used stopped && until_true 20 is_used other
check "both are metered by the next daemon" $? = 0
check "its share outlived the daemon" "$(use other compute.request)" = 0.300000
"$B/sluice" set other --compute-limit 0.2 >"$T/set" 2>&1
check "a limit below the request is refused" $? = 75
check_file "with the reason" "$T/set" "compute-limit must not be below"
"$B/sluice" set other --compute-request 0 >"$T/set"
"$B/sluice" set stopped --compute-request 0 >"$T/set"
not_metered() { [ "$(use other compute.used)" = "" ]; }
until_true 20 not_metered
check "without shares nothing is metered" $? = 0
kill -KILL "$1" "$2"
finish
