#!/bin/sh
# A burst that does not fit waits, and is granted when another's memory comes back: freed by hand, by
# exit, or by SIGKILL with a driver that takes its time.
export BOX="--gpus 1 --memory 1GiB --teardown-ms 700"
. "$(dirname "$0")/lib.sh"
software_only "a driver with slow teardown"
daemon_start
waiting() { [ "$(gpu waiting)" = "$1" ]; }
for way in end exit kill; do
	rm -f "$T/end"
	$RUN --request 0 --limit 0.95 --name a -- "$P/holder" --bytes 600MiB --until "$T/end" >"$T/a" &
	a=$!
	wait_event "$T/a" held
	$RUN --request 0 --limit 0.95 --name b -- "$P/holder" --bytes 500MiB --ms 0 --verify >"$T/b" &
	b=$!
	until_true 20 waiting 1
	check "$way: the second waits" "$(gpu waiting)" = 1
	check "$way: its state is told" "$(use b state)" = waiting
	check "$way: and it was not denied" "$(json -n error=CUDA_ERROR_OUT_OF_MEMORY <"$T/b")" = 0
	[ $way = end ] && : >"$T/end"
	[ $way = exit ] && kill -TERM $a
	[ $way = kill ] && kill -KILL $a
	wait $a 2>/dev/null
	wait $b
	check "$way: the waiter's status" $? = 0
	check_books_empty
done
# A waiter that is killed leaves the queue.
$RUN --request 0 --limit 0.95 --name a -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/a" &
a=$!
wait_event "$T/a" held
$RUN --request 0 --limit 0.95 --name b -- "$P/holder" --bytes 500MiB >"$T/b" &
b=$!
until_true 20 waiting 1
kill -KILL $b
until_true 20 waiting 0
check "a killed waiter waits no more" "$(gpu waiting)" = 0
kill -KILL $a
wait $a $b 2>/dev/null
check_books_empty
finish
