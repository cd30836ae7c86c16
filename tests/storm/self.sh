#!/bin/sh
# The storm finds a difference and shrinks it. Here one side gets a fault: the third memset answers
# something else, and a copy breaks instead of hanging. So the smallest sequence is known
# beforehand.
export LIMIT=280
export BOX="--gpus 1 --memory 4GiB"
. "$(dirname "$0")/../system/lib.sh"
# The storm's processes end without tidying up.
[ -z "${ASAN_OPTIONS-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
software_only "faults are planned there"
# Every driver call about memory that Sluice handles itself is drawn, or a reason is written down.
here=$(dirname "$0")
tr '\n' ' ' <"$here/../../src/runtime/real/hooks.def" |
	grep -o 'SL_HOOK[A-Z_]*([A-Za-z0-9_]*, [0-9, ]*\(MEM\|PASS\|VMM\|IPC\),' |
	sed 's/.*(\([A-Za-z0-9_]*\),.*/\1/' | sort -u >"$T/hooks"
sed -n 's/^SL_STORM_CALL(\([A-Za-z0-9_]*\))$/\1/p' "$here/calls.def" | sort -u >"$T/drawn"
sed -n 's/^\([A-Za-z0-9_]*\): ..*/\1/p' "$here/undrawn" | sort -u >"$T/undrawn"
check "hooks that were found" "$(wc -l <"$T/hooks")" -ge 50
check "neither drawn nor in tests/storm/undrawn:" \
	"$(sort -u "$T/drawn" "$T/undrawn" | comm -23 "$T/hooks" - | tr '\n' ' ')" = ""
check "in tests/storm/undrawn, but drawn:" "$(comm -12 "$T/drawn" "$T/undrawn" | tr '\n' ' ')" = ""
check "in tests/storm/undrawn, but no such hook:" \
	"$(comm -13 "$T/hooks" "$T/undrawn" | tr '\n' ' ')" = ""
# No daemon and no Sluice: both sides are plain, one has the fault plan.
storm() {
	"$B/tests/storm/storm" --keep "$T" --steps 3000 --calls 3000 "$@" >"$T/out" 2>&1
}
storm --seed 7
check "two plain runs: status" "$?" = 0
storm --seed 7 --without "share_*" --faults "cuMemsetD8Async:3=unknown"
check "a wrong code in the third cuMemsetD8Async: status" "$?" = 1
check "steps that are left of 3,000" "$(sed -n 's/.*minimal sequence of \([0-9]*\) .*/\1/p' "$T/out")" -le 8
check_file "the seed is named" "$T/out" "^storm: seed 7, step "
# In the run that found it: what comes next may not find it again.
sed -n '/^storm: seed/,/^storm: once more/p' "$T/out" >"$T/first"
check_file "what both sides answered" "$T/first" "cuMemsetD8Async: CUDA_SUCCESS"
check_file "the one that differs" "$T/first" "cuMemsetD8Async: CUDA_ERROR_UNKNOWN"
check_file "the step is named" "$T/out" "set(_2d)? buffer="
check_file "and what it answered" "$T/out" "cuMemsetD8Async: CUDA_ERROR_UNKNOWN"
[ "$FAILED" = 0 ] || cat "$T/out"
sed -n '/minimal sequence/,$p' "$T/out"
cp "$T/minimal" "$T/again"
storm --replay "$T/again" --faults "cuMemsetD8Async:3=unknown"
check "the minimal sequence again: status" "$?" = 1
storm --replay "$T/again"
check "and without the fault: status" "$?" = 0
storm --seed 7 --without "share_*" --faults "cuMemAlloc_v2:10=oom"
check "an allocation refused: status" "$?" = 1
check_file "it is named" "$T/out" "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"
storm --seed 7 --without "share_*" --faults "cuStreamSynchronize:9=illegal_address"
check "a bad access on one side only, once: status" "$?" = 1
check_file "it is named" "$T/out" "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"
echo "nonsense" >"$T/bad"
storm --replay "$T/bad"
check "a file that is no sequence: status" "$?" = 2
finish
