#!/bin/sh
# The daemon is killed while all programs run, at awkward moments: changes stay, programs that died
# meanwhile are gone, a stop that was asked for goes on, and the books are right afterwards.
export LIMIT=120
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
daemon_start
held() { [ "$(use "$1" backing_bytes)" -ge "$2" ]; }
absent() { ! "$B/sluice" ps --json | grep -q "\"name\": *\"$1\""; }
of_dump() { "$B/sluice" dump | json "workloads.name=$1.$2"; }

# Changed while it runs, then the daemon dies with no word.
swapper changed --request 100MiB --limit 300MiB
ok changed alloc one 50m
ok changed fill one 1
"$B/sluice" set changed --request 150MiB --limit 400MiB --priority 7 --oom-first on --longest-wait 90s >"$T/set"
check "set" $? = 0
# Two that will not be there when the next daemon looks: one ends without a daemon, one just before.
$RUN --request 0 --limit 0.9 --name dies -- "$P/holder" --bytes 64MiB --ms 60000 >"$T/dies" &
dies=$!
wait_event "$T/dies" held
# One that does not heed SIGTERM, and is being stopped. The shell's ignoring is inherited.
(
	trap '' TERM
	exec $RUN --request 0 --limit 0.9 --name stays -- "$P/holder" --bytes 32MiB --ms 60000 >"$T/stays"
) &
stays=$!
wait_event "$T/stays" held
"$B/sluice" stop stays --grace 8s >"$T/stop"
check "stop" $? = 0
# The history is written a moment later.
kept() { [ "$("$B/tests/system/history-file" "$T/state/history.db" number "SELECT count(*) FROM events WHERE reason = 'STOP_ASKED'")" = 1 ]; }
until_true 10 kept || fail "the history does not have the stop"
daemon_kill
kill -KILL $dies
wait $dies 2>/dev/null
check "it is still there, without a daemon" "$(kill -0 $stays && echo yes)" = yes
daemon_start
"$B/sluice" events --kind note --since 1h >"$T/events"
check_file "events know what the daemon before did" "$T/events" 'note  *changed was changed by '
check "of that kind only" "$("$B/sluice" events --kind stop --json | grep -vc '"kind": "stop"')" = 0
check "the last one is one" "$("$B/sluice" events --last 1 | wc -l)" = 1
"$B/sluice" why changed >"$T/why"
check_file "why, too" "$T/why" 'Before:'
"$B/sluice" events --kind nonsense >/dev/null 2>"$T/kind.err"
check "a kind that there is not" $? = 64
check_file "names those that there are" "$T/kind.err" 'deny, except'
check "request" "$(use changed request_bytes)" = $((150 << 20))
check "limit" "$(use changed limit_bytes)" = $((400 << 20))
check "priority" "$(use changed priority)" = 7
check "oom first" "$(of_dump changed oom_first)" = 1
check "longest wait" "$(of_dump changed longest_wait_ms)" = 90000
check "who died meanwhile is not taken in" "$(absent dies && echo yes)" = yes
wait $stays
check "the stop went on: SIGKILL" $? = 137
until_true 30 absent stays || fail "the stopped one is still listed"
until_true 30 held changed $((50 << 20)) || fail "the changed one does not hold what it held"
ok changed alloc two 300m
ok changed fill two 2
contents changed "under its new limit"
end_swapper changed
check_books_empty
daemon_stop
check "SIGTERM ends it well" $? = 0
finish
