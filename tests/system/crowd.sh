#!/bin/sh
# A daemon without descriptors: it refuses newcomers beyond its bound, keeps present clients, and
# recovers.
. "$(dirname "$0")/lib.sh"
export DAEMON_FRONT="prlimit --nofile=64:64"
command -v prlimit >/dev/null || skip "no prlimit"
daemon_start
unset DAEMON_FRONT
$RUN --name first -- "$P/holder" --bytes 32MiB --count 3 --gap-ms 1500 --ms 1000 --verify >"$T/first" &
first=$!
wait_event "$T/first" ask
for i in $(seq 60); do
	$RUN --name "c$i" -- sleep 2 >"$T/c$i" 2>&1 &
	eval "pid$i=$!"
done
refused=0
passed=0
for i in $(seq 60); do
	eval "wait \$pid$i"
	case $? in
	0) passed=$((passed + 1)) ;;
	*) refused=$((refused + 1)) ;;
	esac
done
note "$passed passed, $refused were refused"
check "all came to an end" $((passed + refused)) = 60
wait $first
check "who was there before works on" $? = 0
check "nothing was wrong in it" "$(json -l event=end wrong <"$T/first")" = 0
until_true 10 daemon_up
check "the daemon answers again" "$(daemon_up && echo yes)" = yes
$RUN -- "$P/meminfo" >"$T/after"
check "and takes new workloads" $? = 0
check_books_empty
finish
