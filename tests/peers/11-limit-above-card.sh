#!/bin/sh
# A limit above the card: what a program sees is the card.
. "$(dirname "$0")/../system/lib.sh"
software_only "the card has 1 GiB"
daemon_start
$RUN --request 0 --limit 100GiB -- "$P/meminfo" --bytes 1MiB >"$T/all"
check "total is no more than the card" "$(json -l when=before total_bytes <"$T/all")" -le $((1 << 30))
check "and more than nothing" "$(json -l when=before total_bytes <"$T/all")" -gt $((512 << 20))
check "NVML says the same" "$(json -l when=before nvml_total_bytes <"$T/all")" = "$(json -l when=before total_bytes <"$T/all")"
finish
