#!/bin/sh
# Programs on a managed GPU without Sluice: warned about, ignored, or stopped; also one of a workload
# that shed the library. Never one of ours.
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "processes are stopped"
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" -ge "${2:-1}" ]; }
see_unmanaged() { [ "$(gpu unmanaged_bytes)" -ge 67108864 ]; }
none_unmanaged() { [ "$(gpu unmanaged_bytes)" = 0 ]; }
bare() {
	"$P/tenant" --bytes 64MiB --ms 60000 "$@" >"$T/bare" &
	bare=$!
	wait_event "$T/bare" held
	until_true 20 see_unmanaged
}
end_bare() {
	kill -KILL $bare 2>/dev/null
	wait $bare 2>/dev/null
	until_true 20 none_unmanaged
}

note "warn"
config 'measure_interval: 100ms'
config 'stop_grace: 1s'
daemon_start
$RUN --request 0.2 --name beside -- "$P/tenant" --bytes 64MiB --ms 60000 >"$T/beside" &
beside=$!
wait_event "$T/beside" held
bare
until_true 20 happened UNMANAGED_SEEN
check "it is named" $? = 0
# It may have been seen before it had all its memory: named again then, but no more often.
last_seen() { "$B/sluice" events --json | grep UNMANAGED_SEEN | tail -n 1 | json "$1"; }
whole() { [ $((2 * $(last_seen bytes))) -gt "$(gpu unmanaged_bytes)" ]; }
until_true 20 whole
check "by its true size" $? = 0
sleep 3
check "seldom, and nothing else" "$("$B/sluice" events --json | grep -c UNMANAGED_SEEN)" -le 2
check "by its number" "$(last_seen pid)" = $bare
check "it lives" "$(gone $bare && echo gone)" = ""
end_bare
kill -KILL $beside
wait $beside 2>/dev/null
# Of a workload, but without the library.
$RUN --request 0 --limit 0.5 --name shed -- sh -c 'unset LD_PRELOAD; exec "$@"' sh "$P/tenant" --bytes 64MiB --ms 60000 >"$T/shed" 2>"$T/shed.err" &
shed=$!
wait_event "$T/shed" held
until_true 20 happened UNMANAGED_OURS
check "one without the library is told apart" $? = 0
kill -KILL $shed
wait $shed 2>/dev/null
until_true 20 none_unmanaged
daemon_stop

note "ignore"
: >"$T/daemon.log"
config 'unmanaged: ignore'
daemon_start
bare
sleep 2
check "nothing is said" "$(grep -c UNMANAGED_ "$T/daemon.log")" = 0
check "it lives" "$(gone $bare && echo gone)" = ""
check "it counts" "$(gpu unmanaged_bytes)" -ge 67108864
end_bare
daemon_stop

note "stop"
sed -i '/unmanaged:/d' "$CONFIG"
config 'unmanaged: stop'
config 'recover_wait: 1s'
daemon_start
$RUN --request 0.2 --name ours -- "$P/tenant" --bytes 100MiB --work 10 --term finish --ms 100000 >"$T/ours" &
ours=$!
wait_event "$T/ours" held
bare
until_true 20 gone $bare
check "it is stopped" $? = 0
wait $bare
check "by SIGTERM" $? = 143
check "and named, once" "$("$B/sluice" events --json | grep -c STOP_UNMANAGED)" = 1
check "by its number" "$("$B/sluice" events --json | grep STOP_UNMANAGED | json pid)" = $bare
# Those before the restart are in the history.
check "seen, and at most once more when it has grown" "$("$B/sluice" events --json | grep UNMANAGED_SEEN | grep -c "\"pid\": $bare\\b")" -le 2
# Restarted with all of them running: ours are not taken for strangers.
daemon_kill
daemon_start
# One that does not listen is killed after the grace.
bare --term ignore
until_true 20 gone $bare
check "one that does not listen is stopped" $? = 0
wait $bare
check "by SIGKILL" $? = 137
kill -TERM $ours
wait $ours
check "ours was left alone" $? = 0
check "its bytes" "$(json -l event=end wrong <"$T/ours")" = 0
check_books_empty
finish
