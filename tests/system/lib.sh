#!/bin/sh
# lib - what the system tests share. Source it first; it re-runs the test inside a box of its own.
#
# usage of a test: sh tests/system/NAME.sh BUILD_DIR. Before sourcing a test may set
#   BOX    options of `sluice softgpu` (default: one GPU of 1 GiB)
#   LIMIT  seconds until the test is ended (default 90)
# SLUICE_TEST_SLOWER is how much slower than usual programs are (a sanitizer, tools/sanitize): so many times longer is
# everything waited for. A test may be right about what comes at last; it says nothing of when.
# SLUICE_TEST_REAL=1 runs on the GPUs that are there instead: the daemon manages as many of them as BOX has, and
# shares as much of each, so sizes in tests mean the same. Tests that need the software GPU then skip.
#
# After sourcing: $T is a private folder, $P the folder of the test programs, $B that of the build;
# daemon_* start and end a daemon with a private socket; check* compare and count; the test ends with
# `finish`. Nothing outlives a test: the box kills what is left in it.
# shellcheck disable=SC2034 # some variables are for the tests
set -u
SLOWER=${SLUICE_TEST_SLOWER:-1}
B=$(cd "${1:?usage: $0 BUILD_DIR}" && pwd)
if [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	export SLUICE_TEST_INSIDE=1
	if [ -n "${SLUICE_TEST_REAL-}" ]; then
		exec timeout -k 5 "$((${LIMIT:-90} * SLOWER))" sh "$0" "$B"
	fi
	# shellcheck disable=SC2086 # options are words
	exec timeout -k 5 "$((${LIMIT:-90} * SLOWER))" "$B/sluice" softgpu ${BOX:---gpus 1 --memory 1GiB} -- sh "$0" "$B"
fi
P=$B/tests/programs
T=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test.XXXXXX") || exit 99
export SLUICE_SOCKET="$T/s"
DAEMON=
FAILED=0
CHECKS=0
CONFIG=$T/config

clean_up() {
	# shellcheck disable=SC2046 # a list of pids is meant
	kill -KILL $(jobs -p) 2>/dev/null
	[ -n "$DAEMON" ] && kill -KILL "$DAEMON" 2>/dev/null
	rm -rf "$T"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

note() { echo "  $*"; }
# What may tell why, from a log alone: the last that programs said, and that the daemon did. Not after every
# one of many failures.
evidence() {
	[ "$FAILED" -le 5 ] || return 0
	# shellcheck disable=SC2012 # the names are ours
	ls -t "$T" 2>/dev/null | while read -r evidence_file; do
		case $evidence_file in
		config | daemon.log | books.json | *.lock) continue ;;
		esac
		[ -f "$T/$evidence_file" ] || continue
		LC_ALL=C grep -qI . "$T/$evidence_file" || continue
		echo "    --- the end of $evidence_file:"
		tail -n 4 "$T/$evidence_file" | cut -c 1-400 | sed 's/^/      /'
	done | head -n 20
	[ -n "$DAEMON" ] || return 0
	echo "    --- the daemon's last events:"
	timeout 5 "$B/sluice" events --last 12 2>&1 | sed 's/^/      /'
}
fail() {
	echo "  FAILED: $*"
	FAILED=$((FAILED + 1))
	evidence
}
skip() {
	echo "  skipped: $*"
	exit 77
}
software_only() {
	[ -n "${SLUICE_SOFTGPU-}" ] && [ -z "${SLUICE_TEST_REAL-}" ] || skip "needs the software GPU: $*"
}
# not_under_asan PROGRAM: for one that forks. In the child, a thread of a preloaded library gets an old stack, which ASan
# still takes for poisoned.
not_under_asan() { ! grep -q __asan_init "$1" || skip "ASan does not know the threads of a library that is preloaded"; }
# check WHAT VALUE OPERATOR EXPECTED: both are printed when they do not go together.
check() {
	CHECKS=$((CHECKS + 1))
	if test "$2" "$3" "$4"; then
		note "ok: $1 ($2 $3 $4)"
	else
		fail "$1: $2 is not $3 $4"
	fi
}
# check_file WHAT FILE PATTERN: the file has a line like this.
check_file() {
	CHECKS=$((CHECKS + 1))
	if grep -Eq -- "$3" "$2"; then
		note "ok: $1"
	else
		fail "$1: no /$3/ in:"
		sed 's/^/      /' "$2" | tail -n 20
	fi
}
finish() {
	if [ "$FAILED" != 0 ] && [ -f "$T/daemon.log" ]; then
		echo "  --- the daemon's log:"
		sed 's/^/  /' "$T/daemon.log" | tail -n 40
	fi
	[ "$CHECKS" != 0 ] || fail "nothing was checked"
	[ "$FAILED" = 0 ]
	exit
}
now_ms() { date +%s%3N; }
# UP: hundredths of a second since the machine started. A clock that is set does not change it, and to read it starts no
# program.
read_up() {
	read -r UP up_idle </proc/uptime
	UP=${UP%.*}${UP#*.}
}
# until SECONDS COMMAND...: true as soon as the command is.
until_true() {
	read_up
	until_end=$((UP + $1 * 100 * SLOWER))
	shift
	while ! "$@" 2>/dev/null; do
		read_up
		[ "$UP" -lt "$until_end" ] || return 1
		sleep 0.03
	done
}
json() { "$B/tests/system/json-get" "$@"; }
# Option words for the daemon's configuration: config 'key: value'
config() { echo "$1" >>"$CONFIG"; }

# box_option NAME DEFAULT: a word of BOX.
box_option() {
	box_value=$(echo "${BOX-}" | sed -n "s/.*--$1 \\([^ ]*\\).*/\\1/p")
	echo "${box_value:-$2}"
}
# Makes the GPUs that are there the box of the test, by the daemon's configuration alone: all but a sixteenth of the
# box's memory is shared, as on a software GPU of that size, and the rest of the GPU is the reserve. The reserve pays
# contexts, so limits need not grow by them.
real_box() {
	"$P/nvml-view" >"$T/nvml"
	real_gpus=$(box_option gpus 1)
	[ "$(json -l what=count count <"$T/nvml" || echo 0)" -ge "$real_gpus" ] || skip "needs $real_gpus GPUs"
	real_shared=$(($(box_option memory 1GiB | sed 's/MiB$/ << 20/; s/GiB$/ << 30/')))
	real_total=$(json -l what=memory total <"$T/nvml")
	real_reserve=$((real_total - real_shared / 16 * 15))
	[ "$real_reserve" -gt 0 ] || skip "needs $real_shared bytes of GPU memory, and there are $real_total"
	config "gpus: [$(grep '"uuid"' "$T/nvml" | head -n "$real_gpus" | while read -r real_line; do
		echo "$real_line" | json uuid
	done | paste -sd , | sed 's/,/, /g')]"
	# A test may have an opinion of its own.
	grep -qs '^context_reserve' "$CONFIG" || config "context_reserve: $real_reserve"
}

