#!/bin/sh
# sluice cdi with podman: containers come and go, stop and start again, and share the limit of one workload. Judged from inside
# of the containers and by the driver. podman reads /etc/cdi, so the test has an /etc of its own.
# shellcheck disable=SC2086,SC2153 # PODMAN and PLAIN are lists of words
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
	echo "  skipped: needs root and a mount namespace of its own"
	exit 77
fi
[ -n "${SLUICE_TEST_ETC-}" ] || SLUICE_TEST_ETC=1 exec unshare --mount sh "$0" "$@"
export SLUICE_TEST_ETC BOX="--gpus 2 --memory 1GiB" LIMIT=170
. "$(dirname "$0")/lib.sh"
mib=1048576
cp -a /etc "$T/etc" && rm -rf "$T/etc/cdi" && mount --bind "$T/etc" /etc || exit 99
S=$B/sluice FILE=/etc/cdi/sluice-train.json
trap 'pod_end; umount -l /etc; clean_up' EXIT
daemon_start
pod() { timeout 60 $PODMAN "$@"; }
status_of() { # status_of CODE COMMAND...: what it prints is in $T/out
	status_code=$1
	shift
	"$@" >"$T/out" 2>&1
	ended=$?
	check "status of $(echo "$*" | sed "s|$B/||; s/ .*sluice cdi/ cdi/")" $ended = "$status_code"
}
train() { pod run --network none --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 --device sluice.dev/workload=train "$@"; }

# What is wrong is said before there is a workload.
status_of 64 "$S" cdi
status_of 64 "$S" cdi -- -train
check_file "a name that does not fit" "$T/out" "digits and -"
status_of 64 "$S" cdi a/b
status_of 64 "$S" cdi a.b
status_of 64 "$S" cdi "$(printf %060d 0)"
status_of 64 "$S" cdi train --gpu x
status_of 64 "$S" cdi --remove train --write
status_of 71 "$S" cdi train --limit 300MiB --write
check_file "a missing folder: what to do" "$T/out" "mkdir -p /etc/cdi"
mkdir /etc/cdi
chmod 711 "$T"
status_of 77 setpriv --reuid=65534 --clear-groups "$S" cdi train --limit 300MiB --write
check_file "another user cannot write the file" "$T/out" "run it as root"
status_of 77 setpriv --reuid=65534 --clear-groups "$S" cdi train --limit 300MiB
status_of 75 "$S" cdi train --limit 300MiB --gpu 7
check "no workload was made" "$(workloads)" = 0

# The specification alone, then as a file; it is the same workload.
"$S" cdi train --request 200MiB --limit 300MiB --gpu 1 >"$T/spec"
check "it is printed" $? = 0
check_file "with its kind" "$T/spec" '"kind": "sluice.dev/workload"'
check "without --write there is no file" "$(find /etc/cdi -type f | wc -l)" = 0
status_of 0 "$S" cdi train --request 200MiB --limit 300MiB --gpu 1 --write
echo >>"$FILE"
check "the file is what is printed" "$(cksum <"$FILE")" = "$(cksum <"$T/spec")"
check "again is the same workload" "$(workloads)" = 1
status_of 0 "$S" cdi train --limit 400MiB --write
check_file "it keeps its amounts, and says so" "$T/out" "exists with request 200 ?MiB and limit 300 ?MiB"
status_of 75 "$S" cdi train --gpu 0
check "its request counts without a container" "$("$S" gpus --json | json 1.requests_bytes)" = $((200 * mib))

