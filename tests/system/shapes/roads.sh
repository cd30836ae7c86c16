#!/bin/sh
# Every road to the driver that a loader offers: covered by limit and figures, or seen by the daemon and
# named. The table of docs/guide/shapes.md comes from here.
export LIMIT=150
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
software_only "the loader's roads to a driver that can be loaded twice"
config 'measure_interval: 100ms'
# What passes by is to be seen, whatever the reserve would pay of it.
config 'context_reserve: 0'
daemon_start
roads() { "$S/roads" --plugins "$S" "$@"; }
# covered ROAD...: in one process, in this order.
covered() {
	$RUN --request 0 --limit 300MiB -- "$S/roads" --plugins "$S" --total 300MiB "$@" >"$T/road" 2>"$T/road.err"
	check "covered: $*" $? = 0
	check "in silence: $*" "$(cat "$T/road.err")" = ""
}
note "native: the roads lead somewhere"
roads --total 0 dlopen-now-local plugin-linked deep-linked deep-asks deep-runpath >"$T/native"
check "without Sluice" $? = 0
for road in dlopen-now-local dlopen-lazy-local dlopen-lazy-global dlopen-path dlvsym default \
	plugin-linked plugin-asks plugin-of-plugin deep-linked deep-asks deep-runpath namespace-driver; do
	covered "$road"
done
covered dlopen-now-local default plugin-linked plugin-asks plugin-of-plugin
covered plugin-linked dlopen-lazy-global dlopen-path deep-linked
# RTLD_NEXT finds what stands behind the library that asks: us, if it stands in front.
# shellcheck disable=SC2016 # for the shell inside
$RUN --request 0 --limit 300MiB -- sh -c 'LD_PRELOAD="$1:$LD_PRELOAD" exec "$2" --total 300MiB next' - "$S/libshape-next.so" "$S/roads" >"$T/road"
check "covered: RTLD_NEXT in front" $? = 0
# Of a program that uses nothing else: the daemon names the process.
seen_ours() { "$B/sluice" events --json | grep UNMANAGED_OURS | grep -q "\"pid\": ${1}[,}]"; }
counted() { [ "$(use "$1" hidden_bytes)" -ge 67108864 ]; }
reported() {
	$RUN --request 0 --limit 300MiB --name "away-$1" -- "$S/roads" --plugins "$S" --hold-bytes 64MiB --hold-ms 60000 "$1" \
		>"$T/away" 2>"$T/away.err" &
	pid=$!
	wait_event "$T/away" held
	until_true 8 seen_ours $pid
	check "reported: $1" $? = 0
	kill -KILL $pid
	wait $pid 2>/dev/null
	check "in silence: $1" "$(cat "$T/away.err")" = ""
}
for road in next namespace-linked namespace-asks; do
	reported "$road"
done
"$B/sluice" events >"$T/events"
check_file "the remedy is named" "$T/events" 'dlmopen'
# Beside a covered one: it is our client, and what it takes besides counts as hidden.
beside() {
	$RUN --request 0 --limit 300MiB --name "beside-$1" -- "$S/roads" --plugins "$S" --hold-bytes 64MiB --hold-ms 1500 dlopen-now-local "$1" \
		>"$T/away" 2>"$T/away.err" &
	pid=$!
	until_true 10 counted "beside-$1"
	check "counted as hidden beside a covered one: $1" $? = 0
	kill -KILL $pid
	wait $pid 2>/dev/null
}
for road in next namespace-linked namespace-asks namespace-driver; do
	beside "$road"
done
check_books_empty
finish
