#!/bin/sh
# The journal cannot be written: work goes on, and every user with a promise is told; so are the
# administrator and followers of the events. When it can be written again, that is told, too.
export LIMIT=60
. "$(dirname "$0")/lib.sh"
software_only "the daemon's folder is taken away"
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" = "${2:-1}" ]; }
FORGOTTEN="warning: sluiced cannot write its journal in $T/state .*: after a restart of it this is forgotten"
daemon_start
"$B/sluice" doctor >"$T/well"
check_file "well" "$T/well" 'ok +daemon'

# As the superuser may write everywhere, a folder stands where the file has to be.
rm -f "$T/state/run.db"
mkdir "$T/state/run.db"
$RUN --request 0.2 --limit 0.4 --name one -- "$P/tenant" --bytes 64MiB --ms 60000 >"$T/one" 2>"$T/one.err" &
one=$!
wait_event "$T/one" held
check_file "run says so" "$T/one.err" "^sluice run: $FORGOTTEN"
"$B/sluice" set one --priority 3 >"$T/set" 2>"$T/set.err"
check "set is done" $? = 0
check_file "set says so" "$T/set.err" "^sluice set: $FORGOTTEN"
"$B/sluice" set one --priority 4 --json >"$T/set.json"
check_file "in JSON, too" "$T/set.json" '"text": ".*cannot write its journal'
$RUN --json --request 0 --limit 0.1 -- true 2>"$T/run.json"
check_file "run in JSON" "$T/run.json" '"warning": ".*cannot write its journal'
check "told once" "$("$B/sluice" events --json | grep -c JOURNAL_FAILS)" = 1
"$B/sluice" doctor >"$T/ill"
check "doctor fails" $? = 1
check_file "and names the folder" "$T/ill" "FAIL +daemon +sluiced cannot write its journal in"
check_file "and what to do" "$T/ill" 'make room in|give the folder back'
check "it is in the dump" "$("$B/sluice" dump | json journal.failed)" = 1

rmdir "$T/state/run.db"
until_true 10 happened JOURNAL_WORKS
check "it is written again, and told" $? = 0
"$B/sluice" set one --priority 5 >"$T/set" 2>"$T/set.err"
check "nothing is to be warned of" "$(wc -c <"$T/set.err")" = 0
"$B/sluice" doctor >"$T/well"
check_file "well again" "$T/well" 'ok +daemon'
daemon_kill
daemon_start
check "nothing is forgotten" "$(use one priority)" = 5
kill -KILL $one
wait $one 2>/dev/null
check_books_empty
daemon_stop
finish
