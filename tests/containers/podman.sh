#!/bin/sh
# podman run under sluice run: the container's processes are the workload, and the workload lasts as long as they do, whatever
# ends podman, conmon, the container or the daemon. Judged by the driver and by what the programs read back.
# shellcheck disable=SC2086,SC2153 # PODMAN and PLAIN are lists of words
export BOX="--gpus 1 --memory 1GiB" LIMIT=170
. "$(dirname "$0")/lib.sh"
mib=1048576
daemon_start
said() { json -l "event=$2" "$3" <"$T/$1"; }
# The containers are named as their workloads are.
# shellcheck disable=SC2086 # lists of words
contain() { # contain NAME OPTIONS COMMAND...: 200 MiB guaranteed, 300 MiB at most
	contain_name=$1
	shift
	timeout 100 $RUN --name "$contain_name" --request 200MiB --limit 300MiB -- $PODMAN run --name "$contain_name" --rm $PLAIN "$@"
}
# shellcheck disable=SC2086
pod() { timeout 60 $PODMAN "$@"; }

# In the foreground.
contain front --rootfs "$ROOT" /bin/tenant --bytes 250MiB --work 30 --ms 2500 >"$T/front" 2>"$T/front.err" &
front=$!
wait_event "$T/front" held
check "the driver has the container's process" "$(at_driver)" = 1
check "it sees a GPU of the size of its limit" "$(said front held total)" = $((300 * mib))
check "the daemon counts one process" "$("$B/sluice" ps --clients --json | json '#')" = 1
wait $front
check "podman's exit status is the container's" $? = 0
check "what was written is what is read" "$(said front end wrong)" = 0
until_true 10 is_over front
check "and the workload ends with it" $? = 0
contain front --rootfs "$ROOT" /bin/sh -c 'exit 7' >"$T/out" 2>&1
check "another exit status passes, too" $? = 7
contain front --rootfs "$ROOT" /bin/tenant --bytes 301MiB --ms 100 >"$T/more" 2>&1
check "above the limit is out-of-memory" "$(json -n event=oom <"$T/more")" -gt 0
check_books_empty

# Detached. Its first process uses no GPU.
contain back --detach --rootfs "$ROOT" /bin/sh -c '/bin/tenant --bytes 150MiB --work 30 --ms 3000 >/tmp/back; exec sleep 100' >"$T/out" 2>&1
check "a detached container starts" $? = 0
wait_event "$ROOT/tmp/back" held
check "its process is at the driver" "$(at_driver)" = 1
check "the daemon follows the container" "$(use back pid)" = "$(init_of back)"
wait_event "$ROOT/tmp/back" end
check "its bytes are whole" "$(json -l event=end wrong <"$ROOT/tmp/back")" = 0
until_true 10 at_driver_is 0
check "without processes on the GPU its request still counts" "$(gpu requests_bytes)" = $((200 * mib))
pod stop -t 0 back >"$T/out" 2>&1
until_true 10 is_over back
check "podman stop ends the workload" $? = 0
check_books_empty

# What dies before the container does.
for victim in podman conmon sluiced both; do
	contain it --rootfs "$ROOT" /bin/sh -c '/bin/tenant --bytes 150MiB --work 30 --ms 2500 >/tmp/it; exec sleep 100' >"$T/out" 2>&1 &
	front=$!
	wait_event "$ROOT/tmp/it" held
	init=$(init_of it) conmon=$($PODMAN inspect -f '{{.State.ConmonPid}}' it) podman=$(use it pid)
	case $victim in
	podman | both)
		[ $victim = podman ] || daemon_kill
		kill -KILL "$podman"
		[ $victim = podman ] || daemon_start
		;;
	conmon) kill -KILL "$conmon" ;;
	sluiced)
		daemon_kill
		daemon_start
		;;
	esac
	wait_event "$ROOT/tmp/it" end
	# Without conmon this podman waits for ever.
	[ $victim != conmon ] || kill -KILL "$podman"
	check "$victim killed: the container's bytes are whole" "$(json -l event=end wrong <"$ROOT/tmp/it")" = 0
	check "$victim killed: the workload is there" "$(workloads)" = 1
	[ $victim != sluiced ] || check "$victim killed: and a new process of the container is limited as before" \
		"$(timeout 30 $PODMAN exec it /bin/tenant --bytes 100MiB --ms 100 | json -l event=held total)" = $((300 * mib))
	kill -KILL "$init"
	until_true 10 is_over it
	check "$victim killed: it ends with the container" $? = 0
	kill -KILL $front 2>/dev/null
	wait $front 2>/dev/null
	pod rm -f it >/dev/null 2>&1
	rm -f "$ROOT/tmp/it"
done
check_books_empty

# sluice stop, from without.
contain stopped --detach --rootfs "$ROOT" /bin/sh -c 'trap "exit 0" TERM; while :; do sleep 0.1; done' >"$T/out" 2>&1
"$B/sluice" stop stopped >"$T/out" 2>&1
check "sluice stop takes a container" $? = 0
until_true 15 is_over stopped
check "and ends it" $? = 0
nothing() { [ -z "$(find "$T/runs" -mindepth 2)" ]; }
until_true 10 nothing
check "its folder is gone" $? = 0
check_books_empty
daemon_stop
check "SIGTERM ends the daemon well" $? = 0
finish
