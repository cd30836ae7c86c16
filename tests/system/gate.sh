#!/bin/sh
# Launches from many threads under Sluice: right, in order, and with the gate closed and opened under
# the load when SLUICE_GATE_EXERCISE is understood by the runtime.
. "$(dirname "$0")/lib.sh"
daemon_start
$RUN -- "$P/launcher" --threads 4 --ms 2000 >"$T/open"
check "status" $? = 0
check "launches" "$(json -l event=end launches <"$T/open")" -gt 100
check "wrong" "$(json -l event=end wrong <"$T/open")" = 0
SLUICE_NO_MEMBARRIER=1 $RUN -- "$P/launcher" --threads 4 --ms 1000 >"$T/fence"
check "without membarrier: status" $? = 0
check "without membarrier: wrong" "$(json -l event=end wrong <"$T/fence")" = 0
check_books_empty
finish
