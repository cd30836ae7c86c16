#!/bin/sh
# What the contract says of several GPUs of one process holds on the software GPU, bare and under Sluice.
export LIMIT=190
export BOX="--gpus 4 --memory 1GiB"
. "$(dirname "$0")/lib.sh"
# The contract's own test has one GPU, where these are skipped.
facts() {
	for pattern in 'between_*' peer_access pool_access_peer multicast_all multicast_team checkpoint_moves \
		'checkpoint_names_*'; do
		"$@" "$B/tests/contract/contract" --only "$pattern"
	done
}
facts env >"$T/native"
check "bare: facts that do not hold" "$(grep -c ^FAIL "$T/native")" = 0
grep -A1 ^FAIL "$T/native"
check "bare: facts that hold" "$(grep -c ^ok "$T/native")" -ge 20
check "bare: facts that are skipped" "$(grep -c ^skip "$T/native")" = 0
"$B/tests/contract/contract" --only checkpoint_makes_anew >"$T/anew"
check "bare: a fact of the bare driver alone" "$(grep -c ^ok "$T/anew")" = 1
"$B/sluice" softgpu --gpus 2 --models A100,H100 --memory 1GiB -- "$B/tests/contract/contract" \
	--only checkpoint_other_type >"$T/kinds"
check "GPUs of two types: facts that hold" "$(grep -c ^ok "$T/kinds")" = 1
"$B/sluice" softgpu --drop-pins 1 -- "$B/tests/contract/contract" --only checkpoint_pins >"$T/pins"
check "registrations that a checkpoint ends" "$(grep -c '^FAIL checkpoint_pins' "$T/pins")" = 1
daemon_start
facts $RUN --gpus 4 -- >"$T/sluice"
for run in native sluice; do
	grep -E '^(ok|FAIL|skip)' "$T/$run" | awk '{ print $1, $2 }' >"$T/$run.short"
done
diff "$T/native.short" "$T/sluice.short" >"$T/diff"
check "under Sluice: lines that differ" "$(grep -c '^[<>]' "$T/diff")" = 0
cat "$T/diff"
grep -A1 ^FAIL "$T/sluice"
check_books_empty
finish
