#!/bin/sh
# In front of a driver that does nothing, in a thread that may make no system call.
. "$(dirname "$0")/../system/lib.sh"
software_only "the driver is a stub"
daemon_start
uuid=$("$B/sluice" gpus --json | json 0.uuid)
LD_LIBRARY_PATH="$B/tests/bench${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" BENCH_GPU_UUID="$uuid" \
	$RUN --limit 256MiB -- "$B/tests/peers/peer" 26
status=$?
[ $status = 77 ] && skip "no seccomp here"
check "launches and copies stay in the process" $status = 0
finish
