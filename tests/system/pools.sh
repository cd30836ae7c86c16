#!/bin/sh
# Memory of cuMemAllocAsync swaps like other memory: workloads that do not fit together take turns, one is parked,
# comes back and goes to another GPU, dies while it leaves; a driver's call that fails leaves nothing behind.
export BOX='--gpus 2 --memory 512MiB --context 8MiB --module 1MiB'
export LIMIT=${LIMIT:-280}
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 4GiB'
config 'detach_contexts: yes'
daemon_start

note "--- two that do not fit together take turns"
export CUDA_VISIBLE_DEVICES=0
swapper one --request 0.3 --limit 0.9
swapper two --request 0.3 --limit 0.9
ok one pool a 250m
ok one fill a 1
ok two pool b 250m
ok two fill b 2
for turn in 1 2 3; do
	contents one "turn $turn"
	ok one fill a "1$turn"
	contents two "turn $turn"
	ok two fill b "2$turn"
done
contents one "at the end"
check "the host had one of them" "$("$B/sluice" events --last 1000 --name one | grep -c 'moved from GPU')" -ge 2
check "nothing of them is held" "$(use one held_bytes)" = 0

note "--- parked, with more in pools and beside them, and back"
ok one alloc c 20m
ok one fill c 3
park one
check "all of it is on the host" "$(evicted_bytes one)" -ge $((270 * MIB))
contents two "while the other is parked"
end_swapper two
resume one
contents one "after it was parked"
ok one free a
ok one pool a 150m
ok one fill a 4
contents one "of memory used again"

note "--- dies while its memory leaves"
"$B/sluice" park --no-wait one >/dev/null 2>&1
kill_swapper one
check_books_empty
unset CUDA_VISIBLE_DEVICES

note "--- goes to another GPU"
swapper far --request 150MiB
ok far pool a 100m
ok far fill a 5
for round in 1 2; do
	to=$((1 - $(where far)))
	move far --gpu "$to" || fail "cannot move it: $(cat "$T/move.out"): $("$B/sluice" why far)"
	until_true 20 is_on far "$to" || fail "it is not on GPU $to"
	contents far "on GPU $to, round $round"
	ok far fill a "6$round"
done
end_swapper far
check_books_empty

note "--- each call of the driver that it needs fails once"
[ -n "${SLUICE_TEST_REAL-}" ] || for call in cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess cuEventCreate \
	cuEventRecord; do
	SWAPPER_FRONT="env SLUICE_SOFTGPU_FAULTS=$call:2=unknown" swapper "f$call" --request 0.2 --limit 0.9
	failures=0 made=
	for name in a b c d; do
		tell "f$call" pool $name 33m
		if [ "$RESULT" = CUDA_SUCCESS ]; then
			made="$made $name"
			ok "f$call" fill $name 7
		else
			failures=$((failures + 1))
		fi
	done
	contents "f$call"
	for name in $made; do
		tell "f$call" free "$name"
		[ "$RESULT" = CUDA_SUCCESS ] && continue
		failures=$((failures + 1))
		ok "f$call" free "$name"
	done
	check "$call: errors that the program saw" "$failures" -le 1
	contents "f$call" "after an error"
	end_swapper "f$call"
	check_books_empty
done
finish
