#!/bin/sh
# What passes through sluice run: exit status, signals, output, and programs that use no CUDA at all
# (peer-failures rows 20, 21, 27).
. "$(dirname "$0")/lib.sh"
daemon_start
$RUN -- sh -c 'exit 7'
check "exit status" $? = 7
$RUN -- sh -c 'kill -TERM $$' 2>/dev/null
check "death by SIGTERM" $? = 143
$RUN --name sleeps -- sleep 30 &
pid=$!
runs() { grep -qx sleep "/proc/$pid/comm"; }
until_true 20 runs
kill -INT $pid 2>/dev/null || kill -TERM $pid
kill -TERM $pid 2>/dev/null
wait $pid
check "a signal from outside" $? -ge 128
check "output is its own" "$($RUN -- echo hello)" = hello
check "standard input too" "$(echo in | $RUN -- cat)" = in
$RUN -- "$P/meminfo" >"$T/ok"
check "a program with CUDA" $? = 0
# No CUDA: not known to the daemon as a client, no descriptor more, same environment but ours.
$RUN --name plain -- sh -c "ls /proc/self/fd | wc -l; until [ -e '$T/seen' ]; do sleep 0.05; done" >"$T/plain" &
plain=$!
known() { [ "$(use plain clients)" = 0 ]; }
until_true 20 known
check "a program without CUDA is no client" "$(use plain clients)" = 0
: >"$T/seen"
wait $plain
check "and has no descriptors of ours" "$(cat "$T/plain")" = "$(sh -c 'ls /proc/self/fd | wc -l')"
$RUN -- env | grep -vE '^(LD_PRELOAD|SLUICE_|CUDA_|_=)' | sort >"$T/env.inside"
env | grep -vE '^(LD_PRELOAD|SLUICE_|CUDA_|_=)' | sort >"$T/env.outside"
check "the rest of the environment" "$(cmp "$T/env.inside" "$T/env.outside" && echo same)" = same
cat >"$T/umask.sh" <<'INNER'
umask
trap
ulimit -n
INNER
check "umask, traps and limits" "$($RUN -- sh "$T/umask.sh")" = "$(sh "$T/umask.sh")"
check_books_empty
finish
