#!/bin/sh
# Every name of the driver, in every version, with every flag, by both cuGetProcAddress and by dlsym: found
# under Sluice exactly when it is found without, and ours exactly where the table of hooks says so.
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
daemon_start
"$S/names" "$T/answers" >"$T/native"
check "without Sluice" $? = 0
$RUN -- "$S/names" "$T/answers" check >"$T/names"
check "under Sluice" $? = 0
[ "$FAILED" = 0 ] || cat "$T/names"
note "$(tail -n 1 "$T/names")"
check "questions" "$(json -l event=end asked <"$T/names")" -ge 50000
check "answered with ours" "$(json -l event=end ours <"$T/names")" -ge 10000
check "others" "$(json -l event=end differ <"$T/names")" = 0
finish
