#!/bin/sh
# Whichever call of the driver fails while memory is moved away or back, once, or hangs for a while, the program finds
# every word and sees no error, and can be moved again; and so when the host has no memory. The plan is put
# before the program when it is at rest and moved at once, so that the calls that fail are those of moving.
# peer-failures row 33.
export LIMIT=${LIMIT:-170}
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a fault plan"
config 'host_memory: 1GiB'
daemon_start
read_plans
SRC=$(dirname "$0")/../../src/runtime
# All that can leave has left.
out_whole() { is_at plan parked && [ "$(evicted_bytes plan)" -ge $((66 * MIB)) ]; }
program() {
	swapper plan --request 0.2 --limit 0.9
	ok plan alloc big 40m
	ok plan fill big 1
	ok plan many small 20 5000
	ok plan put small 2
	ok plan handles mine 8m 4m
	ok plan fill mine 3
	ok plan segment torch 8m 4m
	ok plan fill torch 4
	ok plan alloc zeros 8m
	ok plan zero zeros
}
# moved PLAN SECONDS: away and back once, looked at; with a new plan after SECONDS of each, if they are told.
moved() {
	"$B/sluice" park --no-wait plan >"$T/park.out" 2>&1 || fail "$1: park: $(cat "$T/park.out")"
	[ $# = 1 ] || hung out_whole "$2"
	until_true 30 out_whole || fail "$1: it is not parked, but $(residency plan) with $(evicted_bytes plan) out"
	[ $# = 1 ] || put_plan "$1"
	"$B/sluice" resume --no-wait plan >"$T/resume.out" 2>&1 || fail "$1: resume: $(cat "$T/resume.out")"
	[ $# = 1 ] || hung "is_at plan bound" "$2"
	until_true 30 is_at plan bound || fail "$1: it is not back, but $(residency plan)"
	put_plan ""
	tell plan checkall
	[ "$RESULT$VALUE" = CUDA_SUCCESS0 ] || fail "$1: $ANSWER; $(head -n 3 "$T/plan.err")"
}
# hung WHAT SECONDS: from when the call is met, if it is before what is so when it was not.
hung() {
	met_or_over() { test -s "$PLAN.met" || $1; }
	until_true 30 met_or_over "$1"
	sleep "$2"
	put_plan ""
}
# one PLAN: when it fails, the next begins with a new program.
one() {
	one_failed=$FAILED
	rm -f "$PLAN.met"
	put_plan "$1"
	moved "$1"
	[ -s "$PLAN.met" ] && met=$((met + 1)) && note "met: $1"
	plans=$((plans + 1))
	[ "$FAILED" = "$one_failed" ] && return
	kill_swapper plan
	program
}
plans=0
put_plan ""
program
# As after any failure, the first time is behind it.
moved "no plan"
# What the files call that move memory. Not on the way of a program at rest: code of the hash is loaded, and addresses
# are reserved and freed, when contexts and memory are made; cuMemExportToShareableHandle is for other processes,
# cuStreamQuery for contexts that are broken, and cuMemHostUnregister for what is given back. Our threads ask what
# cuThreadExchangeStreamCaptureMode is for when they begin.
moving="swap/mover swap/copier contexts/usable contexts/prove contexts/settle store/pinning swap/piece swap/handles memory/backing hash/hash"
calls=$(for file in $moving; do grep -ho 'sl_real\.cu[A-Za-z0-9_]*' "$SRC/$file.c"; done | sed 's/.*\.//' | sort -u |
	grep -v -e cuModule -e cuMemAddress -e cuDeviceGetAttribute -e cuMemExport -e cuStreamQuery -e cuMemHostUnregister \
		-e cuThreadExchange)
# Host memory is pinned when it comes, with the first move of a program.
first="cuMemHostRegister_v2"
check "calls that are to fail" "$(echo "$calls" | wc -l)" -ge 20
unmet=
for call in ${SWAP_CALLS:-$calls}; do
	met=0
	# The copies of every thing fail once.
	plans_of="1=out_of_memory 4=unknown"
	[ $call != cuMemcpyHtoDAsync_v2 ] || plans_of="1=out_of_memory 2=unknown 3=unknown 4=unknown 5=unknown"
	for plan in ${SWAP_PLANS:-$plans_of}; do
		[ $call != $first ] || {
			kill_swapper plan
			program
		}
		one "$call:$plan"
	done
	[ $met -gt 0 ] || unmet="$unmet $call"
done
note "$plans plans"
check "calls that no plan met:$unmet" "$unmet" = ""
# Calls that do not come back for a second.
met=0
for call in cuCtxSynchronize cuMemUnmap cuMemMap; do
	rm -f "$PLAN.met"
	put_plan "$call:1=hang"
	moved "$call:1=hang" 1
	[ -s "$PLAN.met" ] && met=$((met + 1)) && note "met: $call:1=hang"
done
check "calls that did not come back for a while" $met -ge 2
end_swapper plan

# While work goes on: a context that cannot be asked whether it has ended is not moved from under
# it.
swapper plan --request 0.2 --limit 0.9
ok plan alloc big 30m
ok plan fill big 1
ok plan begin rounds 2 4m 1
for call in cuCtxSynchronize cuCtxGetCurrent; do
	rm -f "$PLAN.met"
	put_plan "$call:@1=out_of_memory"
	"$B/sluice" park --no-wait plan >"$T/park.out" 2>&1 || fail "$call: park: $(cat "$T/park.out")"
	until_true 10 test -s "$PLAN.met"
	check "$call fails while work goes on" $? = 0
	sleep 0.5
	check "$call: nothing leaves" "$(evicted_bytes plan)" = 0
	put_plan ""
	until_true 20 is_at plan parked && until_true 20 evicted_at_least plan $((30 * MIB))
	check "and all does when it can be asked" $? = 0
	resume plan
	goes_on plan || fail "$call: its work does not go on"
done
stop_work plan
contents plan "after it could not be asked"
end_swapper plan
# shellcheck disable=SC2034 # swap-lib.sh reads it
SWAPPER_FRONT=
check_books_empty
check "the daemon lived through it" "$(daemon_up && echo yes)" = yes
daemon_stop

# The host has nothing to give: less than the program has, by the daemon's bound or by the system's own.
for bound in config limit; do
	printf 'host_memory: 1GiB\n' >"$CONFIG"
	[ $bound = config ] && printf 'host_memory: 16MiB\n' >"$CONFIG"
	# Files of a process can be no larger than this: memory files are meant, too.
	[ $bound = limit ] && DAEMON_FRONT="prlimit --fsize=8388608"
	daemon_start
	# shellcheck disable=SC2034 # lib.sh reads it
	DAEMON_FRONT=
	swapper little --request 0.2 --limit 0.9
	ok little alloc big 100m
	ok little fill big 1
	"$B/sluice" park --no-wait little >"$T/park.out" 2>&1
	note "park: $(head -n 1 "$T/park.out")"
	sleep 1
	contents little "with no host memory ($bound)"
	check "$bound: nothing is half away" "$(evicted_bytes little)" -le $((16 * MIB))
	"$B/sluice" resume --no-wait little >/dev/null 2>&1
	settled little bound
	contents little "and after it was resumed"
	check "$bound: the daemon lived through it" "$(daemon_up && echo yes)" = yes
	end_swapper little
	check_books_empty
	daemon_stop
done
finish
