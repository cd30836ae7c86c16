#!/bin/sh
# SLUICE_BYPASS=1: every function that a program looks up is the driver's own, and no limit is felt.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
SLUICE_BYPASS=1 $RUN --request 0 --limit 100MiB -- "$B/tests/peers/peer" 20
check "what is looked up is the driver's" $? = 0
$RUN --request 0 --limit 100MiB -- "$B/tests/peers/peer" 20 >"$T/hooked"
check "and is not without it" $? = 1
SLUICE_BYPASS=1 $RUN --request 0 --limit 100MiB -- "$P/memhog" --piece 50MiB --max 300MiB >"$T/bypass"
check "no limit is felt" $? = 0
SLUICE_BYPASS=1 $RUN --request 0 --limit 100MiB -- "$B/tests/contract/contract" --only alloc_apart >"$T/contract"
check "the driver answers" $? = 0
finish
