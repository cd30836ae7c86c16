#!/bin/sh
# Peers that flood the daemon, of every kind, beside a client that allocates and frees. Everything the
# honest one asks is answered, new programs are taken in, and the daemon's memory and descriptors stay
# bounded. Times are not looked at here (make bench does).
export LIMIT=200
. "$(dirname "$0")/lib.sh"
software_only "floods"
config 'max_clients: 1024'
# Floods come from another user where that is possible: a quarter of the places is kept for others.
chmod 711 "$T"
other=
[ "$(id -u)" = 0 ] && other=65534
# Its descriptors come and go by themselves.
config 'history: no'
daemon_start
of_daemon() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$DAEMON/status"; }
descriptors() { find "/proc/$DAEMON/fd" -mindepth 1 | wc -l; }
calm() { [ "$(descriptors)" -le $((before + 8)) ]; }
alone() { [ "$(workloads)" = 1 ]; }

$RUN --request 96MiB --limit 128MiB --name old -- "$P/alloc-churn" --slots 8 --max 4MiB --operations 100000000 --ms 150000 >"$T/old" 2>&1 &
old=$!
wait_event "$T/old" started
before=$(descriptors)
rss=$(of_daemon VmRSS)
for kind in $("$B/tests/system/bad-peer" "$T/s" floods); do
	pids=
	for _ in 1 2 3; do
		# shellcheck disable=SC2086 # empty means no word
		"$B/tests/system/bad-peer" "$T/s" flood "$kind" $other &
		pids="$pids $!"
	done
	if [ -n "$other" ]; then
		timeout 60 $RUN --request 96MiB --limit 128MiB --name "new-$kind" -- "$P/alloc-churn" \
			--slots 8 --max 4MiB --operations 500 >"$T/new" 2>&1
		check "beside $kind: a new program runs" $? = 0
		check "beside $kind: nothing refused, nothing wrong" \
			"$(json -l event=end wrong <"$T/new") $(json -l event=end oom <"$T/new")" = "0 0"
		"$B/sluice" gpus --json >/dev/null 2>"$T/said"
		ended=$?
		check "beside $kind: the command line is answered $(cat "$T/said")" $ended = 0
	else
		sleep 1
	fi
	# shellcheck disable=SC2086 # a list
	kill -KILL $pids
	# shellcheck disable=SC2086 # a list
	wait $pids 2>/dev/null
	until_true 20 calm || fail "after $kind the daemon has $(descriptors) descriptors, $before before"
	until_true 20 alone || fail "after $kind there are $(workloads) workloads"
done
check "the old one lives" "$(workloads)" = 1
# A sanitizer keeps what was freed.
[ -n "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ] ||
	check "memory of the daemon, grown by KiB" $(($(of_daemon VmHWM) - rss)) -lt 49152
check "lines of the log" "$(wc -l <"$T/daemon.log")" -lt 20000
kill -TERM $old
wait $old
check "it ran until it was ended" $? = 143
check_books_empty
finish
