#!/bin/sh
# Every road to the driver's functions ends at the same limit.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
$RUN --request 0 --limit 300MiB -- "$P/entry-points" --over 400MiB
check "every road is limited" $? = 0
finish
