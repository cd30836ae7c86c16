#!/bin/sh
# The order of service when memory comes free: demands within their request, then the higher priority,
# then the oldest. One holds almost everything; the others wait in the wrong order.
. "$(dirname "$0")/lib.sh"
software_only "a GPU of known size"
# None is moved away again by the next one: the end of each follows from when it was served.
config 'resolvers: wait'
config 'longest_wait: 50s'
daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
start() { # NAME PRIORITY REQUEST
	$RUN --request "$3" --limit 0.95 --priority "$2" --name "$1" -- "$P/holder" --bytes 520MiB --ms 400 >"$T/$1" &
}
$RUN --request 0 --limit 0.95 --name first -- "$P/holder" --bytes 700MiB --until "$T/all-wait" >"$T/first" &
first=$!
wait_event "$T/first" held
start early 0 0
early=$!
until_true 20 waiting 1
start late 0 0
late=$!
until_true 20 waiting 2
start urgent 10 0
urgent=$!
until_true 20 waiting 3
check "three wait" "$(gpu waiting)" = 3
# Shorter waits have no event.
sleep 1
: >"$T/all-wait"
wait $first $early $late $urgent
served=$("$B/sluice" events --json | sed -n 's/.*"reason": "SERVED_AFTER_WAIT".*"name": "\([a-z]*\)".*/\1/p' | tr '\n' ' ')
check "the order they were served in" "$served" = "urgent early late "
check_books_empty
finish
