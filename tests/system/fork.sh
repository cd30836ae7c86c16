#!/bin/sh
# Forks of every kind inside one workload: each process that uses the GPU is a client of its own and
# counts, none is forgotten, none counts twice (peer-failures row 25).
. "$(dirname "$0")/lib.sh"
not_under_asan "$P/forker"
daemon_start
$RUN --request 300MiB --name family -- "$P/forker" --bytes 24MiB --ms 60000 --until "$T/end" --children 2 >"$T/family" &
pid=$!
all_held() { [ "$(json -n event=held <"$T/family")" = 5 ]; }
until_true 20 all_held
check "five processes hold memory" "$(json -n event=held <"$T/family")" = 5
counted() { [ "$(use family clients)" = 5 ]; }
until_true 20 counted
check "five clients" "$(use family clients)" = 5
check "all of it counts, MiB" $(($(use family backing_bytes) >> 20)) -ge $((5 * 24))
check "and no more than that, MiB" $(($(use family backing_bytes) >> 20)) -le $((5 * 24 + 5 * 4))
: >"$T/end"
wait $pid
check "the family's status" $? = 0
check "a child forked late was refused by the driver" "$(json -l event=late alloc <"$T/family")" = CUDA_ERROR_NOT_INITIALIZED
check_books_empty
finish
