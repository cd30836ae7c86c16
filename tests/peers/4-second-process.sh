#!/bin/sh
# Two processes of one workload: the second sees less free by what the first took, and gets no more.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
cat >"$T/both" <<INNER
"$P/holder" --bytes 200MiB --ms 20000 >"$T/first" &
until grep -q held "$T/first"; do sleep 0.05; done
"$P/meminfo" --bytes 1MiB >"$T/second"
"$P/memhog" --piece 100MiB >"$T/third"
echo \$? >"$T/third.status"
kill -KILL \$!
INNER
$RUN --request 0 --limit 400MiB -- sh "$T/both"
free=$(json -l when=before free_bytes <"$T/second")
check "total is the limit" "$(json -l when=before total_bytes <"$T/second")" = $((400 << 20))
check "free is less by the other's memory" "$free" -le $((200 << 20))
check "the books know both" "$free" -gt 0
check "together they stay within the limit" "$(json -l error=CUDA_ERROR_OUT_OF_MEMORY error <"$T/third" 2>/dev/null || grep -c . "$T/third")" != ""
check_books_empty
finish
