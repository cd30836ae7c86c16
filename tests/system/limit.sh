#!/bin/sh
# A limit is a smaller GPU: out-of-memory by exactly that name at exactly that size, on every road to
# the driver, and not sticky (peer-failures rows 9, 10, 11, 14).
. "$(dirname "$0")/lib.sh"
daemon_start
limit=$((256 << 20))
$RUN --limit 256MiB --name hog -- "$P/memhog" --piece 8MiB --rounds 3 >"$T/hog"
check "the hog's status" $? = 0
check "what ended it" "$(json -l round=0 result <"$T/hog")" = CUDA_ERROR_OUT_OF_MEMORY
check "it took at most the limit" "$(json -l round=0 bytes <"$T/hog")" -le $limit
check "and most of it, context apart" "$(json -l round=0 bytes <"$T/hog")" -ge $((limit - (48 << 20)))
check "as much again after the frees" "$(json -l round=2 bytes <"$T/hog")" -ge "$(json -l round=0 bytes <"$T/hog")"
$RUN --limit 256MiB -- "$P/entry-points" --over 300MiB >"$T/roads"
check "every road is limited" $? = 0
check "roads walked" "$(json -n good=1 <"$T/roads")" = 9
check "the total is the limit" "$(json -l event=end total_bytes <"$T/roads")" = $limit
# A limit above the card is the card.
$RUN --limit 900GiB -- "$P/meminfo" >"$T/above" 2>"$T/above.err"
check "a limit above the card runs" $? = 0
"$P/meminfo" >"$T/bare"
check "and shows no more than the card" "$(json -l when=before total_bytes <"$T/above")" -le \
	"$(json -l when=before nvml_total_bytes <"$T/bare")"
check_books_empty
finish