daemon_up() { "$B/sluice" gpus --json >/dev/null 2>&1; }
daemon_start() {
	touch "$CONFIG"
	[ -z "${SLUICE_TEST_REAL-}" ] || grep -qs '^gpus:' "$CONFIG" || real_box
	# shellcheck disable=SC2086 # DAEMON_FRONT is a list of words
	${DAEMON_FRONT-} "$B/sluiced" --config "$CONFIG" --socket "$T/s" --state "$T/state" >>"$T/daemon.log" 2>&1 &
	DAEMON=$!
	until_true 10 daemon_up || {
		fail "sluiced does not answer"
		finish
	}
}
daemon_kill() {
	kill -KILL "$DAEMON" 2>/dev/null
	wait "$DAEMON" 2>/dev/null
	DAEMON=
}
# gone PID: it ended, or is a zombie that waits for us.
gone() { ! grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status"; }
daemon_stop() {
	kill -TERM "$DAEMON" 2>/dev/null
	until_true 15 gone "$DAEMON" || {
		fail "sluiced does not end: $(cat "/proc/$DAEMON/wchan" "/proc/$DAEMON/status" 2>/dev/null | head -n 3)"
		kill -KILL "$DAEMON"
	}
	wait "$DAEMON"
	STATUS=$?
	DAEMON=
	return $STATUS
}
# gpu FIELD: of GPU 0, as the daemon counts.
gpu() { "$B/sluice" gpus --json | json "0.$1"; }
# use NAME FIELD: of a workload.
use() { "$B/sluice" ps --json | json "name=$1.$2"; }
# use_is NAME FIELD VALUE: for until_true.
use_is() { [ "$(use "$1" "$2")" = "$3" ]; }
workloads() { "$B/sluice" ps --json | json '#'; }
# A word list, not a function: in the background $! must be the program itself, to be killed.
RUN="$B/sluice run"
# event FILE NAME: the file has a line with this event.
event() { [ -f "$1" ] && [ "$(json -n "event=$2" <"$1")" -gt 0 ]; }
wait_event() {
	until_true "${3:-20}" event "$1" "$2" || fail "no \"$2\" in $1 in time: $(tail -n 3 "$1")"
}
# The books are empty: nothing held, granted, dying or waiting.
books_empty() {
	"$B/sluice" gpus --json >"$T/books.json" || return 1
	for books_field in backing_bytes granted_bytes hidden_bytes paid_bytes dying_bytes requests_bytes waiting workloads; do
		[ "$(json "0.$books_field" <"$T/books.json")" = 0 ] || return 1
	done
	[ "$(json 0.free_bytes <"$T/books.json")" = "$(json 0.shareable_bytes <"$T/books.json")" ]
}
check_books_empty() {
	CHECKS=$((CHECKS + 1))
	if until_true "${1:-10}" books_empty; then
		note "ok: the books are empty"
	else
		fail "the books are not empty: $(cat "$T/books.json")"
	fi
}
