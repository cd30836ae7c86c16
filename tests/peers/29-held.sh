#!/bin/sh
# Memory that another process may use by a handle cannot be moved: it is held from the moment it is exported.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
held_bytes() { "$B/sluice" ps --clients --json | json "name=exporter.held_bytes"; }
$RUN --request 0 --limit 400MiB --name exporter -- "$B/tests/peers/exporter" >"$T/exporter" &
exporter=$!
wait_event "$T/exporter" plain
check "nothing is held at first" "$(held_bytes)" = 0
kill -USR1 $exporter
wait_event "$T/exporter" exported
is_held() { [ "$(held_bytes)" -ge $((64 << 20)) ]; }
until_true 5 is_held
check "what is exported is held" $? = 0
kill -USR1 $exporter
wait_event "$T/exporter" freed
not_held() { [ "$(held_bytes)" = 0 ]; }
until_true 5 not_held
check "and no longer when it is gone" $? = 0
kill -USR1 $exporter
wait $exporter
check_books_empty
finish
