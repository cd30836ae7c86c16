#!/bin/sh
# Software GPUs that root started for all: another user's program runs under root's daemon. Without --shared it cannot.
set -u
B=$(cd "${1:?usage: $0 BUILD_DIR}" && pwd)
if [ "$(id -u)" != 0 ]; then
	echo "  skipped: only root can be two users"
	exit 77
fi
if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice"; then
	echo "  skipped: $B cannot be read by others"
	exit 77
fi
T=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test.XXXXXX") || exit 99
trap 'rm -rf "$T"' EXIT
chmod 755 "$T"
failed=0
check() {
	if [ "$2" = "$3" ]; then
		echo "  ok: $1"
	else
		echo "  FAILED: $1: $2, not $3"
		failed=1
	fi
}
# Root's half: a daemon, then as long as the other user needs.
cat >"$T/root" <<'END'
sluiced --config /dev/null >"$T/daemon.log" 2>&1 &
for _ in $(seq 200); do
	sluice gpus >/dev/null 2>&1 && break
	sleep 0.05
done
touch "$T/ready"
for _ in $(seq 600); do
	[ -e "$T/over" ] && break
	sleep 0.1
done
END
# with OPTION: the exit status of the other user's program. The daemon is root's of a container, which may not ask for others' limits.
with() {
	rm -f "$T/ready" "$T/over" "$T/how"
	T=$T setpriv --bounding-set=-sys_resource "$B/sluice" softgpu "$@" --memory 512MiB -- sh -c 'env | sed -n "s/^\(SLUICE_SOFTGPU\|SLUICE_SOCKET\|LD_LIBRARY_PATH\)=/export &/p" >"$T/env"; . "$T/root"' 2>"$T/how" &
	for _ in $(seq 200); do
		[ -e "$T/ready" ] && break
		sleep 0.05
	done
	how=$T/env
	grep -q '^export' "$T/how" && sed -n '/^export/p' "$T/how" >"$T/how.sh" && how=$T/how.sh
	chmod 644 "$how"
	# shellcheck disable=SC2016 # for the shell inside
	setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent timeout 30 \
		sh -c '. "$1"; "$2/sluice" run --request 64MiB -- "$2/tests/programs/holder" --bytes 32MiB --ms 10 &&
			ulimit -n 77 && "$2/sluice" submit --request 64MiB --name few --wait -- sh -c "ulimit -n" && "$2/sluice" logs few
			status=$?; "$2/sluice" softgpu --lose 0; echo "status $?"; exit $status' - "$how" "$B" >"$T/said" 2>&1
	status=$?
	touch "$T/over"
	wait
	return $status
}
with --shared
check "another user's program runs" $? 0
check "it held its memory" "$(grep -c held "$T/said")" 1
check "its job has its limits, not the daemon's" "$(grep -cx 77 "$T/said")" 1
check "it cannot break the GPUs" "$(tail -n 1 "$T/said")" 'status 77'
with
check "without --shared it does not" "$([ $? != 0 ] && echo no)" no
[ $failed = 0 ]
