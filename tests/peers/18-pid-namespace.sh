#!/bin/sh
# In a namespace of pids of its own a program is still known by its socket, and sees its own use.
. "$(dirname "$0")/../system/lib.sh"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "no right to make a namespace of pids"
daemon_start
$RUN --request 0 --limit 400MiB --name inside -- unshare --pid --fork --mount-proc "$P/meminfo" --bytes 128MiB --hold-ms 60000 --until "$T/seen" >"$T/inside" &
inside=$!
held() { [ "$(use inside backing_bytes)" -ge $((128 << 20)) ]; }
until_true 15 held
check "the account is its workload's" $? = 0
check "one client" "$(use inside clients)" = 1
: >"$T/seen"
wait $inside
check "total" "$(json -l when=held total_bytes <"$T/inside")" = $((400 << 20))
check "it sees its own process" "$(json -l when=held own_bytes <"$T/inside")" -ge $((128 << 20))
check_books_empty
finish
