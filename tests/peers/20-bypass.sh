#!/bin/sh
# SLUICE_BYPASS=1: every function that a program finds is the driver's own.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
cat >"$T/where" <<'INNER'
for library in $(sed -n 's/.* \(\/.*libsluice\.so.*\)$/\1/p' /proc/self/maps | sort -u); do echo "$library"; done
INNER
SLUICE_BYPASS=1 $RUN --request 0 --limit 100MiB -- "$P/memhog" --piece 50MiB --max 300MiB >"$T/bypass"
check "no limit is felt" $? = 0
SLUICE_BYPASS=1 $RUN --request 0 --limit 100MiB -- "$B/tests/contract/contract" --only alloc_apart >"$T/contract"
check "the driver answers" $? = 0
finish
