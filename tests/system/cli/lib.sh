#!/bin/sh
# lib.sh - what the scripts here share; sourced, not run. Plain POSIX sh.
#
# A script makes rows of checks; each prints its name only when it fails, with both values.
# shellcheck disable=SC2034 # the variables are for the scripts
# SLUICE_BUILD is the build folder, FAKE_DAEMON the daemon that misbehaves.
set -u
: "${SLUICE_BUILD:?names the build folder}"
sluice=$SLUICE_BUILD/sluice
failures=0 rows=0
work=$(mktemp -d /tmp/sluice-cli-XXXXXX) || exit 1
background=
clean_up() {
	for pid in $background; do kill "$pid" 2>/dev/null; done
	wait 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM
unset SLUICE_WORKLOAD SLUICE_LIBRARY SLUICE_TIMEOUT LD_PRELOAD CUDA_VISIBLE_DEVICES COLUMNS
# No script here may meet a daemon that happens to run on the machine.
SLUICE_SOCKET=$work/none.sock
export SLUICE_SOCKET

fail() {
	failures=$((failures + 1))
	echo "FAILED $*"
}

# In a sanitized build, programs like env cannot load the library; see stand-in.c.
library=$(realpath "$SLUICE_BUILD/libsluice.so")
by_loader=$(dirname "$library")/by-loader/\$LIB/libsluice.so
is_sanitized=
if [ -n "${STAND_IN-}" ] && ! env LD_PRELOAD="$library" true 2>/dev/null; then
	is_sanitized=1
	library=$(realpath "$STAND_IN")
	by_loader=$library
	export SLUICE_LIBRARY="$library"
	# And sluice itself, which is sanitized, may come behind a library that is not.
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
fi

# run CMD...: its output into $out, its errors into $err, its status into $status.
run() {
	"$@" >"$work/out" 2>"$work/err"
	status=$?
	out=$(cat "$work/out") err=$(cat "$work/err")
}

# expect NAME STATUS PATTERN CMD...: the status, and a basic regular expression that some line
# of the errors (or, with status 0, of the output or the errors) must match. '' matches all.
expect() {
	name=$1 want=$2 pattern=$3
	shift 3
	rows=$((rows + 1))
	run "$@"
	if [ "$status" != "$want" ]; then
		fail "$name: status $status, wanted $want; said: $err $out"
		return 1
	fi
	if [ "$want" = 0 ]; then text="$out
$err"; else text=$err; fi
	if ! printf '%s\n' "$text" | grep -q -e "$pattern"; then
		fail "$name: '$text' does not match '$pattern'"
		return 1
	fi
}

# same NAME GOT WANTED
same() {
	rows=$((rows + 1))
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# fake MODE [NAME]: starts a daemon that misbehaves so, and points SLUICE_SOCKET at it.
fake() {
	SLUICE_SOCKET=$work/$1.sock
	export SLUICE_SOCKET
	"$FAKE_DAEMON" "$SLUICE_SOCKET" "$1" &
	background="$background $!"
	wait_for "$SLUICE_SOCKET"
}

wait_for() {
	tries=0
	while [ ! -e "$1" ]; do
		tries=$((tries + 1))
		[ $tries -gt 500 ] && { fail "$1 did not appear"; exit 1; }
		sleep 0.02
	done
}

skip() {
	echo "SKIPPED $*"
	exit 77
}

finish() {
	echo "$rows checks, $failures failed"
	[ $failures = 0 ] && [ $rows -gt 0 ]
	exit $?
}
