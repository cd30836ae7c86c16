#!/bin/sh
# Two processes of one workload: the second sees less free by what the first took, and gets no more.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
cat >"$T/both" <<INNER
"$P/holder" --bytes 200MiB --ms 20000 >"$T/first" &
until grep -q held "$T/first"; do sleep 0.05; done
"$P/meminfo" --bytes 1MiB >"$T/second"
"$P/memhog" --piece 16MiB >"$T/third"
kill -KILL \$!
INNER
$RUN --request 0 --limit 400MiB -- sh "$T/both"
free=$(json -l when=before free_bytes <"$T/second")
check "total is the limit" "$(json -l when=before total_bytes <"$T/second")" = $((400 << 20))
check "free is less by the other's memory" "$free" -le $((200 << 20))
check "the books know both" "$free" -gt 0
check "a third gets out-of-memory" "$(json -l event=took result <"$T/third")" = CUDA_ERROR_OUT_OF_MEMORY
check "and no more than what was left" "$(json -l event=took bytes <"$T/third")" -le $((200 << 20))
check "but that" "$(json -l event=took bytes <"$T/third")" -ge $((64 << 20))
check_books_empty
finish
