#!/bin/sh
# Random driver calls by several processes: plain and under Sluice the answers are the same.
# STORM_OPTIONS (words for `storm`: --calls, --seed, --replay ...) in place of the usual million calls.
export LIMIT="${STORM_LIMIT:-840}"
export BOX="--gpus 2 --memory 8GiB"
. "$(dirname "$0")/../system/lib.sh"
# The storm's processes end without tidying up.
[ -z "${ASAN_OPTIONS-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
keep=${STORM_KEEP:-$T}
mkdir -p "$keep"
daemon_start
# What is known and being mended is left out by name, with the reason in the file.
without=$(sed -n 's/^\([a-z_*]*\): .*/\1/p' "$(dirname "$0")/known" | paste -sd, -)
[ -z "$without" ] || note "left out: $without (tests/storm/known says why)"
# Shown as it comes: what was found just before the time was over must not be lost.
# shellcheck disable=SC2086 # options are words
{
	"$B/tests/storm/storm" --keep "$keep" ${without:+--without "$without"} \
		${STORM_OPTIONS:---calls 1000000 --shrink 120} -- $RUN --gpus 2 --
	echo $? >"$T/status"
} 2>&1 | tee "$T/out"
status=$(cat "$T/status")
check "differences" "$status" = 0
grep -q "books of\|UNDERFLOW" "$T/out" "$T/daemon.log"
check "complaints about the books" "$?" = 1
check_books_empty
finish