# A container that is stopped and started again.
train -d --name again --rootfs "$ROOT" /bin/sh -c '/bin/tenant --bytes 250MiB --work 30 --ms 500 >/tmp/again; exec sleep 100' >"$T/out" 2>&1
check "podman run --device starts" $? = 0
wait_event "$ROOT/tmp/again" end
check "its GPU is as large as the limit" "$(json -l event=held total <"$ROOT/tmp/again")" = $((300 * mib))
check "its bytes are whole" "$(json -l event=end wrong <"$ROOT/tmp/again")" = 0
for round in 1 2; do
	pod stop -t 0 again >"$T/out" 2>&1
	rm -f "$ROOT/tmp/again"
	[ $round = 1 ] || {
		daemon_kill
		daemon_start
	}
	pod start again >"$T/out" 2>&1
	check "$round: podman start works" $? = 0
	wait_event "$ROOT/tmp/again" end
	check "$round: with the same limit" "$(json -l event=held total <"$ROOT/tmp/again")" = $((300 * mib))
	check "$round: in the same workload" "$(workloads)" = 1
done

# A second container of the same workload.
train -d --name holder --rootfs "$ROOT" /bin/sh -c 'exec /bin/tenant --bytes 200MiB --ms 60000 >/tmp/holder' >"$T/out" 2>&1
wait_event "$ROOT/tmp/holder" held
check "the driver has it on the chosen GPU" "$("$P/nvml-view" | json -l what=process index)" = 1
train --rm --name second --rootfs "$ROOT" /bin/tenant --bytes 101MiB --ms 100 >"$T/second" 2>&1
check "two containers together stay within the limit" "$(json -n event=oom <"$T/second")" -gt 0
train --rm --name second --rootfs "$ROOT" /bin/tenant --bytes 90MiB --ms 100 >"$T/second" 2>&1
check "and below it the second has its memory" "$(json -l event=end wrong <"$T/second")" = 0

# A restart policy.
train -d --name policy --restart always --rootfs "$ROOT" /bin/sh -c 'exec /bin/tenant --bytes 50MiB --ms 100 >>/tmp/policy' >"$T/out" 2>&1
starts() { [ "$(json -n event=end <"$ROOT/tmp/policy")" -gt "$1" ]; }
until_true 30 starts 1
check "a container that always restarts comes back" $? = 0
pod rm -f -t 0 policy >"$T/out" 2>&1

status_of 0 "$S" set train --limit 320MiB
train --rm --rootfs "$ROOT" /bin/tenant --bytes 50MiB --ms 100 >"$T/changed" 2>&1
check "sluice set changes what the next container has" "$(json -l event=held total <"$T/changed")" = $((320 * mib))

# Removed while a container runs.
status_of 0 "$S" cdi --remove train
check "the file is gone" "$(find /etc/cdi -type f | wc -l)" = 0
train --rm --rootfs "$ROOT" /bin/true >"$T/out" 2>&1
check "no more containers start" $? != 0
check "the one that runs keeps its memory" "$(at_driver)" = 1
pod rm -f -t 0 holder again >"$T/out" 2>&1
until_true 10 is_over train
check "the workload ends with it" $? = 0
status_of 0 "$S" cdi --remove train
check_books_empty

# The machine starts again: the file is there, the workload is not.
status_of 0 "$S" cdi train --limit 300MiB --write
train -d --name booted --rootfs "$ROOT" /bin/sh -c '/bin/tenant --bytes 50MiB --ms 100 >/tmp/booted; exec sleep 100' >"$T/out" 2>&1
wait_event "$ROOT/tmp/booted" end
pod stop -t 0 booted >"$T/out" 2>&1
rm -f "$ROOT/tmp/booted"
daemon_stop
rm -rf "$T/entries" "$T/state"
daemon_start
check "after a boot there is no workload" "$(workloads)" = 0
pod start booted >"$T/out" 2>&1
check "and no container starts without limits" $? != 0
check_file "podman names what is missing" "$T/out" "stat .*/entries/cdi.train/ld.so.preload: no such file"
status_of 0 "$S" cdi train --limit 300MiB --write
pod start booted >"$T/out" 2>&1
check "the same command makes it anew" $? = 0
wait_event "$ROOT/tmp/booted" end
check "with its limit" "$(json -l event=held total <"$ROOT/tmp/booted")" = $((300 * mib))
pod rm -f -t 0 booted >"$T/out" 2>&1
status_of 0 "$S" cdi --remove train
check_books_empty
daemon_stop
check "SIGTERM ends the daemon well" $? = 0
finish
