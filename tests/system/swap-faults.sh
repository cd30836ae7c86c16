#!/bin/sh
# Whichever call of the driver fails while memory is moved away or back, once, the program finds every word and
# sees no error; and so when the host has no memory. The plan makes each call that moving may use fail in turn,
# counted from the start of the process, so that the program's own come first: a program that sees the
# failure of its own call is no news, one that loses a word is.
# peer-failures row 33.
export LIMIT=${LIMIT:-170}
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a fault plan"
config 'host_memory: 1GiB'
daemon_start
SWAPPER_PATIENCE=20
# one PLAN: a program under it is parked and resumed twice, and looked at.
one() {
	SWAPPER_FRONT="env SLUICE_SOFTGPU_FAULTS=$1"
	launch_swapper plan --request 0.2 --limit 0.9
	SWAPPER_FRONT=
	if ! until_true 10 grep -q start "$T/plan"; then
		# Its own first calls met the fault.
		early=$((early + 1))
		kill_swapper plan
		return
	fi
	for line in "alloc big 40m" "fill big 1" "many small 20 5000" "put small 2" "handles mine 8m 4m" "fill mine 3" "alloc zeros 8m" "zero zeros"; do
		# shellcheck disable=SC2086 # words
		tell plan $line
		[ "$RESULT" = CUDA_SUCCESS ] || {
			early=$((early + 1))
			kill_swapper plan
			return
		}
	done
	planned=$((planned + 1))
	for _ in 1 2; do
		"$B/sluice" park --no-wait plan >"$T/park.out" 2>&1 || fail "$1: park: $(cat "$T/park.out")"
		until_true 15 out_whole plan || fail "$1: it is not parked, but $(residency plan)"
		"$B/sluice" resume --no-wait plan >"$T/resume.out" 2>&1 || fail "$1: resume: $(cat "$T/resume.out")"
		until_true 15 is_at plan bound || fail "$1: it is not back, but $(residency plan)"
	done
	tell plan checkall
	[ "$RESULT$VALUE" = CUDA_SUCCESS0 ] || fail "$1: $ANSWER; $(head -n 3 "$T/plan.err")"
	echo exit >"$T/plan.in"
	until_true 10 gone "$(pid_of plan)" || fail "$1: it does not end"
	kill -KILL "$(pid_of plan)" 2>/dev/null
	wait "$(pid_of plan)" 2>/dev/null
	rm -f "$T/plan.in"
}
# All that can leave has left.
out_whole() { is_at "$1" parked && [ "$(evicted_bytes "$1")" -ge $((58 * MIB)) ]; }
early=0 planned=0
# What the program itself calls before it is moved is left alone: how often that is, without a fault.
calls="cuMemCreate cuMemMap cuMemSetAccess cuMemUnmap cuMemRelease cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2
	cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuMemsetD32Async cuStreamCreate cuStreamCreateWithPriority cuStreamSynchronize cuStreamQuery cuEventRecord
	cuEventCreate cuEventSynchronize cuEventQuery cuStreamWaitEvent cuCtxSynchronize cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSetCurrent cuMemHostRegister_v2
	cuMemHostUnregister cuMemHostAlloc cuMemAllocHost_v2 cuModuleLoadData cuLaunchKernel cuMemGetAllocationGranularity
	cuThreadExchangeStreamCaptureMode cuMemHostGetDevicePointer_v2"
for call in ${SWAP_CALLS:-$calls}; do
	for at in ${SWAP_AT:-3 7 13}; do
		one "$call:$at=${SWAP_ERROR:-out_of_memory}"
	done
done
check "plans tried with memory moved under them" $planned -ge 30
note "plans that the program met before it was moved: $early"
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
	DAEMON_FRONT=
	swapper little --request 0.2 --limit 0.9
	ok little alloc big 100m
	ok little fill big 1
	"$B/sluice" park --no-wait little >"$T/little" 2>&1
	note "park: $(head -n 1 "$T/little")"
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
