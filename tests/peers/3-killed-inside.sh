#!/bin/sh
# Killed in the middle of allocations, again and again: other and later programs do not notice.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
$RUN --request 64MiB --limit 256MiB --name stays -- "$P/alloc-churn" --max 1MiB --operations 100000000 --ms 3000 >"$T/stays" &
stays=$!
for round in 1 2 3 4 5 6 7 8; do
	$RUN --limit 256MiB --name "victim$round" -- "$P/alloc-churn" --max 4MiB --ms 60000 --seed $round >/dev/null &
	victim=$!
	holds() { [ "$(use "victim$round" backing_bytes)" -gt 0 ]; }
	until_true 10 holds || fail "victim $round allocates nothing"
	sleep 0.0$round
	kill -KILL $victim
	wait $victim 2>/dev/null
done
$RUN --request 128MiB -- "$P/memhog" --piece 8MiB --max 64MiB >"$T/later"
check "who comes later allocates" $? = 0
wait $stays
check "who was there goes on" $? = 0
check_books_empty
finish
