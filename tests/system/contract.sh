#!/bin/sh
# The contract holds on the software GPU, bare and under Sluice, line by line the same.
export LIMIT=280
export BOX="--gpus 1 --memory 4GiB"
. "$(dirname "$0")/lib.sh"
"$B/tests/contract/contract" --jobs 4 >"$T/native"
check "bare: facts that do not hold" "$(grep -c ^FAIL "$T/native")" = 0
grep -A1 ^FAIL "$T/native"
check "facts that hold" "$(grep -c ^ok "$T/native")" -ge 80
tail -n 1 "$T/native"
daemon_start
$RUN -- "$B/tests/contract/contract" --jobs 4 >"$T/sluice"
check "under Sluice: facts that do not hold" "$(grep -c ^FAIL "$T/sluice")" = 0
grep -A1 ^FAIL "$T/sluice"
tail -n 1 "$T/sluice"
# Facts about the bare driver (lost GPUs, and one more) are skipped under Sluice and say so.
grep -B1 'about the bare driver' "$T/sluice" | awk '$1 == "skip" { print " " $2 " " }' >"$T/bare"
check "facts about the bare driver alone" "$(grep -c . "$T/bare")" -le 12
for run in native sluice; do
	grep -E '^(ok|FAIL|skip)' "$T/$run" | awk '{ print $1, $2, "" }' | grep -vFf "$T/bare" >"$T/$run.short"
done
diff "$T/native.short" "$T/sluice.short" >"$T/diff"
check "lines that differ" "$(grep -c '^[<>]' "$T/diff")" = 0
cat "$T/diff"
check_books_empty
finish
