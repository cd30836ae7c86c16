#!/bin/sh
# docker run under sluice run, with a docker daemon of the test's own: the options are those of podman's, and the workload lasts as
# long as the container. Skips where dockerd does not start.
export BOX="--gpus 1 --memory 1GiB" LIMIT=150
. "$(dirname "$0")/lib.sh"
mib=1048576
[ -x /usr/sbin/dockerd ] && [ -x /usr/bin/docker ] || skip "docker is not installed (Debian: apt install docker.io)"
[ "$(id -u)" = 0 ] || skip "dockerd needs root"
mkdir "$T/docker"
dockerd --data-root "$T/docker/data" --exec-root "$T/docker/exec" -p "$T/docker/pid" -H "unix://$T/docker/sock" --iptables=false --bridge=none \
	--storage-driver vfs >"$T/dockerd.log" 2>&1 &
dockerd=$!
D="/usr/bin/docker -H unix://$T/docker/sock"
end_docker() {
	# shellcheck disable=SC2046,SC2086 # words
	timeout 20 $D rm -f $($D ps -aq) >/dev/null 2>&1
	kill "$dockerd"
	until_true 15 gone "$dockerd"
	grep -o " $T/docker[^ ]*" /proc/self/mounts | xargs -r umount 2>/dev/null
	clean_up
}
trap end_docker EXIT
up() { $D version >/dev/null 2>&1; }
until_true 20 up || skip "dockerd does not start here: $(tail -n 1 "$T/dockerd.log")"
tar -C "$ROOT" -c . | $D import - deb >"$T/out" 2>&1
config 'longest_wait: 20s'
daemon_start
# shellcheck disable=SC2086 # lists of words
contain() {
	contain_name=$1
	shift
	timeout 60 $RUN --name "$contain_name" --request 200MiB --limit 300MiB -- $D run --name "$contain_name" --rm --network none \
		--ulimit nofile=20000:20000 "$@"
}
contain front deb /bin/tenant --bytes 250MiB --ms 500 >"$T/front" 2>&1
check "it ends well" $? = 0
check "it sees a GPU of the size of its limit" "$(json -l event=held total <"$T/front")" = $((300 * mib))
check "and reads what it wrote" "$(json -l event=end wrong <"$T/front")" = 0
contain front deb /bin/sh -c 'exit 7' >"$T/out" 2>&1
check "the exit status passes" $? = 7
mkdir "$T/x"
contain back --detach --mount "type=bind,source=$T/x,target=/x" deb /bin/sh -c '/bin/tenant --bytes 150MiB --work 30 --ms 3000 >/x/back; exec sleep 100' >"$T/out" 2>&1
check "a detached container starts" $? = 0
wait_event "$T/x/back" held
check "its process is at the driver" "$(at_driver)" = 1
daemon_kill
daemon_start
wait_event "$T/x/back" end
check "with another daemon its bytes are whole" "$(json -l event=end wrong <"$T/x/back")" = 0
check "and the request counts" "$(gpu requests_bytes)" = $((200 * mib))
$D kill back >"$T/out" 2>&1
until_true 10 is_over back
check "docker kill ends the workload" $? = 0
contain it deb /bin/sh -c 'exec sleep 100' >"$T/out" 2>&1 &
runs() { [ "$($D inspect -f '{{.State.Running}}' it)" = true ]; }
until_true 20 runs
kill -KILL "$(use it pid)"
until_true 10 sh -c "'$B/sluice' ps --json | grep -q '\"pid\": *$($D inspect -f '{{.State.Pid}}' it)'"
check "docker run killed: the daemon follows the container" $? = 0
$D kill it >"$T/out" 2>&1
until_true 10 is_over it
check "and it ends with the container" $? = 0
check_books_empty
finish
