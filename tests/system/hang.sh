#!/bin/sh
# NVML is slow, or hangs for good, while programs come, allocate, free and die. Grants go on, measured figures
# are marked as old, the bytes of dead programs come back in the end, and nothing waits for NVML, the daemon's
# end and start included.
export LIMIT=170
. "$(dirname "$0")/lib.sh"
software_only "an NVML that hangs"
mkdir "$T/trouble"
export NVML_TROUBLE="$T/trouble" NVML_TROUBLE_BEHIND="$B/src/softgpu/libnvidia-ml.so.1"
# The daemon alone gets the NVML that hangs.
DAEMON_FRONT="env LD_LIBRARY_PATH=$B/tests/system:${LD_LIBRARY_PATH-}"
config 'measure_interval: 100ms'
hang() { : >"$T/trouble/hang"; }
go_on() { rm -f "$T/trouble/hang"; }
age() { gpu measured_age_ms; }
is_old() { [ "$(age)" -gt "$1" ]; }
is_fresh() { [ "$(age)" -lt 2000 ]; }
bursts() { json -n event=burst <"$1"; }
bursts_on() { [ "$(bursts "$1")" -gt "$2" ]; }
is_dying() { [ "$(gpu dying_bytes)" -gt 0 ]; }
waits() { [ "$(gpu waiting)" = 1 ]; }

note "slow"
echo 300 >"$T/trouble/slow"
config 'resolvers: wait'
daemon_start
for i in 1 2 3 4; do
	$RUN --request 0 --limit 0.9 -- "$P/tenant" --bytes 200MiB --ms 60000 >"$T/slow-$i" &
	wait_event "$T/slow-$i" held
	kill -KILL $!
	wait $! 2>/dev/null
done
$RUN --request 0.8 --name after -- "$P/tenant" --bytes 700MiB --ms 100 >"$T/after"
check "the memory of the dead was given out again" $? = 0
check_books_empty 20
rm "$T/trouble/slow"

note "hangs while programs run"
$RUN --request 0 --limit 0.9 --name early -- "$P/tenant" --bytes 500MiB --burst 16MiB --burst-ms 20 --gap-ms 20 --ms 100000 >"$T/early" &
early=$!
wait_event "$T/early" burst
until_true 10 is_fresh
check "measured lately, ms" "$(age)" -lt 2000
hang
until_true 15 is_old 5000
check "what was measured is known to be old, ms" "$(age)" -gt 5000
"$B/sluice" gpus >"$T/gpus"
check_file "gpus says stale" "$T/gpus" stale
complained() { grep -q 'NVML has not answered' "$T/daemon.log"; }
until_true 10 complained
check "the log says so" $? = 0
before=$(bursts "$T/early")
until_true 10 bursts_on "$T/early" "$((before + 5))"
check "who runs goes on" $? = 0
$RUN --request 0.2 --name late -- "$P/tenant" --bytes 150MiB --burst 16MiB --burst-ms 20 --gap-ms 20 --ms 1000 >"$T/late"
check "who comes is served" $? = 0
check "with the right contents" "$(json -l event=end wrong <"$T/late")" = 0
# Needs what the early one holds.
$RUN --request 0.7 --name heir -- "$P/tenant" --bytes 600MiB --ms 200 >"$T/heir" &
heir=$!
until_true 10 waits
check "one waits" "$(gpu waiting)" = 1
kill -KILL $early
wait $early 2>/dev/null
until_true 5 is_dying
check "the memory of the dead is kept at first" "$(gpu dying_bytes)" -ge $((500 << 20))
wait $heir
check "and comes back in the end" $? = 0
check_file "which the log says" "$T/daemon.log" 'cannot be measured; taking the memory of the dead'
check_books_empty
go_on
until_true 10 is_fresh
check "it answers again, ms" "$(age)" -lt 2000

note "hangs for good at the end, and at the start of the next daemon"
$RUN --request 0.5 --name lives -- "$P/tenant" --bytes 300MiB --burst 16MiB --burst-ms 20 --gap-ms 20 --term finish --ms 150000 >"$T/lives" &
lives=$!
wait_event "$T/lives" burst
hang
: >"$T/trouble/hang-events"
until_true 15 is_old 1000
daemon_stop
check "SIGTERM ends it" $? = 0
# shellcheck disable=SC2086 # a list of words
$DAEMON_FRONT "$B/sluiced" --config "$CONFIG" --socket "$T/s" --state "$T/state" >>"$T/daemon.log" 2>&1 &
# shellcheck disable=SC2034 # lib.sh ends it
DAEMON=$!
until_true 20 daemon_up
check "the next one answers all the same" $? = 0
check "the GPU is known from the daemon before" "$("$B/sluice" gpus --json | json '#')" = 1
before=$(bursts "$T/lives")
until_true 15 bursts_on "$T/lives" "$((before + 3))"
check "who ran all the time goes on" $? = 0
daemon_stop
check "SIGTERM ends it, too" $? = 0
go_on
daemon_start
before=$(bursts "$T/lives")
until_true 15 bursts_on "$T/lives" "$before"
check "and goes on with one that measures" $? = 0
check "and is known" "$(use lives clients)" = 1
kill -TERM $lives
wait $lives
check "it noticed nothing" $? = 0
check "its bytes" "$(json -l event=end wrong <"$T/lives")" = 0
check_books_empty
daemon_stop
check "SIGTERM ends the last one, while the wait for events hangs" $? = 0
rm -f "$T/trouble/hang-events"
finish
