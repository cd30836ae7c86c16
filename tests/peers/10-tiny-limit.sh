#!/bin/sh
# A limit that the context alone uses up, where no reserve pays it: figures are figures, an allocation is out of memory, nothing is "invalid".
. "$(dirname "$0")/../system/lib.sh"
software_only "sizes are the software GPU's"
echo 'context_reserve: 0' >"$CONFIG"
daemon_start
$RUN --request 0 --limit 4MiB -- "$P/meminfo" --bytes 1MiB >"$T/tiny" 2>&1
check "figures are told" "$(json -l when=before total_bytes <"$T/tiny")" = $((4 << 20))
check "free is clamped at 0" "$(json -l when=before free_bytes <"$T/tiny")" = 0
$RUN --request 0 --limit 4MiB -- "$P/memhog" --piece 8MiB >"$T/hog" 2>&1
check_file "an allocation is out of memory" "$T/hog" 'OUT_OF_MEMORY|"bytes": ?0|"taken": ?0'
check "no invalid argument anywhere" "$(grep -c INVALID "$T/tiny" "$T/hog" | awk -F: '{ n += $2 } END { print n }')" = 0
check_books_empty
finish
