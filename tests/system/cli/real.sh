#!/bin/sh
# The command line with the real daemon on software GPUs: admission, lists, refusals with the
# numbers, and that two boxes do not meet.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE

# In a box: starts the daemon, waits for it, then does what the script in $1 says.
in_box() {
	timeout -k 5 60 "$sluice" softgpu --gpus 2 --memory 4GiB -- sh -c '
		sluiced 2>"$2/daemon.log" & daemon=$!
		tries=0
		until sluice gpus >"$2/ready" 2>&1; do
			tries=$((tries + 1))
			[ $tries -gt 200 ] && { cat "$2/ready" "$2/daemon.log" >&2; exit 99; }
			sleep 0.05
		done
		eval "$1"
		status=$?
		kill $daemon
		wait $daemon
		exit $status' sh "$1" "$work"
}

expect 'gpus' 0 '^ *0 .* ok$' in_box 'sluice gpus'
same 'two GPUs' "$(grep -c ' ok$' "$work/out")" 2
expect 'an admitted CMD runs' 0 '^CUDA_VISIBLE_DEVICES=[01]$' \
	in_box 'sluice run --request 0.5 --name first -- env'
expect 'status passes' 42 '' in_box 'sluice run --request 1GiB -- sh -c "exit 42"'
expect 'two GPUs for one' 0 '^CUDA_VISIBLE_DEVICES=0,1$' in_box 'sluice run --gpus 2 -- env'
expect 'the mask of the user' 0 '^CUDA_VISIBLE_DEVICES=1$' \
	in_box 'CUDA_VISIBLE_DEVICES=1 sluice run -- env'
expect 'more GPUs than there are' 75 '3 GPUs wanted, and sluiced manages 2' in_box 'sluice run --gpus 3 -- true'
expect 'an unknown GPU' 75 'CUDA_VISIBLE_DEVICES leaves 0 of the 2' in_box 'CUDA_VISIBLE_DEVICES=7 sluice run -- true'
expect 'more than a GPU has' 75 'a request of 64 GiB does not fit any GPU' in_box 'sluice run --request 64GiB -- true'
expect 'limit below request, across kinds' 75 'the limit (.*) is below the request (1 GiB)' \
	in_box 'sluice run --request 1GiB --limit 0.01 -- true'
expect 'request 0 takes all that is free' 0 '^4 ' in_box '
	sluice run --request 0 --name zero -- sleep 60 & pid=$!
	until sluice ps | grep -q zero; do sleep 0.05; done
	sluice ps --json | tr -d " ," | sed -n "s/\"limit_bytes\"://p" | while read -r b; do
		echo $(((b + (1 << 29)) >> 30)) "$b"; done
	sluice ps --json | grep -q "\"request_bytes\": 0,"; status=$?
	kill $pid
	(exit $status)'
expect 'what others requested' 75 "others' requests and held memory leave .* at best" in_box '
	sluice run --gpus 2 --request 0.8 -- sleep 60 & pid=$!
	until sluice ps | grep -q sleep; do sleep 0.05; done
	sluice run --request 0.5 -- true
	status=$?
	kill $pid
	(exit $status)'
expect 'ps' 0 '^ *[0-9]*  *srv  *default .* 5  *reserved .* sleep 60$' in_box '
	sluice run --request 512Mi --limit 0.5 --priority 5 --name srv -- sleep 60 & pid=$!
	until sluice ps | grep -q sleep; do sleep 0.05; done
	sluice ps
	kill $pid'
expect 'ps --json has the UUID that gpus has' 0 '' in_box '
	sluice run --request 512Mi --name srv -- sleep 60 & pid=$!
	until sluice ps | grep -q sleep; do sleep 0.05; done
	uuid=$(sluice ps --json | sed -n "s/.*\"gpu_uuid\": \"\(GPU-[0-9a-f-]*\)\".*/\1/p")
	kill $pid
	[ -n "$uuid" ] && sluice gpus | grep -q -e "$uuid"'
expect 'a workload goes with its process' 0 '' in_box '
	sluice run --name short -- true
	tries=0
	while sluice ps | grep -q short; do
		tries=$((tries + 1)); [ $tries -lt 100 ] || exit 1
		sleep 0.05
	done'
expect 'doctor' 0 ' 0 failed' in_box 'sluice doctor'
expect 'version' 0 '^daemon   0' in_box 'sluice version'
expect 'run inside run' 0 '^inner$' in_box 'sluice run --limit 0.5 -- sluice run -- echo inner'

# Two boxes at once: each with its own daemon and GPUs.
in_box 'sluice run --name one -- sleep 60 & pid=$!
	until sluice ps | grep -q one; do sleep 0.05; done
	touch "$2/one"; while [ ! -e "$2/two" ]; do sleep 0.05; done; kill $pid' &
other=$!
wait_for "$work/one"
mkdir "$work/second"
expect 'two boxes do not meet' 0 '^0$' "$sluice" softgpu --gpus 1 --memory 1GiB -- sh -c '
	sluiced 2>"$0/daemon.log" & daemon=$!
	tries=0
	until sluice gpus >/dev/null 2>&1; do
		tries=$((tries + 1)); [ $tries -gt 200 ] && { cat "$0/daemon.log" >&2; exit 99; }
		sleep 0.05
	done
	sluice ps | grep -c one
	kill $daemon' "$work/second"
touch "$work/two"
wait $other || fail "the first box ended with $?"
finish
